"""Narrow networks: extremes against sampling, the constructions by hand, Adam against optax, ordinary fields."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.claims.expressivity._random_networks import random_network
from steepest.claims.expressivity.narrow_networks.claim import NarrowNetworks
from steepest.claims.expressivity.narrow_networks.experiment import (
    ROUNDING,
    WIDEST,
    adam,
    bounded,
    chain_layers,
    chain_outputs,
    chain_starts,
    distance_to_norm,
    extremes,
    running_maximum,
)
from steepest.core.experiment import seeded
from steepest.core.words import Verdict
from steepest.geometry import preactivations, relu_layers

TINY = NarrowNetworks(**NarrowNetworks.tiny)


@pytest.mark.parametrize("seed", range(4))
def test_extremes_are_those_that_sampling_approaches(seed):
    layers = random_network(np.random.default_rng(seed), (2, 4, 4), 2.0, 0.3)
    side = np.linspace(-1.5, 1.5, 301)
    x = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    values = preactivations(layers, x)[-1][:, 0]
    edge = np.abs(x).max(1) == 1.5
    exact = extremes(layers, 1.5)
    spread = exact.top - exact.bottom
    sampled = (values.max(), values.min(), values[edge].max(), values[edge].min())
    np.testing.assert_allclose(sampled, exact, atol=0.02 * spread)
    assert exact.top >= values.max() - 1e-12
    assert exact.bottom <= values.min() + 1e-12


def test_a_pyramid_is_bounded_and_a_ridge_is_not():
    # 1.1 − |x| − |y| needs width four in one layer; 1 − |x| two
    corners = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    pyramid = relu_layers([corners, -np.ones((1, 4))], [None, [1.1]])
    ridge = relu_layers([corners[:2], -np.ones((1, 2))], [None, [1.0]])
    assert bounded(pyramid) == 1
    assert extremes(pyramid).excess == pytest.approx(1 / 2)
    assert bounded(ridge) == 0
    assert extremes(ridge).excess == 0
    flat = relu_layers([np.zeros((1, 2)), np.ones((1, 1))])
    assert extremes(flat).excess == 0


@pytest.mark.parametrize("directions", [1, 2, 3, 8])
def test_the_running_maximum_is_a_maximum(directions):
    layers = running_maximum(directions)
    assert max(len(layer.matrix) for layer in layers) == 3
    turns = np.random.default_rng(0).random((500, 2))
    x = turns[:, :1] * np.stack([np.cos(9 * turns[:, 1]), np.sin(9 * turns[:, 1])], 1)
    angles = 2 * np.pi * np.arange(directions) / directions
    expected = (x @ np.stack([np.cos(angles), np.sin(angles)])).max(1)
    np.testing.assert_allclose(preactivations(layers, x)[-1][:, 0], expected, atol=1e-12)


def test_the_distance_to_the_norm_of_a_constant_is_a_half():
    half = relu_layers([np.zeros((1, 2)), np.zeros((1, 1))], [None, [0.5]])
    assert distance_to_norm(half) == pytest.approx(0.5)


def test_chains_are_no_wider_than_they_say_after_descent():
    start = chain_starts(np.random.default_rng(0), np.array([2, 4]))
    x = np.random.default_rng(1).standard_normal((30, 2))

    def one(chain):
        risk = lambda params: jnp.mean((chain_outputs(params, x) - x[:, 0] ** 2) ** 2)
        return adam(risk, chain, 20, 0.05)

    trained = jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(start))
    narrow = jax.tree.map(lambda part: part[0], trained)
    assert WIDEST == 4
    assert not narrow.first[2:].any()
    assert not narrow.others[:, 2:].any()
    assert not narrow.others[:, :, 2:].any()
    assert not narrow.readout[2:].any()
    for lane in range(2):
        chain = jax.tree.map(lambda part, lane=lane: part[lane], trained)
        outputs = preactivations(chain_layers(chain), x)[-1][:, 0]
        np.testing.assert_allclose(outputs, chain_outputs(chain, x), rtol=1e-5, atol=1e-6)


def test_adam_is_optax_s():
    risk = lambda w: jnp.sum(jnp.sin(w) * jnp.arange(1.0, 4.0))
    start = jnp.array([0.1, 2.0, -1.0])
    optimizer = optax.adam(optax.cosine_decay_schedule(0.1, 15))
    state = optimizer.init(start)
    w = start
    for _ in range(15):
        move, state = optimizer.update(jax.grad(risk)(w), state)
        w = w + move
    np.testing.assert_allclose(adam(risk, start, 15, 0.1), w, rtol=1e-5)


def judged(claim, seed=0):
    for_setting, for_observation = seeded(seed)
    setting = claim.setting(for_setting)
    predicted = claim.predict(setting)
    observed = claim.observe(setting, for_observation)
    rivals = claim.wrong_theories(setting, predicted)
    judgement = claim.judged(predicted, observed, rivals)
    return judgement.conclude(claim.hypotheses(setting), claim.headline), observed


def test_a_short_training_still_obeys_the_maximum_principle():
    _, observed = judged(TINY)
    for name in ("random", "disc_excess", "digits_excess"):
        assert observed[name].max() < 1e-9
    assert observed["error"].min() > 0.495


def test_what_is_hardly_trained_is_out_of_range_and_does_not_fail():
    _, observed = judged(TINY)
    conditions = {one.name: one.holds for one in TINY.run_conditions(observed)}
    assert not any(conditions[name] for name in ("networks", "steps", "blocks", "residuals"))
    assert conditions["step size"]
    assert all(one.holds for one in NarrowNetworks().run_conditions(observed))
    full = NarrowNetworks(**NarrowNetworks.full)
    assert all(one.holds for one in full.run_conditions(observed))


@pytest.mark.parametrize("c_b", [1e-6, 1e3])
def test_the_law_holds_for_small_and_large_biases(c_b):
    rng = np.random.default_rng(0)
    for depth in (2, 5, 10):
        for _ in range(20):
            layers = random_network(rng, (2, *(2,) * depth), 2.0, c_b)
            assert extremes(layers).excess <= ROUNDING


@pytest.mark.parametrize("fields", [NarrowNetworks.out_of_scope])
def test_wider_networks_are_out_of_range(fields):
    assert judged(replace(TINY, **fields))[0][0] is Verdict.OUT_OF_RANGE
