"""Sizes of updates: by chains that are followed to the end, by coins, and by draws of matrices."""

import itertools

import numpy as np
import optax
import pytest

from steepest.optimizers import (
    Adam,
    Moments,
    Momentum,
    Muon,
    gaussian_moments,
    mean_square_of_adam,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "rule", [Momentum(), Momentum(0.8), Momentum(0.8, nesterov=True), Momentum(0.5, dampening=0.5)]
)
def test_momentum_by_the_weights_of_each_gradient(rule):
    """The weight of a gradient is what a rule makes of a single one, step after step."""
    weights = []
    velocity = 0.0
    for number in range(200):
        gradient = float(number == 0)
        velocity = rule.beta * velocity + (1 - rule.dampening) * gradient
        weights.append(gradient + rule.beta * velocity if rule.nesterov else velocity)
    weights = np.array(weights)
    wanted = np.sqrt((2.0 * weights.sum()) ** 2 + 3.0**2 * (weights**2).sum())
    assert rule.update_size(2.0, 3.0) == pytest.approx(wanted)


def test_adam_without_spread_of_v_is_the_ratio_of_means():
    signal = np.array([0.0, 0.5, 2.0])
    square = mean_square_of_adam(gaussian_moments(signal), 0.9, 1 - 1e-9, 10**11)
    np.testing.assert_allclose(Adam(0.9).update_size(signal) ** 2, square, rtol=1e-6)


def test_adam_by_optax_on_noise():
    adam = optax.scale_by_adam(0.8, 0.9995, 1e-12)
    state = adam.init(np.zeros(400, np.float32))
    squares = []
    for _ in range(1500):
        noise = (0.5 + RNG.standard_normal(400)).astype(np.float32)
        update, state = adam.update(noise, state)
        squares.append(float((update**2).mean()))
    assert Adam(0.8).update_size(0.5) == pytest.approx(np.mean(squares[500:]) ** 0.5, rel=0.01)


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
    moments = Moments(*(np.array(value) for value in (1.0, 1.0, 0.0, 1.0)))
    assert mean_square_of_adam(moments, beta1, beta2, steps) == pytest.approx(wanted, rel=1e-3)


def test_moments_of_batches_by_their_sums():
    values = np.array([0.0, 0.0, 1.0, 3.0])
    pairs = np.array([np.mean(pair) for pair in itertools.product(values, repeat=2)])
    away = lambda array, power: ((array - array.mean()) ** power).mean()
    moments = lambda array: Moments(array.mean(), *(away(array, k) for k in (2, 3, 4)))
    np.testing.assert_allclose(moments(values).of_means(2), moments(pairs))


@pytest.mark.parametrize("large", [40, 90])
def test_muon_by_singular_values_of_draws(large):
    matrices = RNG.standard_normal((200, 40, large))
    values = np.linalg.svd(matrices, compute_uv=False)
    values /= np.linalg.norm(values, axis=-1, keepdims=True)
    drawn = np.sqrt((Muon().polynomial(values) ** 2).sum(1).mean() / (40 * large))
    assert Muon().update_size(40, large) == pytest.approx(drawn, rel=5e-3)
    assert Muon().update_size(large, 40) == Muon().update_size(40, large)
