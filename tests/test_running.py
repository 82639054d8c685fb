import jax
import numpy as np
import pytest

import steepest
from steepest.errors import UserError
from steepest.judging import Verdict
from steepest.running import build, command, run
from tests.small import small_catalogue


@pytest.fixture(scope="module", autouse=True)
def _claims(tmp_path_factory):
    with small_catalogue(tmp_path_factory.mktemp("claims")):
        yield


@pytest.mark.parametrize(
    ("name", "fields", "verdict"),
    [
        ("plain-decay", {}, Verdict.HOLDS),
        ("plain-decay", {"bias": 0.3}, Verdict.FAILS),
        ("plain-decay", {"bias": 0.05, "spread": 0.02}, Verdict.INCONCLUSIVE),
        ("plain-decay", {"rate": 1.5}, Verdict.OUT_OF_RANGE),
        ("plain-decay", {"rivalry": 0.0}, Verdict.INCONCLUSIVE),  # a rival that is the theory itself: no power
    ],
)
def test_every_verdict_can_be_reached(name, fields, verdict):
    result = run(name, **fields)
    assert result.verdict is verdict
    assert (not result.observed) == (verdict is Verdict.OUT_OF_RANGE)


def test_stages_are_told_in_order():
    stages = []
    run("plain-decay", watch=stages.append)
    assert stages == ["setting up", "predicting", "observing", "judging"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"rat": 0.5}, "did you mean 'rate'"),
        ({"rate": -1.0}, "rate must be > 0, got -1.0"),
        ({"seeds": 1}, "seeds must be at least 3"),
        ({"preset": "fast"}, "quick or full"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence):
    with pytest.raises(UserError, match=sentence) as caught:
        run("plain-decay", **arguments)
    assert "\n" not in str(caught.value)


def test_an_unknown_claim_gets_the_nearest_name():
    with pytest.raises(UserError, match="did you mean 'plain-decay'"):
        run("plane-decay")


def test_the_command_says_what_differs_from_the_preset():
    claim = build(type(run_claim()), "quick", {"rate": 0.25})
    assert command("plain-decay", claim, "quick", 7) == "steepest run plain-decay --seed 7 --rate 0.25"
    full = build(type(run_claim()), "full", {})
    assert command("plain-decay", full, "full", 0) == "steepest run plain-decay --preset full"


def run_claim():
    from steepest.claims import load

    return load("plain-decay")()


def test_the_precision_is_the_claims_and_the_setting_is_restored():
    before = jax.config.jax_enable_x64
    run("plain-decay")
    assert jax.config.jax_enable_x64 == before


def test_the_python_interface(tmp_path):
    result = steepest.run("plain-decay", rate=0.25, out=tmp_path)
    assert result.verdict == "holds"
    assert result.hypotheses[0].holds
    assert set(result.arrays) == {"predicted/rate", "predicted/path", "observed/rate", "observed/path"}
    assert np.isfinite(result.seconds)
    assert len(result.figure().axes) == 2
    assert "plain-decay" in result._repr_html_()
    assert next(iter(steepest.claims())) == "plain-decay"
    assert len(list(tmp_path.glob("plain-decay/*/result.json"))) == 1
