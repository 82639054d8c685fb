"""Quick presets: of the claims whose source closure has changed since the last green run, or of all of them.

Run with ``-m verdict``; the environment variable STEEPEST_CLAIMS=all asks for all of them, as every night.
"""

import pytest

from steepest import catalogue
from steepest.app.contract import is_challenged
from steepest.engine.run import execute, ready
from tests.contract.green import judged, recorded


@pytest.mark.verdict
@pytest.mark.parametrize("name", judged())
def test_verdict(name):
    result = execute(ready(name))
    green = recorded().get(name, {})
    assert result.verdict == green.get("verdict", "holds"), result.reason
    assert is_challenged(result) == green.get("missing", [])


@pytest.mark.verdict
def test_every_claim_has_a_recorded_verdict():
    assert set(recorded()) == set(catalogue.built_in())


def test_what_the_recorded_checks_lack_is_said_or_mended():
    """A record that lacks something would make the verdict's test pass with the lack in it."""
    assert {name: green["missing"] for name, green in recorded().items() if green["missing"]} == {}
