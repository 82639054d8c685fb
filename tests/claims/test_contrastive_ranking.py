"""The parts of a contrastive loss, and the constant of spread."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.bayes_and_transfer._contrastive import images_by_class, zipf
from steepest.measurement.quantities import SPREAD_CONSTANT, contrastive


def test_the_loss_of_all_negatives_has_two_parts_and_collisions_cost_a_bit():
    images = images_by_class(np.random.default_rng(0), 6)[0]
    features = images @ np.random.default_rng(6).standard_normal((64, 3))
    losses = jax.jit(contrastive)(jnp.asarray(features), jnp.asarray(zipf(1.0)))
    tau = (zipf(1.0) ** 2).sum()
    both = tau * losses.same + (1 - tau) * losses.different
    assert float(both) == pytest.approx(float(losses.un), rel=1e-12)
    assert losses.same > 1  # Jensen's inequality, as x⁺ and x⁻ are alike


def test_the_constant_of_spread_is_sharp_for_uniform_features():
    # n points evenly spaced in place of a uniform law, far out
    n = 20
    line = 100 * jnp.linspace(-1, 1, n)[None, :, None]
    losses = jax.jit(contrastive)(jnp.tile(line, (2, 1, 1)))
    share = float((losses.same - 1) / losses.spread)
    assert share == pytest.approx(SPREAD_CONSTANT * np.sqrt(1 - 1 / n**2), rel=0.005)
