"""Quick presets: of the claims whose source closure has changed since the last green run, or of all of them.

Run with ``-m verdict``; the environment variable STEEPEST_VERDICTS=all asks for all of them, as every night.
"""

import os

import pytest

from steepest import catalogue
from steepest.app.contract import is_challenged
from steepest.engine.run import execute, ready
from tests.contract.green import changed, recorded

EVERY = os.environ.get("STEEPEST_VERDICTS") == "all"


@pytest.mark.verdict
@pytest.mark.parametrize("name", list(catalogue.built_in()) if EVERY else changed())
def test_verdict(name):
    result = execute(ready(name))
    green = recorded().get(name, {})
    assert result.verdict == green.get("verdict", "holds"), result.reason
    assert is_challenged(result) == green.get("missing", [])


@pytest.mark.verdict
def test_every_claim_has_a_recorded_verdict():
    assert set(recorded()) == set(catalogue.built_in())
