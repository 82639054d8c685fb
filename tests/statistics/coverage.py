"""How often intervals hold in simulation, against the share that they declare."""

import numpy as np

Z = 4
"""Standard errors of a simulated share that count as chance: one false alarm in 30 000 tests."""


def assert_covers(inside, level, exact=False):
    """Intervals hold at least as often as they say; exact ones no more often either."""
    share = np.mean(inside)
    error = np.sqrt(level * (1 - level) / np.size(inside))
    assert share >= level - Z * error, f"holds in {share:.3f} of cases, declared {level}"
    if exact:
        assert share <= level + Z * error, f"holds in {share:.3f} of cases, declared {level}"
