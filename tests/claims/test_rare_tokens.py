"""Learning words: times against integrals and recursions, moments against SciPy, steps against loops and optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.integrate import quad
from scipy.stats import binom

from steepest.claims.training.rare_tokens import experiment, theory
from steepest.claims.training.rare_tokens.claim import RareTokens
from steepest.claims.training.rare_tokens.point import vocabulary_of
from tests.claims.numpy_points import KEY, generator, observed_at

CHANCE = np.array([0.4, 0.1, 0.03])


def test_frequencies_are_a_power_of_the_rank():
    chances = theory.frequencies(50, 1.3)
    assert chances.sum() == pytest.approx(1)
    assert chances[9] / chances[0] == pytest.approx(10**-1.3)


def test_time_of_descent_by_quadrature():
    """Right score and others move by ηπ(1 − P) and ηπ(1 − P)/(V − 1), and the time is an integral over the gap."""
    vocabulary = 12
    eta = 0.2

    def slowness(gap):
        half_way = 1 / (1 + 11 * np.exp(-gap))
        return 1 / (eta * 0.1 * (1 - half_way) * (1 + 1 / 11))

    wanted = quad(slowness, 0, np.log(11))[0]
    assert theory.descent_steps(vocabulary, CHANCE, eta)[1] == pytest.approx(wanted, rel=1e-6)


def test_moments_are_those_of_a_binomial():
    batch = 7
    for order, values in enumerate(theory.moments(batch, CHANCE), start=1):
        wanted = [binom.moment(order, batch, chance) / batch**order for chance in CHANCE]
        np.testing.assert_allclose(values, wanted, rtol=1e-9)


def test_update_in_the_limit():
    np.testing.assert_allclose(
        theory.update(20, CHANCE), (1 + (1 - CHANCE) / (20 * CHANCE)) ** -0.5
    )


def test_fluctuation_by_many_batches():
    """The ratio of the two averages of random shares has the mean that the next order says."""
    beta1 = 0.9
    beta2 = 0.98
    rng = np.random.default_rng(0)
    m = np.full(2000, 0.1)
    v = np.full(2000, theory.moments(16, CHANCE[1:2])[1])
    ratios = []
    for step in range(700):
        share = rng.binomial(16, 0.1, size=2000) / 16
        m = beta1 * m + (1 - beta1) * share
        v = beta2 * v + (1 - beta2) * share**2
        if step >= 300:
            ratios.append((m / np.sqrt(v)).mean())
    limit = theory.update(16, CHANCE[1:2])
    wanted = limit * (1 + theory.fluctuation(16, CHANCE[1:2], beta1, beta2))
    assert np.mean(ratios) == pytest.approx(wanted[0], rel=0.003)


def test_lag_by_the_mean_recursion():
    """With full gradients Adam's scores follow two numbers, whose recursion shows the steps that are lost."""
    vocabulary = 30
    eta = 0.0004
    gap = 0.0
    m = 0.0
    v = 0.0
    for count in range(1, 20_000):
        pull = 1 - 1 / (1 + (vocabulary - 1) * np.exp(-gap))
        m = 0.9 * m + 0.1 * pull
        v = 0.99 * v + 0.01 * pull**2
        gap += 2 * eta * (m / (1 - 0.9**count)) / np.sqrt(v / (1 - 0.99**count))
        if gap >= np.log(vocabulary - 1):
            break
    lost = count - np.log(vocabulary - 1) / (2 * eta)
    assert theory.lag(vocabulary, 0.9, 0.99) == pytest.approx(lost, rel=0.05)


def test_gradients_are_those_of_the_cross_entropy():
    rng = np.random.default_rng(1)
    scores = rng.standard_normal((2, 3, 5))
    share = rng.random((2, 3))
    targets = np.array([4, 0, 2])

    def loss(scores):
        logs = jax.nn.log_softmax(scores)
        return -(share * logs[:, jnp.arange(3), targets]).sum()

    with jax.enable_x64(True):
        wanted = jax.grad(loss)(jnp.asarray(scores))
    slope = experiment.gradient(experiment.probabilities(scores), share, targets)
    np.testing.assert_allclose(slope, wanted, atol=1e-12)


@pytest.mark.parametrize("betas", [None, (0.9, 0.99)], ids=["descent", "adam"])
def test_steps_are_those_of_optax(betas):
    chances = theory.frequencies(4, 1.0)
    words = np.array([0, 2])
    targets = np.array([1, 3])
    eta = 0.3 if betas is None else 0.02
    when = experiment.steps_to_half(
        np.random.default_rng(2), chances, words, targets, 8, eta, 1, betas
    )
    adam = optax.adam(eta, 0.9, 0.99, experiment.EPSILON)
    optimizer = optax.sgd(eta) if betas is None else adam
    rng = np.random.default_rng(2)
    scores = jnp.zeros((2, 4))
    state = optimizer.init(scores)
    step = jax.jit(optimizer.update)
    learned = np.full(2, -1)
    for taken in range(int(when.max()) + 1):
        model = np.asarray(jax.nn.softmax(scores))
        reached = model[np.arange(2), targets] >= 0.5
        learned = np.where((learned < 0) & reached, taken, learned)
        share = experiment.shares(rng, chances, words, 8, 1)
        slope = experiment.gradient(model[None], share, targets)[0]
        update, state = step(jnp.asarray(slope), state)
        scores = scores + update
    np.testing.assert_array_equal(when[0], learned)


def test_shares_of_words_in_a_batch():
    chances = theory.frequencies(6, 1.0)
    share = experiment.shares(np.random.default_rng(3), chances, np.array([0, 5]), 10, 20_000)
    np.testing.assert_allclose(share.mean(0), chances[[0, 5]], atol=0.003)
    np.testing.assert_allclose((share * 10) % 1, 0, atol=1e-9)


def test_the_point_is_the_claims_commonest_and_rarest_word():
    claim = RareTokens(vocabulary=8, words=(1, 8), batches=(16,), seeds=3)
    observed = observed_at(RareTokens.point.of(claim))
    rng = generator()
    setting = claim.setting(KEY)
    descent = claim.trainings(setting, rng, claim.descent_step, None)
    adam = claim.trainings(setting, rng, claim.adam_step, (claim.beta1, claim.beta2))
    np.testing.assert_array_equal(observed["descent"], descent[:, 0])
    np.testing.assert_array_equal(observed["adam"], adam[:, 0])


def test_the_vocabulary_whose_rarest_word_has_a_chance():
    for alpha in (0.3, 1.2):
        chance = theory.frequencies(20, alpha)[-1]
        assert vocabulary_of(alpha, chance) == pytest.approx(20)
    assert np.isnan(vocabulary_of(0.1, 1e-9))
