"""The claim xor-features: its cubes and starts, the descent's own records, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.features.xor_features.claim import XorFeatures, _first_targets
from steepest.claims.features.xor_features.experiment import cubes, directions, starts, train
from steepest.core.errors import UserError
from steepest.nn.losses import exponential, log_margin_risk
from steepest.nn.networks import Neurons, two_layer
from steepest.programs import parity_margins


def test_small_cubes_in_the_shape_of_large_ones_are_the_cubes():
    small, large = cubes((2, 4))
    assert small.shape == large.shape == (16, 4)
    rows, counts = np.unique(small, axis=0, return_counts=True)
    assert len(rows) == 4 and (counts == 4).all() and (small[:, 2:] == 0).all()
    np.testing.assert_allclose(np.linalg.norm(small, axis=1), 1)


def test_starts_are_balanced():
    rng = np.random.default_rng(0)
    start = starts(rng.normal(size=(5, 4)), rng.choice([-1.0, 1.0], 5), 0.3, 3)
    np.testing.assert_allclose(start.v**2, (start.w**2).sum(1))
    assert (start.w[:, 3] == 0).all()


def test_four_neurons_have_the_largest_margin():
    (x,) = cubes((5,))
    y = np.sign(x[:, 0] * x[:, 1])
    units, signs = directions(5)
    best = Neurons(jnp.asarray(units), jnp.asarray(signs))
    margins = y * np.asarray(two_layer(5, 4).apply(best, jnp.asarray(x))) / 8  # ‖θ‖² is 8
    assert margins.min() == pytest.approx(parity_margins(5, 2).first / 2)
    np.testing.assert_allclose(margins, margins.min())


def test_the_descent_records_margin_and_risk():
    (x,) = cubes((3,))
    y = np.sign(x[:, 0] * x[:, 1])
    rng = np.random.default_rng(1)
    start = starts(rng.normal(size=(12, 3)), rng.choice([-1.0, 1.0], 12), 0.1, 3)
    path = jax.jit(lambda start: train(x, y, start, 0.5, 200))(start)
    apply = two_layer(3, 12).apply
    risk = log_margin_risk(exponential, apply, jnp.asarray(x), jnp.asarray(y))
    assert float(path.risk[-1]) == pytest.approx(float(risk(path.params)))
    margin = (y * apply(path.params, x)).min() / sum((p**2).sum() for p in path.params)
    assert float(path.observed["margin"][-1]) == pytest.approx(float(margin))
    assert path.risk[-1] < path.risk[0]


def test_examples_of_no_weight_count_nothing():
    (x,) = cubes((3,))
    y = np.sign(x[:, 0] * x[:, 1])
    rng = np.random.default_rng(2)
    start = starts(rng.normal(size=(6, 3)), rng.choice([-1.0, 1.0], 6), 0.1, 3)
    some = np.array([1.0, 0, 1, 0, 0, 1, 1, 0])
    kept = some > 0
    one = jax.jit(lambda start: train(x, y, start, 0.5, 50, some))(start)
    two = jax.jit(lambda start: train(x[kept], y[kept], start, 0.5, 50))(start)
    np.testing.assert_allclose(one.params.w, two.params.w, rtol=1e-9)
    np.testing.assert_allclose(one.observed["margin"], two.observed["margin"], rtol=1e-9)


def test_targets_are_the_nearest_of_the_own_sign():
    claim = XorFeatures(dimensions=(3, 4, 5), seeds=3, width=20)
    setting = claim.setting(jax.random.key(0))
    targets = _first_targets(setting)
    units, signs = directions(5)
    assert (signs[targets] == setting.signs).all()
    assert (np.einsum("dshi,dshi->dsh", setting.noise, units[targets]) > 0).mean() > 0.7


@pytest.mark.parametrize("fields", [{"width": 3}, {"scales": (30.0,)}])
def test_fields_out_of_range(fields):
    claim = XorFeatures(**fields)
    hypotheses = tuple(claim.hypotheses(claim.setting(jax.random.key(0))))
    assert not all(hypothesis.holds for hypothesis in hypotheses)


@pytest.mark.parametrize("dimensions", [(5, 4), (4, 5, 4)])
def test_an_exponent_needs_increasing_dimensions(dimensions):
    with pytest.raises(UserError, match="increasing --dimensions"):
        XorFeatures(dimensions=dimensions)
