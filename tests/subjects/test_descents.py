"""Full-batch descents of a reader's network: rules by optax, curvature by dense Hessians, what a pilot says."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.claims._descents_of_subjects import (
    FITTED,
    ByAdam,
    Pilot,
    WithMomentum,
    descend,
    look_at,
    marks_of,
    small_steps,
    steps_until_fitted,
    still_learning,
    walk,
)
from steepest.measurement.adapters import rescaled_products, subject
from tests.subjects import models
from tests.subjects.test_claims import flat_risk, small

RNG = np.random.default_rng


def line(curvature=3.0):
    """A risk ½hw² of one weight, with one example."""
    x = np.array([[curvature**0.5]])
    return subject((lambda w, x: x @ w, jnp.ones(1)), models.half_square, (x, np.zeros(1)))


def logistic():
    """A classifier that one layer fits, with cross-entropy."""
    x = np.repeat(np.eye(3), 4, axis=0)
    y = np.repeat(np.arange(3), 4)
    entropy = lambda f, y: optax.softmax_cross_entropy_with_integer_labels(f, y).mean()
    return subject((lambda w, x: x @ w, jnp.zeros((3, 3))), entropy, (x, y))


@pytest.mark.parametrize(
    ("rule", "optimizer"),
    [
        (lambda: WithMomentum(), optax.sgd(0.1)),
        (lambda: WithMomentum(0.8), optax.sgd(0.1, 0.8)),
        (lambda: WithMomentum(0.8, nesterov=True), optax.sgd(0.1, 0.8, nesterov=True)),
        (lambda: ByAdam(0.7, 0.99, 1e-8), optax.adam(0.1, 0.7, 0.99, 1e-8)),
    ],
    ids=["plain", "momentum", "nesterov", "adam"],
)
def test_steps_are_those_of_optax(rule, optimizer):
    with jax.enable_x64(True):
        risk, w = flat_risk(small)
        slope = jax.jit(jax.grad(risk))
        state = optimizer.init(w)
        for _, now, _ in walk(subject(*small()), rule(), 0.1, 6):
            np.testing.assert_allclose(now.values(), w, rtol=1e-5, atol=1e-6)
            update, state = optimizer.update(slope(w), state, w)
            w = optax.apply_updates(w, update)


def test_curvature_is_that_of_the_dense_hessian_in_the_rules_coordinates():
    with jax.enable_x64(True):
        risk, w = flat_risk(small)
        attached = subject(*small())
        scale = np.linspace(0.5, 2.0, attached.size)
        dense = np.asarray(jax.hessian(risk)(w))
        scaled = dense / np.sqrt(scale) / np.sqrt(scale)[:, None]
        for matrix, given in ((dense, None), (scaled, scale)):
            look = look_at(attached, RNG(0), None, 80, given)
            assert look.curvature == pytest.approx(np.linalg.eigvalsh(matrix)[-1], rel=1e-3)
            assert look.residual < 0.01
        vector = RNG(1).standard_normal(attached.size)
        expected = (dense + 0.3 * np.eye(attached.size)) @ (vector / np.sqrt(scale))
        got = rescaled_products(attached, scale, decay=0.3)(vector)
        np.testing.assert_allclose(got, expected / np.sqrt(scale), rtol=1e-3, atol=1e-4)


def test_adam_is_looked_at_with_the_scale_of_its_coming_step():
    """After one gradient of ½hw² it is |g| + ε, so that the curvature is h/(|hw| + ε)."""
    path = descend(line(), ByAdam(0.9, 0.99, 0.5), 0.01, np.array([0]), 5, RNG(0), late=1)
    assert path.curvature[0] == pytest.approx(3 / 3.5, rel=1e-5)
    assert path.plain[0] == pytest.approx(3, rel=1e-5)


def test_what_diverges_is_no_number():
    path = descend(line(), WithMomentum(), 1e30, marks_of(8, 4), 5, RNG(0))
    assert path.curvature[0] == pytest.approx(3, rel=1e-5)
    assert np.isnan(path.risk[-1])
    assert np.isnan(path.curvature[-1])
    assert np.isnan(path.plain).all()


def test_small_steps_are_half_of_the_largest_stable_ones():
    """Each brings ½hw² to its minimum, at time 1/h a step."""
    pilot = small_steps(line(), RNG(0), 10, 5)
    np.testing.assert_allclose(pilot.curvatures, 3, rtol=1e-5)
    np.testing.assert_allclose(pilot.times, [0, 5 / 3], rtol=1e-5)
    assert pilot.end == np.inf
    assert small_steps(line(), RNG(0), 10, 5, longest=0.1).times[1] == pytest.approx(0.5)


def test_of_cross_entropy_small_steps_and_descents_end_where_examples_are_fitted():
    attached = logistic()
    pilot = small_steps(attached, RNG(0), 400, 9)
    assert np.isfinite(pilot.end)
    steps = steps_until_fitted(attached, WithMomentum(), 1.0, 400, 20)
    risks = [now.risk() for _, now, _ in walk(attached, WithMomentum(), 1.0, steps + 5)]
    assert risks[steps] > FITTED * risks[0] >= risks[-1]
    assert steps_until_fitted(attached, WithMomentum(), 1.0, 400, 300) == 300
    assert steps_until_fitted(attached, WithMomentum(), 1.0, 10, 2) == 10


def test_a_pilots_rise_is_its_largest_and_edges_lie_on_it():
    pilot = Pilot(np.arange(6.0), np.array([9.0, 1.0, 4.0, 16.0, 9.0, 1.0]), np.inf)
    assert pilot.ends == (1.0, 16.0)
    assert pilot.peak == 16
    usual = {"soon": 100.0, "fewest": 1.0, "beyond": 1.15}
    assert pilot.edge(**usual) == pytest.approx(4)
    assert pilot.edge(**usual | {"soon": 3.0}) == pytest.approx(1.5)
    ending = Pilot(pilot.times, pilot.curvatures, 5.0)
    assert ending.edge(**usual | {"fewest": 40.0}) == pytest.approx(8)
    assert ending.edge(**usual | {"fewest": 75.0}) == pytest.approx(4)  # too near to 16


def test_fitted_examples_say_when_they_were():
    risk = np.array([[[1.0, 0.5, 0.2], [1.0, 0.05, 0.04]]])
    marks = np.array([[[0, 10, 20], [0, 30, 60]]])
    hypothesis = still_learning(risk, marks, 60)
    assert not hypothesis.holds
    assert "--steps 30" in str(hypothesis) + hypothesis.note
    assert still_learning(risk[:, :1], marks[:, :1], 20).holds
