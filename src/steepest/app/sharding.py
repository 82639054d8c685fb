"""Which part of a sweep, or of the trials of a claim, a job of an array computes."""

import re

from steepest.core.errors import UserError


def read_shard(words: str | None) -> tuple[int, int]:
    """Return ``"3/40"`` as two numbers; the whole without any words.

    Raises:
        UserError: words that name no part.
    """
    if words is None:
        return 1, 1
    both = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", words)
    if both is None:
        raise UserError(f"--shard takes I/N such as 3/40, counted from 1, got {words!r}")
    return int(both[1]), int(both[2])
