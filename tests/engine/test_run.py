import jax
import numpy as np
import pytest

import steepest
from steepest.catalogue import load
from steepest.core.errors import UserError
from steepest.core.words import Verdict
from steepest.engine.run import command, ready, run
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
        (
            "plain-decay",
            {"rivalry": 0.0},
            Verdict.INCONCLUSIVE,
        ),  # a rival that is the theory itself: no power
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
        ({"rate": -1.0}, "rate must be above 0, got -1.0"),
        ({"seeds": 1}, "seeds must be at least 3"),
        ({"preset": "fast"}, "quick, full or tiny"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence):
    with pytest.raises(UserError, match=sentence) as caught:
        run("plain-decay", **arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["target", "claim"])
def test_a_field_may_have_the_name_of_the_first_parameter(name):
    """As even-movement has the field ``target``; plain-decay has neither, which is said of the field."""
    for call in (run, steepest.run):
        with pytest.raises(UserError, match=f"no field {name!r}"):
            call("plain-decay", **{name: 0.6})
    with pytest.raises(UserError, match=f"no field {name!r}"):
        steepest.sweep("plain-decay", {"rate": [0.25]}, **{name: 0.6})


def test_an_unknown_claim_gets_the_nearest_name():
    with pytest.raises(UserError, match="did you mean 'plain-decay'"):
        run("plane-decay")


def test_the_command_says_what_differs_from_the_preset():
    asked = ready("plain-decay", seed=7, changes={"rate": 0.25})
    assert command(asked) == "steepest run plain-decay --seed 7 --rate 0.25"
    full = ready("plain-decay", "full")
    assert command(full) == "steepest run plain-decay --preset full"
    same = ready("plain-decay", changes={"rate": 0.5})  # what the preset has anyway
    assert command(same) == "steepest run plain-decay"


@pytest.mark.parametrize("seed", [-1, 2**31, 1.0, True, "0", None])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(
        UserError, match=f"a seed is a whole number from 0 to 2147483647, got {seed!r}"
    ):
        run("plain-decay", seed=seed)


def test_a_claim_with_its_fields_is_run_as_it_is():
    claim = load("plain-decay")(rate=0.25)
    result = run(claim, seed=2)
    assert (result.claim, result.params["rate"], result.seed) == ("plain-decay", 0.25, 2)
    assert result.command == "steepest run plain-decay --seed 2 --rate 0.25"
    assert result.checks == run("plain-decay", seed=2, rate=0.25).checks
    with pytest.raises(UserError, match="has its fields already; set rate where you make it"):
        run(claim, rate=0.3)


def test_the_precision_is_the_claims_and_the_setting_is_restored():
    before = jax.config.jax_enable_x64
    run("plain-decay")
    assert jax.config.jax_enable_x64 == before


def test_the_python_interface(tmp_path):
    result = steepest.run("plain-decay", rate=0.25, out=tmp_path)
    assert result.verdict == "holds"
    assert result.hypotheses[0].holds
    assert set(result.arrays) == {
        "predicted/rate",
        "predicted/path",
        "observed/rate",
        "observed/path",
        "observed/size",
    }
    assert np.isfinite(result.seconds)
    assert len(result.figure().axes) == 2
    shown = result._repr_html_()
    assert "plain-decay" in shown
    assert "<svg" in shown
    assert "rate below one" in shown  # what was assumed
    (rival,) = [rival for rival in result.rivals if rival.name == "a faster decay"]
    assert f"rejected by {', '.join(rival.by)}: a faster decay" in shown
    assert repr(result).startswith("<plain-decay: holds, agrees in")
    assert len(repr(result)) < 200
    assert next(iter(steepest.claims())) == "plain-decay"
    assert len(list(tmp_path.glob("plain-decay/*/result.json"))) == 1


def test_what_is_out_of_range_is_shown_without_a_figure():
    shown = steepest.run("plain-decay", rate=1.5)._repr_html_()
    assert "out of range" in shown
    assert "<svg" not in shown
