"""Laws of the largest stable step near the true ones: what follows them holds, wrong ones fail."""

import numpy as np
import pytest

from steepest import kit
from steepest.claims.signals.stable_step.claim import StableStep
from steepest.claims.signals.step_and_depth.claim import StepAndDepth
from steepest.claims.signals.step_and_width.claim import StepAndWidth
from steepest.core.words import Verdict

CLAIMS = (StableStep(), StepAndWidth(), StepAndDepth())
AXES = CLAIMS[0].axes()


@pytest.fixture(scope="module")
def arrays():
    """Laws near the true ones, and steps that follow them with a scatter of one percent, for each of CLAIMS."""
    rng = np.random.default_rng(0)
    width = np.array(CLAIMS[1].widths)
    laws = {
        "standard": 2 / (width + 14.5),
        "ntk": np.full(3, 0.6),
        "biases": np.ones(3),
    }
    deep = 0.59 * (np.array([[2, 3, 5]]) / 2) ** -0.87
    mean = np.stack(list(laws.values())) * np.exp(0.01 * rng.normal(size=(32, 3, 3)))
    mean_deep = deep * np.exp(0.02 * rng.normal(size=(32, 1, 3)))
    wide = "seed law width"
    by_depth = "seed activation layers"
    return {
        "edges": (
            CLAIMS[0],
            kit.law(edge=(wide, mean / 1.005), deep_edge=(by_depth, mean_deep / 1.005)),
            kit.seen(step=(wide, mean), deep_step=(by_depth, mean_deep)),
        ),
        "widths": (
            CLAIMS[1],
            kit.law(**{name: ("width", values) for name, values in laws.items()}),
            kit.seen(step=(wide, mean), mean_step=(wide, mean)),
        ),
        "depths": (
            CLAIMS[2],
            kit.law(deep=("activation layers", deep)),
            kit.seen(deep_step=(by_depth, mean_deep), mean_deep_step=(by_depth, mean_deep)),
        ),
    }


def verdicts(claim, predicted, observed):
    return {check.id: check.verdict for check in claim.checks(predicted, observed)}


def test_what_follows_the_laws_holds(arrays):
    for of_claim in arrays.values():
        assert set(verdicts(*of_claim).values()) == {Verdict.HOLDS}


@pytest.mark.parametrize("kind", ["flat", "reversed", "steeper", "shallower"])
@pytest.mark.parametrize(
    ("of", "law", "axis", "ids"),
    [
        ("widths", "standard", "width", ("width_exponent_standard", "limit_step_standard")),
        ("depths", "deep", "layers", ("depth_exponent_relu", "limit_depth")),
        ("edges", "edge", "width", ("step_over_edge",)),
        ("edges", "deep_edge", "layers", ("deep_step_over_edge",)),
    ],
)
def test_laws_made_wrong_along_their_argument_fail(arrays, of, law, axis, ids, kind):
    claim, predicted, observed = arrays[of]
    quantity = predicted.quantity(law)
    place = quantity.dims.index(axis)
    wrong = kit.wrong_along(quantity.values, place, AXES[axis])[kind]
    judged = verdicts(claim, predicted.replace(**{law: (quantity.dims, wrong)}), observed)
    assert {judged[id] for id in ids} == {Verdict.FAILS}


@pytest.mark.parametrize(
    ("law", "exponent"), [("standard", -1), ("standard", -0.5), ("ntk", -0.5), ("biases", 0.5)]
)
def test_other_exponents_of_the_width_fail(arrays, law, exponent):
    """−1, which the statement once said, as well as the printed −½."""
    claim, predicted, observed = arrays["widths"]
    growth = np.array(claim.widths) / claim.widths[-1]
    wrong = predicted.replace(**{law: ("width", predicted[law][-1] * growth**exponent)})
    judged = verdicts(claim, wrong, observed)
    assert judged[f"width_exponent_{law}"] is Verdict.FAILS
    assert judged[f"limit_step_{law}"] is Verdict.FAILS
