"""The seed block of each claim's version: a quarter of the claims every week, by turns, as their full presets."""

import pytest

from benchmarks.full.run import in_turn
from steepest import catalogue
from steepest.engine.run import execute, ready

BLOCK = 5
"""Seeds of the block that are run every week; the docs have all twenty."""


@pytest.mark.weekly
@pytest.mark.parametrize("name", in_turn())
def test_fresh_seeds_do_not_fail(name):
    first = 1000 * catalogue.load(name).version
    verdicts = {
        seed: execute(ready(name, seed=seed)).verdict for seed in range(first, first + BLOCK)
    }
    failing = [seed for seed, verdict in verdicts.items() if verdict == "fails"]
    assert len(failing) <= 1, verdicts
