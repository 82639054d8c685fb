"""Margins of modular addition: networks built by hand, bounds by search, steps against optax."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import minimize_scalar

from steepest.claims.training.modular_margin import experiment, theory
from steepest.claims.training.modular_margin.claim import ModularMargin
from tests.claims.numpy_points import generator, observed_at

RNG = np.random.default_rng(0)


def built(p, frequencies):
    """Return weights of cosines at three phases each, in pairs whose squares cancel, ``(3, 1, neurons, p)``."""
    places = 2 * np.pi * np.arange(p) / p
    neurons = []
    thirds = 2 * np.pi * np.arange(3) / 3
    for k, first, second, sign in itertools.product(frequencies, thirds, thirds, (1, -1)):
        u = np.cos(k * places + first)
        v = sign * np.cos(k * places + second)
        w = sign * np.cos(k * places + first + second)
        neurons.append((u, v, w))
    return np.array(neurons).transpose(1, 0, 2)[:, None]


@pytest.mark.parametrize("p", [5, 9, 11])
def test_all_frequencies_reach_the_margin(p):
    learned = experiment.learned(built(p, range(1, (p + 1) // 2)), experiment.addition(p))
    assert learned.margin[0] == pytest.approx(float(theory.largest_margin(p)))
    assert learned.in_one_frequency[0] == pytest.approx(1)
    assert learned.least[0] == pytest.approx(2 / (p - 1))
    assert learned.most[0] == pytest.approx(2 / (p - 1))


def test_one_frequency_reaches_its_margin():
    learned = experiment.learned(built(7, [1]), experiment.addition(7))
    assert learned.margin[0] == pytest.approx(float(theory.one_frequency(7)))
    assert learned.least[0] == 0
    assert learned.most[0] == pytest.approx(1)


def test_no_neuron_has_a_larger_mean_margin():
    """By steps up from many starts, over neurons of norm one."""
    p = 5
    table = jnp.asarray(experiment.addition(p))
    contrast = (table - (1 - table) / (p - 1)) / p**2

    def mean_margin(neuron):
        u, v, w = neuron / jnp.linalg.norm(neuron)
        return (((u[:, None] + v) ** 2).ravel()[:, None] * w * contrast).sum()

    @jax.jit
    def climb(neuron):
        step = lambda x, _: (x + 20 * jax.grad(mean_margin)(x), None)
        return mean_margin(jax.lax.scan(step, neuron, None, 400)[0])

    best = jax.vmap(climb)(jnp.asarray(RNG.standard_normal((30, 3, p))))
    assert float(best.max()) == pytest.approx(float(theory.largest_margin(p)), rel=1e-4)


@pytest.mark.parametrize("decay", [1e-4, 2e-3])
def test_size_is_the_least_of_risk_and_decay(decay):
    p = 7
    margin = float(theory.largest_margin(p))
    cost = lambda size: np.log1p((p - 1) * np.exp(-margin * size)) + decay * size
    least = minimize_scalar(cost, bounds=(0, 3000), method="bounded", options={"xatol": 1e-6})
    assert float(theory.size(p, decay)) == pytest.approx(least.x, rel=1e-4)


def test_no_size_is_left_at_the_largest_decay():
    assert float(theory.size(7, 0.9999 * theory.no_size_from(7))) == pytest.approx(0, abs=0.1)


def test_slight_decay_is_the_limit():
    ratio = theory.size(5, 1e-12) / theory.size_of_slight_decay(5, 1e-12)
    assert float(ratio) == pytest.approx(1, abs=1e-6)


def risk(weights, correct, decay):
    """Return cross-entropy and decay of one network, ``(3, neurons, p)``."""
    u, v, w = weights
    p = w.shape[-1]
    sums = (u[:, :, None] + v[:, None, :]).reshape(len(u), p * p)
    scores = (sums**2).T @ w
    right = (scores * correct).sum(-1)
    loss = (jax.nn.logsumexp(scores, axis=-1) - right).mean()
    return loss + decay * ((weights**2).sum((0, 2)) ** 1.5).sum()


def test_training_is_adam_of_risk_and_decay():
    correct = experiment.addition(5)
    decay = 0.01
    steps = 4
    trained = experiment.train(np.random.default_rng(1), correct, 6, np.array([decay]), steps)
    start = experiment.SPREAD * np.random.default_rng(1).standard_normal((3, 1, 6, 5))
    weights = jnp.asarray(start[:, 0], jnp.float32)
    rate = lambda number: experiment.RATE * jnp.minimum(1, 2 * (1 - (number + 1) / steps))
    adam = optax.adam(rate, experiment.BETA1, experiment.BETA2, experiment.EPSILON)
    state = adam.init(weights)
    slope = jax.jit(jax.grad(risk))
    for _ in range(steps):
        update, state = adam.update(slope(weights, correct, decay), state)
        weights = optax.apply_updates(weights, update)
    np.testing.assert_allclose(trained.weights[:, 0], weights, rtol=1e-3, atol=1e-5)


def test_margin_is_the_smallest_by_loops():
    weights = RNG.standard_normal((3, 1, 4, 5))
    u, v, w = weights[:, 0]
    gaps = []
    for a, b, c in itertools.product(range(5), repeat=3):
        scores = sum((u[i, a] + v[i, b]) ** 2 * w[i] for i in range(4))
        if c != (a + b) % 5:
            gaps.append(scores[(a + b) % 5] - scores[c])
    size = sum(np.linalg.norm(weights[:, 0, i]) ** 3 for i in range(4))
    learned = experiment.learned(weights, experiment.addition(5))
    assert learned.size[0] == pytest.approx(size)
    assert learned.margin[0] == pytest.approx(min(gaps) / size)


def test_labels_are_sums():
    table = experiment.addition(5).reshape(5, 5, 5)
    assert table[3, 4].argmax() == 2
    assert (experiment.random_table(RNG, 5).sum(1) == 1).all()


def test_even_numbers_and_large_decays_are_out_of_range():
    claim = ModularMargin(primes=(5, 6), decays=(1e-3, 0.1))
    assert not any(condition.holds for condition in claim.hypotheses(None))


def test_the_point_is_one_training_of_the_claim():
    claim = ModularMargin(primes=(5,), decays=(0.002,), neurons=3, steps=40, seeds=3)
    point = ModularMargin.point.of(claim)
    wanted = claim.learned(generator(), experiment.addition(5), 40)
    observed = observed_at(point)
    for name, values in observed.items():
        np.testing.assert_allclose(values, wanted[name][:, 0])
    law = claim.predict(None)
    predicted = point.predict(None)
    assert predicted["margin"] == law["margin"][0, 0]
    assert predicted["size"] == law["size"][0, 0]
