"""Contrastive losses against plain loops over triples, and the bounds that hold for every representation."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement.quantities import SPREAD_CONSTANT, contrastive


def bits(v):
    return np.log2(1 + np.exp(-v))


def by_loops(features, rho):
    """L_un, L^=, L^≠ and L_sup, one triple after the other."""
    classes, n, _ = features.shape
    un = same = different = supervised = 0.0
    tau = sum(rho**2)
    for c, d in itertools.product(range(classes), repeat=2):
        weight = rho[c] * rho[d]
        for i, j, m in itertools.product(range(n), repeat=3):
            loss = bits(features[c, i] @ (features[c, j] - features[d, m])) / n**3
            un += weight * loss
            same += weight * loss / tau * (c == d)
            different += weight * loss / (1 - tau) * (c != d)
        for i in range(n):
            v = features[c, i] @ (features[c].mean(0) - features[d].mean(0))
            supervised += weight * bits(v) / n / (1 - tau) * (c != d)
    return un, same, different, supervised, tau


@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_losses_are_those_of_all_triples(scale):
    rng = np.random.default_rng(0)
    features = scale * rng.standard_normal((3, 4, 2))
    rho = np.array([0.5, 0.3, 0.2])
    losses = contrastive(jnp.asarray(features), jnp.asarray(rho))
    np.testing.assert_allclose(losses[:5], by_loops(features, rho), rtol=1e-12)
    spread = 0.0
    for c in range(3):
        covariance = np.cov(features[c].T, bias=True)
        forms = np.einsum("ik,kl,il->i", features[c], covariance, features[c])
        spread += rho[c] ** 2 * np.sqrt(forms).mean() / sum(rho**2)
    assert float(losses.spread) == pytest.approx(spread)


def test_bounds_hold_for_wild_representations():
    rng = np.random.default_rng(1)
    scales = 10 ** rng.uniform(-2, 2, (50, 1, 1, 1))
    features = jnp.asarray(scales * rng.standard_t(1.5, (50, 4, 5, 3)))
    shares = jnp.asarray(rng.dirichlet(np.ones(4), 50))
    losses = jax.jit(jax.vmap(contrastive))(features, shares)
    slack = (losses.un - losses.collision) / (1 - losses.collision) - losses.supervised
    assert np.all(slack > -1e-12 * losses.un)
    assert np.all(losses.same >= 1 - 1e-12)
    assert np.all(losses.same - 1 <= SPREAD_CONSTANT * losses.spread)


def test_uniform_features_reach_the_spread_constant():
    line = 300 * jnp.linspace(-1, 1, 60)[None, :, None]
    losses = contrastive(jnp.tile(line, (2, 1, 1)))
    assert float((losses.same - 1) / losses.spread) == pytest.approx(SPREAD_CONSTANT, rel=1e-3)


def test_zero_costs_one_bit():
    losses = contrastive(jnp.zeros((4, 3, 2)))
    np.testing.assert_allclose(losses[:4], 1)
    assert float(losses.collision) == pytest.approx(0.25)


def test_other_test_shares_change_the_supervised_loss_alone():
    features = jnp.asarray(np.random.default_rng(2).standard_normal((3, 4, 2)))
    equal = contrastive(features)
    other = contrastive(features, test_shares=jnp.array([0.6, 0.3, 0.1]))
    assert other.supervised != equal.supervised
    assert other.un == equal.un
    assert float(other.supervised) == pytest.approx(
        by_loops(np.asarray(features), np.array([0.6, 0.3, 0.1]))[3]
    )


@pytest.mark.parametrize(
    ("shape", "shares"), [((3, 4), None), ((1, 4, 2), None), ((3, 4, 2), jnp.ones(2))]
)
def test_bad_input_is_refused(shape, shares):
    with pytest.raises(UserError, match="contrastive"):
        contrastive(jnp.ones(shape), shares)
