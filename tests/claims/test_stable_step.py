"""The parts of stable-step: kernels of what is trained, their limits, the mean step, and laws that must fail."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest import kit
from steepest.claims.signals.stable_step.claim import StableStep
from steepest.claims.signals.stable_step.experiment import mean_steps
from steepest.claims.signals.stable_step.networks import (
    LAWS,
    cut_out,
    kernel,
    kernel_parts,
    numbers_in,
    output,
    roles,
    shape_of,
)
from steepest.claims.signals.stable_step.theory import limit_of
from steepest.core.words import Verdict
from steepest.kernels import empirical_ntk, gram
from steepest.nn.networks import mlp

SHAPE = shape_of(64, 2, "relu")
INPUTS = jax.random.normal(jax.random.key(1), (4, 16))
NUMBERS = jax.random.normal(jax.random.key(2), (numbers_in(SHAPE),))
CLAIM = StableStep()


def started(law):
    """Parameters and multipliers of a law at its start."""
    role = roles(SHAPE, law)
    layers = zip(role.scale, cut_out(SHAPE, NUMBERS), strict=True)
    return [{"w": scale * layer["w"], "b": layer["b"]} for scale, layer in layers], role


@pytest.mark.parametrize("name", LAWS)
def test_the_shared_parts_are_the_kernel_of_every_law(name):
    """Θ of what is trained is ⟨∂f, ∂f⟩ over those parameters alone, by automatic differentiation."""
    law = LAWS[name]
    params, role = started(law)

    def apply(moving, x):
        layers = zip(params, moving, strict=True)
        whole = tuple({**layer, law.trained: part} for layer, part in layers)
        return output(SHAPE, jnp.asarray(role.multiplier), whole, x)

    moving = [layer[law.trained] for layer in params]
    dense = empirical_ntk(apply, moving, INPUTS, method="jacobian")
    parts = np.array(kernel_parts(SHAPE, cut_out(SHAPE, NUMBERS), INPUTS))
    np.testing.assert_allclose(kernel(SHAPE, law, parts), dense, rtol=1e-8)


def test_a_law_is_run_as_the_network_of_its_parameterization():
    """A multiplier times a parameter is what mlp() builds, and standard weights have variance C_W/fan-in."""
    params, role = started(LAWS["ntk"])
    ours = output(SHAPE, jnp.asarray(role.multiplier), tuple(params), INPUTS)
    net = mlp(SHAPE.widths, SHAPE.sigma, parameterized="ntk", c_w=2.0)
    np.testing.assert_allclose(ours, net.apply(tuple(params), INPUTS), rtol=1e-10)
    weights = started(LAWS["standard"])[0][0]["w"]
    assert np.std(weights) == pytest.approx((2 / 16) ** 0.5, rel=0.1)


def test_biases_of_critical_relu_have_a_kernel_of_one_for_each_layer():
    """At one input E σ'² C_W = 1, so that each of the L + 1 layers adds one: η_b = O(1/L), as the notes say."""
    limit = limit_of(shape_of(64, 1, "relu"), LAWS["biases"])
    np.testing.assert_allclose(np.diag(gram(limit, np.asarray(INPUTS)).ntk), 2, rtol=1e-9)


def test_the_kernel_of_standard_weights_is_linear_in_the_width():
    """Θ = nA + B, B of the first layer alone: the step tends to 1/n, and is not there yet."""
    tops = [
        gram(limit_of(shape_of(n, 1, "relu"), LAWS["standard"]), np.asarray(INPUTS)).ntk
        for n in (100, 200, 300)
    ]
    np.testing.assert_allclose(tops[2] - tops[1], tops[1] - tops[0], rtol=1e-6)
    assert (np.diag(tops[0]) > 1.05 * np.diag(tops[1] - tops[0])).all()


def test_steps_are_at_the_edge_and_their_mean_is_that_of_all_siblings():
    small = StableStep(widths=(64,), depths=(2,), width=64, examples=4, siblings=3, seeds=8)
    setting = small.setting(jax.random.key(0))
    observed = small.observe(setting, jax.random.key(0))
    for case, top in setting.top.items():
        # were every step exactly at the edge, the mean would be 2/λ_max of the siblings' mean
        estimate = mean_steps(setting, {case: 2 / top[:, 0]})[case]
        np.testing.assert_allclose(estimate, 2 / top.mean(1), rtol=1e-12)
    predicted = small.predict(setting)
    ratio = observed["step"] / predicted["edge"]
    assert ratio.min() > 0.97 and ratio.max() < 1.06


@pytest.fixture(scope="module")
def arrays():
    """Laws near the true ones, and steps that follow them with a scatter of one percent."""
    rng = np.random.default_rng(0)
    width = np.array(CLAIM.widths)
    laws = {
        "standard": 2 / (width + 14.5),
        "ntk": np.full(3, 0.6),
        "biases": np.ones(3),
    }
    deep = 0.59 * (np.array([[2, 3, 5]]) / 2) ** -0.87
    mean = np.stack(list(laws.values())) * np.exp(0.01 * rng.normal(size=(32, 3, 3)))
    mean_deep = deep * np.exp(0.02 * rng.normal(size=(32, 1, 3)))
    predicted = kit.law(
        edge=("seed law width", mean / 1.005),
        deep_edge=("seed activation layers", mean_deep / 1.005),
        deep=("activation layers", deep),
        **{name: ("width", values) for name, values in laws.items()},
    )
    observed = kit.seen(
        step=("seed law width", mean),
        mean_step=("seed law width", mean),
        deep_step=("seed activation layers", mean_deep),
        mean_deep_step=("seed activation layers", mean_deep),
    )
    return predicted, observed


def verdicts(predicted, observed):
    return {check.id: check.verdict for check in CLAIM.checks(predicted, observed)}


def test_what_follows_the_laws_holds(arrays):
    assert set(verdicts(*arrays).values()) == {Verdict.HOLDS}


@pytest.mark.parametrize("kind", ["flat", "reversed", "steeper", "shallower"])
@pytest.mark.parametrize(
    ("law", "axis", "ids"),
    [
        ("standard", "width", ("width_exponent_standard", "limit_step_standard")),
        ("deep", "layers", ("depth_exponent_relu", "limit_depth")),
        ("edge", "width", ("step_over_edge",)),
        ("deep_edge", "layers", ("deep_step_over_edge",)),
    ],
)
def test_laws_made_wrong_along_their_argument_fail(arrays, law, axis, ids, kind):
    predicted, observed = arrays
    quantity = predicted.quantity(law)
    place = quantity.dims.index(axis)
    wrong = kit.wrong_along(quantity.values, place, CLAIM.axes()[axis])[kind]
    judged = verdicts(predicted.replace(**{law: (quantity.dims, wrong)}), observed)
    assert {judged[id] for id in ids} == {Verdict.FAILS}


@pytest.mark.parametrize(
    ("law", "exponent"), [("standard", -1), ("standard", -0.5), ("ntk", -0.5), ("biases", 0.5)]
)
def test_other_exponents_of_the_width_fail(arrays, law, exponent):
    """−1, which the statement once said, as well as the printed −½."""
    predicted, observed = arrays
    growth = np.array(CLAIM.widths) / CLAIM.widths[-1]
    wrong = predicted.replace(**{law: ("width", predicted[law][-1] * growth**exponent)})
    judged = verdicts(wrong, observed)
    assert judged[f"width_exponent_{law}"] is Verdict.FAILS
    assert judged[f"limit_step_{law}"] is Verdict.FAILS
