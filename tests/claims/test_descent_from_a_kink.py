"""Descents from the kink, step by step."""

import pytest

from steepest.claims.descent._kinks import PRIMITIVES
from steepest.claims.descent.descent_from_a_kink.claim import DescentFromAKink


def test_paths_from_the_kink_are_those_of_the_recursion():
    """Step by step in plain numbers, with the slope 2s where x is zero and one elsewhere."""
    claim = DescentFromAKink(steps=20)
    paths = claim.predict(None)["path"]
    for path, (_, slope) in zip(paths, PRIMITIVES.values(), strict=True):
        x = 0.0
        for after in path:
            x -= claim.lr * (x - 1) * (2 * slope if x == 0 else 1)
            assert after == pytest.approx(x, abs=1e-12)
