"""The parts of stable-step: kernels of what is trained, their limits, and the estimate of a mean step."""

from functools import partial

import jax
import numpy as np
import pytest

from steepest.claim import compiled
from steepest.claims.initialization.stable_step.claim import StableStep, _siblings
from steepest.kernels import empirical_ntk, gram

SMALL = StableStep(widths=(64,), depths=(2,), width=64, examples=4, siblings=3, seeds=8)
INPUTS = jax.random.normal(jax.random.key(1), (4, 16))
STANDARD, NTK, BIASES, DEEP = SMALL.cases()


def test_the_shared_parts_are_the_kernel_of_every_parameterization():
    """Θ of what is trained is ⟨∂f, ∂f⟩ over those parameters alone, by automatic differentiation."""

    @compiled
    def both(key):
        pairs = []
        for case in SMALL.cases():
            drawn, parts = _siblings(case.shape, 1, INPUTS, key)
            start = case.start(drawn)
            apply = partial(case.apply, start)
            dense = empirical_ntk(apply, case.moving(start), INPUTS, method="jacobian")
            pairs.append((parts, dense))
        return pairs

    for case, (parts, dense) in zip(SMALL.cases(), both(jax.random.key(2)), strict=True):
        np.testing.assert_allclose(case.kernel(np.array(parts))[0], dense, rtol=1e-8)


def test_a_start_is_that_of_its_parameterization():
    """Standard weights have variance C_W/fan-in, and give the same function as the others."""

    @compiled
    def both(key):
        drawn, _ = _siblings(NTK.shape, 1, INPUTS, key)
        standard = STANDARD.start(drawn)
        ntk = NTK.start(drawn)
        return STANDARD.net.apply(standard, INPUTS), NTK.net.apply(ntk, INPUTS), standard[0]["w"]

    ours, theirs, weights = both(jax.random.key(3))
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    assert np.std(weights) == pytest.approx((2 / 16) ** 0.5, rel=0.1)


def test_biases_of_critical_relu_have_a_kernel_of_one_for_each_layer():
    """At one input E σ'² C_W = 1, so that each of the L + 1 layers adds one: η_b = O(1/L), as the notes say."""
    kernel = gram(BIASES.limit(), np.asarray(INPUTS)).ntk
    np.testing.assert_allclose(np.diag(kernel), SMALL.depth + 1, rtol=1e-9)


def test_steps_are_at_the_edge_and_their_mean_is_that_of_all_siblings():
    setting = SMALL.setting(jax.random.key(0))
    observed = SMALL.observe(setting, jax.random.key(0))
    ratio = observed["step"] * setting.top[..., 0] / 2
    assert ratio.min() > 0.97 and ratio.max() < 1.06
    # were every step exactly at the edge, the mean would be 2/λ_max of the siblings' mean
    np.testing.assert_allclose(observed["mean_step"] * setting.top.mean(-1) / 2, ratio, rtol=1e-12)
