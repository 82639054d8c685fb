"""Growth of the mean square: the matrix against all batches one by one, steps against loops."""

import itertools

import numpy as np
import pytest

from steepest.claims.training.batch_step import experiment, theory
from steepest.claims.training.batch_step.claim import BatchStep
from steepest.claims.training.batch_step.point import growth_of_single_runs
from tests.claims.numpy_points import KEY, generator, observed_at

RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 2))


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_growth_by_all_batches(batch):
    """The second moment that a step tends to is multiplied by the factor, averaged over every batch."""
    eta = 0.3
    law = theory.growth(X, eta, theory.share(batch, 5))
    after = []
    for chosen in itertools.combinations(range(5), batch):
        rows = X[list(chosen)]
        step = np.eye(2) - eta * rows.T @ rows / batch
        after.append(step @ law.moment @ step.T)
    np.testing.assert_allclose(np.mean(after, 0), law.factor * law.moment, atol=1e-12)
    assert np.linalg.eigvalsh(law.moment).min() > -1e-12


def test_full_gradients_leave_from_the_usual_step_on():
    top = np.linalg.eigvalsh(X.T @ X / 5)[-1]
    assert theory.growth(X, 1.99 / top, 0.0).factor < 1 < theory.growth(X, 2.01 / top, 0.0).factor
    assert theory.growth(X, 1.9 / top, 1.0).factor > theory.growth(X, 1.9 / top, 0.2).factor > 1


def test_batches_hold_each_example_as_often():
    weights = experiment.batches(RNG, 4000, 5, 2, replaced=False)
    np.testing.assert_allclose(weights.sum(1), 1)
    assert ((weights > 0).sum(1) == 2).all()
    np.testing.assert_allclose(weights.mean(0), 0.2, atol=0.02)
    assert ((experiment.batches(RNG, 4000, 5, 2, replaced=True) > 0).sum(1) == 1).any()


def test_steps_by_a_loop():
    errors = RNG.standard_normal((6, 2))
    moved = experiment.step(np.random.default_rng(1), X, errors, 0.2, 2, replaced=False)
    weights = experiment.batches(np.random.default_rng(1), 6, 5, 2, replaced=False)
    for error, weight, after in zip(errors, weights, moved, strict=True):
        gradient = sum(w * x * (x @ error) for w, x in zip(weight, X, strict=True))
        np.testing.assert_allclose(after, error - 0.2 * gradient)


def test_growth_of_many_runs_is_the_law():
    law = theory.growth(X, 0.5, theory.share(2, 5))
    drawn = experiment.growth(RNG, X, law.moment, 0.5, 2, 100_000)
    assert drawn == pytest.approx(law.factor, rel=0.03)


def test_the_point_is_one_step_of_the_claim():
    claim = BatchStep(batches=(2,), parts=(0.4,), runs=50, seeds=3)
    point = BatchStep.point.of(claim)
    setting = claim.setting(KEY)
    growths = claim.growths(setting, generator(), replaced=False)
    observed = observed_at(point, point.setting(KEY))
    np.testing.assert_allclose(observed["growth"], growths[:, 0, 0])
    wanted = claim.predict(setting)["growth"][0, 0]
    assert point.predict(point.setting(KEY))["growth"] == pytest.approx(wanted)


def test_single_runs_of_full_gradients_grow_by_the_largest_factor():
    eta = 3 / np.linalg.eigvalsh(X.T @ X / 5)[-1]
    growth = growth_of_single_runs(RNG, X, eta, 5)
    np.testing.assert_allclose(growth, np.log(2), atol=0.02)
