"""Sizes of updates: both orders against chains that are followed to the end, Muon against an exact spectrum."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest import kit
from steepest.claims.training.update_size import experiment, theory
from steepest.claims.training.update_size.claim import UpdateSize
from steepest.core.errors import UserError

RNG = np.random.default_rng(0)


def test_without_spread_of_v_it_is_the_ratio_of_means():
    moments = theory.gaussian(np.array([0.0, 0.5, 2.0]))
    wanted = (moments.mean**2 + 0.1 / 1.9) / (moments.mean**2 + 1)
    np.testing.assert_allclose(
        theory.mean_square(moments, 0.9, 1 - 1e-9, 10**11), wanted, rtol=1e-6
    )


def test_the_first_order_by_all_coins():
    """Every sequence of a gradient that is 2 or 0, weighed by its chance, with the powers of β summed by hand."""
    steps = 12
    beta1 = 0.3
    beta2 = 0.98
    powers = np.arange(steps)[::-1]
    of_m = (1 - beta1) * beta1**powers / (1 - beta1**steps)
    of_v = (1 - beta2) * beta2**powers / (1 - beta2**steps)
    coins = np.array(list(itertools.product((0.0, 2.0), repeat=steps)))
    squares = (coins @ of_m) ** 2
    v = coins**2 @ of_v
    # to first order in v's spread about its mean
    mean = v.mean()
    wanted = squares.mean() / mean * (1 - np.cov(squares, v)[0, 1] / squares.mean() / mean)
    wanted += squares.mean() / mean * v.var() / mean**2
    moments = theory.Moments(*(np.array(value) for value in (1.0, 1.0, 0.0, 1.0)))
    assert theory.mean_square(moments, beta1, beta2, steps) == pytest.approx(wanted, rel=1e-3)


def test_moments_of_batches_by_their_sums():
    values = np.array([0.0, 0.0, 1.0, 3.0])
    pairs = np.array([np.mean(pair) for pair in itertools.product(values, repeat=2)])
    away = lambda array, power: ((array - array.mean()) ** power).mean()
    moments = lambda array: theory.Moments(array.mean(), *(away(array, k) for k in (2, 3, 4)))
    np.testing.assert_allclose(moments(values).of_means(2), moments(pairs))


def test_muons_iteration_by_singular_values():
    matrices = RNG.standard_normal((1, 3, 6, 9))
    values = np.linalg.svd(matrices, compute_uv=False)
    values /= np.linalg.norm(values, axis=-1, keepdims=True)
    wanted = np.sqrt((theory.polynomial(values) ** 2).sum() / (3 * 6 * 9))
    np.testing.assert_allclose(experiment.muon(matrices), [wanted])


@pytest.mark.parametrize("large", [40, 90])
def test_muons_size_by_draws(large):
    matrices = RNG.standard_normal((1, 200, 40, large))
    drawn = experiment.muon(matrices)[0] * large**0.5
    assert theory.muon_size(40, large) == pytest.approx(drawn, rel=5e-3)


def test_noise_that_is_repeated_once_is_optax_on_fresh_noise():
    """The lanes of one program are the optimizer by itself."""
    key = jax.random.key(0)
    lanes = (np.array([0.5, 0.9]), np.array([0.9, 0.95]), np.array([0.0, 1.0]))
    sizes = experiment.on_noise(key, lanes, 7, 40, 1)
    for lane, size in enumerate(sizes):
        beta1, beta2, mean = [float(values[lane]) for values in lanes]
        adam = optax.scale_by_adam(beta1, beta2, experiment.EPSILON)
        state = adam.init(jnp.zeros(7))
        squares = []
        for step in range(40):
            noise = jax.random.normal(jax.random.fold_in(key, step), (7,))
            update, state = adam.update(mean + noise, state)
            squares.append(float((update**2).mean()))
        assert float(size) == pytest.approx(np.mean(squares[20:]) ** 0.5, rel=1e-4)


def test_weights_without_a_gradient_do_not_count():
    zero = np.zeros((2, 3))
    moments = theory.Moments(zero, zero, zero, zero)
    assert not experiment.told(moments, 8, 0.999, 1000).any()


def test_fields_that_do_not_go_together():
    with pytest.raises(UserError, match="--small 64"):
        UpdateSize(small=100)


def test_the_point_is_a_lane_of_the_claim():
    claim = UpdateSize(
        beta1=(0.8, 0.9), beta2=(0.95,), agreement=(0.3,), weights=7, steps=40, seeds=3
    )
    point = UpdateSize.point.of(claim)
    assert point.predict(None)["adam"] == pytest.approx(claim.on_noise()[0, 0, 0])
    key = jax.random.key(1)
    sizes = claim.adam_on_noise(key)[0][:, 0]
    np.testing.assert_allclose(kit.compiled(point.observe)(None, key)["adam"], sizes, rtol=1e-4)
