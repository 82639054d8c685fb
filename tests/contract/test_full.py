"""Full presets, and the seed block of each claim's version: every week."""

import pytest

from steepest import catalogue
from steepest.engine.run import execute, ready

BLOCK = 5
"""Seeds of the block that are run every week; the docs have all twenty."""


@pytest.mark.weekly
@pytest.mark.parametrize("name", list(catalogue.built_in()))
def test_full_preset_does_not_fail(name):
    result = execute(ready(name, "full"))
    assert result.verdict != "fails", result.reason


@pytest.mark.weekly
@pytest.mark.parametrize("name", list(catalogue.built_in()))
def test_fresh_seeds_do_not_fail(name):
    first = 1000 * catalogue.load(name).version
    verdicts = {
        seed: execute(ready(name, seed=seed)).verdict for seed in range(first, first + BLOCK)
    }
    failing = [seed for seed, verdict in verdicts.items() if verdict == "fails"]
    assert len(failing) <= 1, verdicts
