"""Group policy gradients: drifts by all groups, times by steps of the equation, updates by autodiff."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.training.group_policy_gradient import experiment, theory
from steepest.claims.training.group_policy_gradient.claim import GroupPolicyGradient
from steepest.claims.training.group_policy_gradient.experiment import Lanes
from tests.claims.numpy_points import generator, observed_at

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("rule", [experiment.MEAN, experiment.DEVIATION])
def test_drifts_by_all_groups(rule):
    """Every group of three from three answers, by its chance, moves the logits; wrong ones are alike."""
    p = 0.3
    group = 3
    chances = np.array([p, 0.35, 0.35])
    moved = np.zeros(3)
    for drawn in itertools.product(range(3), repeat=group):
        rewards = np.array([answer == 0 for answer in drawn], float)
        advantages = rewards - rewards.mean()
        if rule == experiment.DEVIATION and rewards.std() > 0:
            advantages /= rewards.std()
        for answer, advantage in zip(drawn, advantages, strict=True):
            gradient = np.eye(3)[answer] - chances
            moved += chances[list(drawn)].prod() * advantage * gradient / group
    drift = {experiment.MEAN: theory.mean_of_group, experiment.DEVIATION: theory.deviation_of_group}
    assert moved[0] - moved[1] == pytest.approx(drift[rule](group)(p) * 3 / 2)


def test_times_by_small_steps():
    z = np.log(0.1 / 0.9)
    time = 0.0
    step = 1e-3
    drift = theory.deviation_of_group(5)
    while z < 0:
        z += step * drift(1 / (1 + np.exp(-z))) * 4 / 3
        time += step
    assert theory.time_to_half(drift, 0.1, 4) == pytest.approx(time, rel=2e-3)


def test_large_groups_are_the_limit():
    small = theory.deviation_of_group(4000)
    for p in (0.05, 0.5):
        assert small(p) == pytest.approx(theory.large_group(p), rel=5e-3)


def test_updates_are_the_gradient_of_the_sampled_objective():
    chances = np.array([[0.2, 0.5, 0.3]])
    lanes = Lanes(*(np.array([value]) for value in (experiment.DEVIATION, 6, 0.2, True)))
    update = experiment.update(np.random.default_rng(5), lanes, chances)[0]
    counts = np.random.default_rng(5).multinomial([6], chances)[0]
    rewards = np.repeat(np.eye(3)[0], counts)
    advantages = (rewards - rewards.mean()) / rewards.std()
    answers = np.repeat(np.arange(3), counts)
    objective = lambda logits: (jax.nn.log_softmax(logits)[answers] * advantages).mean()
    np.testing.assert_allclose(update, jax.grad(objective)(jnp.log(chances[0])), atol=1e-7)


def test_what_never_arrives_takes_all_of_the_time():
    lanes = Lanes(*(np.array([value]) for value in (experiment.MEAN, 4, 0.01, True)))
    assert experiment.learn(RNG, lanes, 4, 0.1, 1.0).tolist() == [1.0]


def test_slopes_are_between_the_smallest_two():
    assert theory.slope(np.array([5.0, 1.0, 2.0]), (0.3, 0.2, 0.1)) == pytest.approx(-1)


def test_the_point_is_one_start_of_the_claim():
    claim = GroupPolicyGradient(groups=(8,), starts=(0.2, 0.1), questions=5, seeds=3)
    point = GroupPolicyGradient.point.of(claim)
    law = claim.predict(None)["time"]
    predicted = point.predict(None)
    observed = observed_at(point)
    of_rules = [np.repeat(rule, 15) for rule in (experiment.MEAN, experiment.DEVIATION)]
    lanes = Lanes(np.concatenate(of_rules), np.full(30, 8), np.full(30, 0.2), np.full(30, True))
    arrived = experiment.learn(generator(), lanes, claim.answers, claim.lr, 30.0)
    for place, rule in enumerate(("mean", "deviation")):
        assert predicted[rule] == pytest.approx(law[place, 0, 0])
        wanted = arrived.reshape(2, 3, 5)[place].mean(1)
        np.testing.assert_allclose(observed[rule], wanted)
