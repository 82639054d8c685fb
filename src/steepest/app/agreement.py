"""Whether a person agrees to what takes long, before it starts."""

import sys

from steepest.core.errors import UserError

ASKED = 60.0  # seconds from which a person is asked
LONG = 600.0  # seconds from which --yes is wanted where nobody can be asked


def is_agreed(seconds: float) -> bool:
    """Ask a person whether it may take so long.

    Args:
        seconds: that it takes, about.

    Raises:
        UserError: a long run where nobody can be asked.
    """
    if seconds < ASKED:
        return True
    if sys.stdin.isatty() and sys.stderr.isatty():
        return input("start? [Y/n] ").strip().lower() in ("", "y", "yes")
    if seconds < LONG:
        return True
    raise UserError("that is more than ten minutes: add --yes, or choose fewer --seeds or steps")
