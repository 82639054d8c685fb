"""The parts of stable-step: kernels of what is trained, their limits, and the mean step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.signals._near_fit_limits import limit_of
from steepest.claims.signals._near_fit_networks import (
    LAWS,
    cut_out,
    kernel,
    kernel_parts,
    numbers_in,
    output,
    roles,
    shape_of,
)
from steepest.claims.signals._near_fit_steps import mean_steps
from steepest.claims.signals.stable_step.claim import StableStep
from steepest.kernels import empirical_ntk, gram
from steepest.nn.networks import mlp

SHAPE = shape_of(64, 2, "relu")
INPUTS = jax.random.normal(jax.random.key(1), (4, 16))
NUMBERS = jax.random.normal(jax.random.key(2), (numbers_in(SHAPE),))


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
