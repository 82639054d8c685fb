"""Fields that make no experiment are refused, or out of range, before anything runs."""

import pytest

from steepest import catalogue
from steepest.core.errors import UserError
from steepest.engine.run import execute, ready


@pytest.mark.parametrize(
    ("claim", "fields", "sentence"),
    [
        ("ntk-positive-definite", {"polynomials": ["relu"]}, "relu belongs only to --activations"),
        (
            "ntk-positive-definite",
            {"activations": ["relu", "polynomial(0,1)"]},
            "belongs only to --polynomials",
        ),
        ("adaboost-margin", {"readings": 1}, "readings must be at least 2, got 1"),
        ("nngp-limit", {"c_w": [2.0]}, "activations and c_w and c_b go together"),
        ("depth-scale", {"c_w": [0.8]}, "c_w and c_b go together"),
        ("catapult", {"multiples": []}, "multiples takes at least one value"),
        ("catapult", {"multiples": [1.0, float("nan")]}, "multiples must be a finite number"),
        ("catapult", {"multiple": 0.0}, "multiple must be above 0"),
        ("catapult", {"width": 2**70}, "at most 64 bits"),
        ("catapult", {"steps": True}, "steps takes a whole number, got True"),
        ("catapult", {"multiple": "abc"}, "multiple takes a number, got 'abc'"),
        ("catapult", {"width": "50"}, "width takes a whole number, got '50'"),
        ("logistic-max-margin", {"seed": -1}, "seed is a whole number"),
    ],
)
def test_refused(claim, fields, sentence):
    seed = fields.pop("seed", 0)
    with pytest.raises(UserError, match=sentence) as caught:
        ready(claim, seed=seed, changes=fields)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("claim", "fields"),
    [
        ("representer", {"few": 300, "many": 25}),
        ("representer", {"ridge": 1e9}),
        ("edge-of-stability", {"lr": 1e9, "steps": 5}),
        ("least-squares-min-norm", {"n": 1, "dimension": 1}),
    ],
)
def test_out_of_range(claim, fields):
    kind = catalogue.load(claim)
    asked = ready(claim, "tiny", changes={**kind.tiny, **fields})
    assert execute(asked).verdict == "out-of-range"
