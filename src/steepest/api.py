"""What ``import steepest`` offers."""

from pathlib import Path
from typing import Any

from steepest import running
from steepest.results import Result
from steepest.store import Store


def run(
    claim: str,
    *,
    preset: str = "quick",
    seed: int = 0,
    out: str | Path | None = None,
    again: bool = False,
    **fields: Any,
) -> Result:
    """Run one claim and return its result, which a notebook shows as a table.

    Args:
        claim: its name, such as ``"edge-of-stability"``; :func:`claims` lists them.
        preset: ``"quick"`` (seconds) or ``"full"`` (minutes).
        seed: seed of every random number.
        out: a folder to keep results in, and to answer from; None keeps nothing.
        again: run even if ``out`` has the result.
        **fields: parameters of the claim that differ from the preset.

    Raises:
        UserError: unknown claim, preset or field, or a value out of its limits.

    >>> result = run("early-alignment", seeds=3)
    >>> result.checks[0].verdict.value
    'holds'
    """
    store = None if out is None else Store(Path(out))
    return running.run(claim, preset=preset, seed=seed, store=store, again=again, **fields)
