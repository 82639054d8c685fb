"""Full presets, and the seed block of each claim's version: a quarter of the claims every week, by turns.

With ``STEEPEST_CLAIMS=all`` those of all claims, which takes hours.
"""

import datetime

import pytest

from steepest import catalogue
from steepest.engine.run import execute, ready
from tests.contract.green import EVERY

BLOCK = 5
"""Seeds of the block that are run every week; the docs have all twenty."""
TURNS = 4
"""Weeks in which every claim has its turn."""


def in_turn() -> list[str]:
    """Return the claims of this week."""
    names = list(catalogue.built_in())
    week = datetime.date.today().isocalendar().week
    return names if EVERY else names[week % TURNS :: TURNS]


@pytest.mark.weekly
@pytest.mark.parametrize("name", in_turn())
def test_full_preset_does_not_fail(name):
    result = execute(ready(name, "full"))
    assert result.verdict != "fails", result.reason


@pytest.mark.weekly
@pytest.mark.parametrize("name", in_turn())
def test_fresh_seeds_do_not_fail(name):
    first = 1000 * catalogue.load(name).version
    verdicts = {
        seed: execute(ready(name, seed=seed)).verdict for seed in range(first, first + BLOCK)
    }
    failing = [seed for seed, verdict in verdicts.items() if verdict == "fails"]
    assert len(failing) <= 1, verdicts
