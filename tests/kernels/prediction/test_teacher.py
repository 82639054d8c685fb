"""The risk on a teacher: drawn inputs, quadrature, automatic and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import teacher_risk

RISK = jax.jit(teacher_risk)


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    return rng.normal(size=(3, 2)), rng.normal(size=(2, 2))


def test_value_by_quadrature_over_the_angle(pair):
    """In the plane E f² is E|x|² = 2 times the mean of f² over the circle."""
    student, teacher = pair
    angles = (np.arange(200_000) + 0.5) * 2 * np.pi / 200_000
    x = np.stack([np.cos(angles), np.sin(angles)], 1)
    gap = np.maximum(x @ student.T, 0).sum(1) - np.maximum(x @ teacher.T, 0).sum(1)
    with jax.enable_x64(True):
        value, _ = RISK(student, teacher)
    assert float(value) == pytest.approx(0.5 * 2 * (gap**2).mean(), rel=1e-8)


def test_gradient_by_automatic_and_by_finite_differences(pair):
    student, teacher = pair
    with jax.enable_x64(True):
        risk = jax.jit(lambda w: teacher_risk(w, teacher)[0])
        automatic = jax.grad(risk)(jnp.asarray(student))
        _, gradient = RISK(student, teacher)
        step = 1e-6
        numeric = np.zeros_like(student)
        for place in np.ndindex(student.shape):
            ahead = student.copy()
            behind = student.copy()
            ahead[place] += step
            behind[place] -= step
            numeric[place] = (float(risk(ahead)) - float(risk(behind))) / (2 * step)
    np.testing.assert_allclose(gradient, automatic, atol=1e-12)
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)


def test_a_student_that_is_the_teacher_has_no_risk_and_no_slope():
    teacher = np.random.default_rng(1).normal(size=(4, 5))
    with jax.enable_x64(True):
        value, gradient = RISK(teacher[::-1], teacher)
    assert abs(float(value)) < 1e-13
    assert np.abs(gradient).max() < 1e-7  # angles of 1e-8 are lost in the cosine


def test_zero_neurons_change_nothing(pair):
    student, teacher = pair
    with jax.enable_x64(True):
        value, gradient = RISK(student, teacher)
        padded = np.vstack([student, np.zeros((2, 2))])
        same, wider = RISK(padded, np.vstack([teacher, np.zeros((1, 2))]))
    assert float(same) == pytest.approx(float(value), abs=1e-15)
    np.testing.assert_allclose(wider[:3], gradient, atol=1e-14)
    assert not np.asarray(wider[3:]).any()


def test_other_dimensions_are_one_sentence():
    with pytest.raises(UserError, match="neurons of shapes"):
        teacher_risk(jnp.ones((2, 3)), jnp.ones((2, 4)))


def test_second_derivatives_where_neurons_are_parallel(pair):
    """The Hessian at a student of two equal neurons, against differences of the closed gradient."""
    _, teacher = pair
    student = np.array([[0.6, 0.8], [0.3, 0.4]])
    with jax.enable_x64(True):
        hessian = jax.jit(jax.hessian(lambda w: teacher_risk(w, teacher)[0]))(jnp.asarray(student))
        direction = np.random.default_rng(3).normal(size=student.shape)
        step = 1e-5
        ahead = RISK(student + step * direction, teacher)[1]
        behind = RISK(student - step * direction, teacher)[1]
    along = np.einsum("abcd,cd->ab", hessian, direction)
    np.testing.assert_allclose(along, (ahead - behind) / (2 * step), atol=1e-4)
