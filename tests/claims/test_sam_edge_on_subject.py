"""The edge of sharpness-aware steps on a reader's network: steps against a loop, readings, what is out of range."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims._descents_of_subjects import Pilot, walk
from steepest.claims.training.sam_edge.on_subject import (
    BySam,
    Reading,
    SamEdgeOnSubject,
    training_of,
)
from steepest.core.words import Verdict
from steepest.kit import Observation
from steepest.kit.subjects import Networks
from steepest.measurement import Builder
from steepest.measurement.adapters import subject
from tests.claims.on_subject import asked, broken, classifier, rejections
from tests.extras import need
from tests.subjects import models
from tests.subjects.test_claims import flat_risk


def small(seed=0):
    return models.standard(seed, width=0.2)


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_steps_are_a_loop_of_gradients_ahead(beta):
    with jax.enable_x64(True):
        risk, w = flat_risk(small)
        slope = jax.jit(jax.grad(risk))
        velocity = 0 * w
        for _, now, _ in walk(subject(*small()), BySam(0.3, beta), 0.1, 5):
            np.testing.assert_allclose(now.values(), w, rtol=1e-5, atol=1e-6)
            g = slope(w)
            velocity = beta * velocity + slope(w + 0.3 * g / jnp.linalg.norm(g))
            w = w - 0.1 * velocity


def test_on_a_parabola_steps_come_to_the_edge():
    """Of ½hw² with h = 3, whatever ρ."""
    x = np.array([[3**0.5]])
    attached = subject((lambda w, x: x @ w, jnp.ones(1)), models.half_square, (x, np.zeros(1)))
    claim = SamEdgeOnSubject(lr=0.4, lrs=(0.4,), steps=60).on(Builder.of(small))
    training = claim.training(attached, 0.4, BySam(0.1), np.random.default_rng(0))
    np.testing.assert_allclose(training.plain[-1], 1.2, rtol=1e-4)
    np.testing.assert_allclose((training.plain + training.ahead)[-1], 2, rtol=1e-3)
    assert training.cosine[-1] == pytest.approx(-1)
    assert training.step[-1] == 60
    assert len(training.risk) == len(training.step) == 21


def test_readings_that_are_missing_are_no_numbers():
    reading = Reading(1.0, 0.5, 0.2, 0.01, np.array([1.0, 0.0]))
    training = training_of([(reading, reading)], 0.3, np.array([0, 5, 10]))
    np.testing.assert_array_equal(training.risk, [0.3, 0.2, np.nan])
    np.testing.assert_array_equal(training.cosine, [1.0, np.nan])
    assert training.plain.shape == (2, 2)


def test_the_larger_step_is_one_over_the_curvature_in_the_middle():
    flow = Pilot(np.arange(2.0), np.array([2.0, 8.0]), np.inf)
    networks = Networks([], [], {"start": np.array([2.0]), "flow": flow})
    assert SamEdgeOnSubject().read(networks) == {"lr": 0.25, "lrs": (0.125, 0.25)}
    assert SamEdgeOnSubject(lr=0.1).read(networks)["lrs"] == (0.05, 0.1)


def observed_of(cosine, taken):
    shape = (2, 5, 20, 2)
    return Observation(
        course=("seed training pair step", np.full(shape, 2.0)),
        residual=("seed training pair", np.zeros(shape[:-1])),
        cosine=("seed lr radius look", np.full((2, 2, 2, 9), cosine)),
        risk=("seed training mark", np.ones((2, 5, 21))),
        taken=("seed training mark", np.full((2, 5, 21), taken)),
        cross_entropy=0.0,
    )


def test_trainings_that_go_downhill_say_what_to_try():
    claim = SamEdgeOnSubject(steps=100)
    *_, downhill = claim.run_conditions(observed_of(0.5, 100))
    assert not downhill.holds
    assert "--steps" in downhill.note
    *_, fitted = claim.run_conditions(observed_of(0.5, 60))
    assert "--radii" in fitted.note
    assert all(condition.holds for condition in claim.run_conditions(observed_of(-0.9, 100)))


def test_a_small_network_comes_to_the_edge():
    result = asked("sam-edge", lambda: small(0), radii=(0.02, 0.04), steps=80, products=6)
    assert result.observed["plain"].shape == (2, 2, 2, 9, 2)  # one network, written twice
    assert [check.id for check in result.checks] == ["edge"]
    assert set(rejections(result.rivals)) == {"plain", "small_gradients"}
    assert set(result.about["subject"]["left_out"]) == {"gradient", "fall"}
    late = result.observed["course"][:, 3, -1].mean(-1)
    np.testing.assert_allclose(late, 2, rtol=0.15)


def test_a_step_beyond_plain_descent_is_out_of_range():
    result = asked("sam-edge", models.linear, lr=50.0, steps=40, products=4, seeds=3)
    assert result.verdict == Verdict.OUT_OF_RANGE
    assert any("largest ηλ at the start" in line for line in broken(result))


def test_a_classifier_of_torch_is_left_as_it_was():
    torch = need("torch")
    made = classifier(hidden=(6,), train=False)(0)
    before = [weight.detach().clone() for weight in made["model"].parameters()]
    result = asked("sam-edge", lambda: made, n=20, steps=40, products=4)
    assert result.observed["cross_entropy"] == 1
    after = made["model"].parameters()
    assert all(torch.equal(first, second) for first, second in zip(before, after, strict=True))
