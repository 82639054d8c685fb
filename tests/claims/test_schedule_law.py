"""Schedules: the recursion against all products of weights at once, SGD against a loop."""

import numpy as np

from steepest.claims.training.schedule_law import experiment, theory
from steepest.claims.training.schedule_law.claim import ScheduleLaw
from steepest.claims.training.schedule_law.point import two_schedules
from tests.claims.numpy_points import KEY, generator, observed_at

RNG = np.random.default_rng(0)


def test_the_recursion_by_the_whole_second_moment():
    """M ← M − η(ΛM + MΛ) + η²((1 + 1/B)ΛMΛ + Λ(tr ΛM + σ²)/B), for a start with products of weights."""
    problem = theory.power_laws(4, 1.5, 1.75, 0.3, 2)
    lam = np.diag(problem.variances)
    w = np.sqrt(problem.squares)
    moment = np.outer(w, w)
    steps = np.array([0.3, 0.1, 0.5])
    risks = [np.trace(lam @ moment)]
    for eta in steps:
        noise = (np.trace(lam @ moment) + problem.noise) / 2 * lam
        moment = (
            moment
            - eta * (lam @ moment + moment @ lam)
            + eta**2 * (1.5 * lam @ moment @ lam + noise)
        )
        risks.append(np.trace(lam @ moment))
    np.testing.assert_allclose(theory.mean_risk(problem, steps), risks)


def test_without_batches_it_is_full_descent():
    problem = theory.power_laws(3, 1.5, 1.75, 0.3, 1)
    steps = np.array([0.2, 0.4])
    shrunk = np.prod([(1 - eta * problem.variances) ** 2 for eta in steps], 0)
    last = theory.mean_risk(problem, steps, stochastic=0.0)[-1]
    np.testing.assert_allclose(last, problem.variances @ (shrunk * problem.squares))


def test_one_step_of_many_runs_is_the_recursion():
    problem = theory.power_laws(3, 1.5, 1.75, 0.3, 2)
    steps = np.array([[0.4]])
    risk = experiment.run(RNG, problem, steps, 40_000, (0, 1))
    np.testing.assert_allclose(risk[0], theory.mean_risk(problem, steps[0]), rtol=0.03)


def test_schedules_of_one_sum_have_one_sum():
    claim = ScheduleLaw()
    sums = claim.schedules().sum(1) / claim.steps / claim.lr
    np.testing.assert_allclose(sums[1:4], 0.525, rtol=1e-6)
    assert sums[0] == 1
    assert sums[4] > 0.8


def test_signs_are_signs():
    assert set(experiment.signs(RNG, (50,)).tolist()) == {-1.0, 1.0}


def test_the_point_is_two_of_the_claims_schedules():
    claim = ScheduleLaw(dimension=5, steps=20, runs=30, seeds=3)
    point = ScheduleLaw.point.of(claim)
    schedules = claim.schedules()[[2, 1]]
    np.testing.assert_allclose(two_schedules(claim.lr, claim.steps), schedules)
    problem = claim.setting(KEY).problem
    rng = generator()
    wanted = [experiment.run(rng, problem, schedules, 30, (20,))[:, 0] for _ in range(3)]
    observed = observed_at(point)
    np.testing.assert_allclose(
        np.stack([observed["cosine"], observed["level"]], 1), wanted, rtol=1e-5
    )
    law = claim.risks(claim.setting(KEY))[:, -1]
    assert point.predict(None)["cosine"] == law[2]
    assert point.predict(None)["level"] == law[1]
