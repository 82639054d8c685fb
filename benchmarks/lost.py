"""When a training counts as lost, for the benchmarks that judge warnings."""

from collections.abc import Sequence

DIVERGED = 10.0  # times the risk of a constant guess
NOTHING = 0.9  # of it: what ends above has learned nothing, or lost what it had
GUESS = 0.99  # of it: what stays above has lost it


def lost(risks: Sequence[float], guess: float) -> int | None:
    """Return the step at which a training was lost, or None.

    Args:
        risks: at every step; the last one may be where it diverged.
        guess: the risk of the best constant guess.

    >>> lost([2.0, 1.0, 0.1], 2.0), lost([2.0, 1.0, 25.0], 2.0), lost([2.0, 1.0, 3.0, 2.0], 2.0)
    (None, 2, 2)
    """
    if not risks[-1] < DIVERGED * guess:
        return len(risks) - 1
    if risks[-1] < NOTHING * guess:
        return None
    better = [step for step, risk in enumerate(risks) if risk < GUESS * guess]
    return min(better[-1] + 1, len(risks) - 1) if better else 0
