"""Certificates of saddles: dense against Lanczos, finite differences and functions with known Hessians."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.landscapes import strict_saddle, strict_saddles


def quadratic(eigenvalues, seed=0):
    """A quadratic form with these eigenvalues in a random basis, on a pytree of two leaves."""
    size = len(eigenvalues)
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]
    matrix = basis @ np.diag(eigenvalues) @ basis.T

    def risk(params):
        x = jnp.concatenate([params["a"], params["b"]])
        return x @ matrix @ x / 2

    return risk, {"a": jnp.zeros(1), "b": jnp.zeros(size - 1)}


@pytest.mark.parametrize("dense", [True, False])
def test_the_lowest_curvature_of_a_quadratic(dense):
    eigenvalues = np.array([-2.0, -0.5, 0.0, 1.0, 3.0])
    found = strict_saddle(*quadratic(eigenvalues), dense=dense)
    assert found.lowest == pytest.approx(-2, abs=1e-9)
    assert found.strict
    assert found.value == 0
    assert found.gradient == 0
    if dense:
        assert np.allclose(found.eigenvalues, eigenvalues, atol=1e-12)
        assert found.index == 2
        assert found.flat == 1
    else:
        assert found.index == -1


def test_a_minimum_is_no_saddle():
    found = strict_saddle(*quadratic([0.0, 1.0, 2.0]))
    assert not found.strict
    assert found.index == 0


def test_hessian_against_finite_differences():
    risk = lambda x: jnp.sin(x[0] * x[1]) + x[2] ** 3 * x[0]
    at = np.array([0.3, -0.8, 1.1])
    step = 1e-5
    gradient = jax.jit(jax.grad(risk))
    columns = [(gradient(at + step * e) - gradient(at - step * e)) / (2 * step) for e in np.eye(3)]
    found = strict_saddle(risk, jnp.asarray(at))
    assert np.allclose(found.eigenvalues, np.linalg.eigvalsh(np.array(columns)), atol=1e-8)
    assert found.gradient == pytest.approx(float(jnp.linalg.norm(gradient(at))))


def test_several_points_are_those_one_by_one():
    risk = lambda x: (x**2 - 1) @ (x**2 - 1) / 4  # minima at ±1, index = number of zeros
    points = jnp.array([[1.0, -1.0], [0.0, 1.0], [0.0, 0.0]])
    together = strict_saddles(risk, points)
    assert [point.index for point in together] == [0, 1, 2]
    for point, x in zip(together, points, strict=True):
        assert point.lowest == strict_saddle(risk, x).lowest


def test_a_point_that_is_not_finite_is_one_sentence():
    with pytest.raises(UserError, match="not finite"):
        strict_saddle(lambda x: jnp.log(x).sum(), jnp.zeros(2))


@pytest.mark.parametrize("dense", [True, False])
def test_parameters_of_single_precision_in_a_process_of_double(dense):
    """A quadratic form has its eigenvalues in both; single precision keeps seven digits of them."""
    risk = lambda x: x[0] ** 2 - 3 * x[1] ** 2
    found = strict_saddle(risk, jnp.zeros(2, jnp.float32), dense=dense)
    assert found.lowest == pytest.approx(-6, rel=1e-6)
