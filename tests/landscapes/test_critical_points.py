"""Newton's method on spheres against roots of polynomials, eigenvectors and a form whose points are known."""

import jax
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.landscapes import (
    Form,
    binomial_weights,
    critical_points,
    gaussian_form,
    monomials,
    strict_saddle,
)

RNG = np.random.default_rng(0)


def test_the_gaussian_form_has_the_covariance_of_an_inner_product():
    """Σ over monomials of weight² x^α y^α is ⟨x, y⟩^p."""
    x, y = RNG.normal(size=(2, 4))
    exponents = monomials(3, 4)
    total = (binomial_weights(3, 4) ** 2 * np.prod(x**exponents * y**exponents, 1)).sum()
    assert total == pytest.approx((x @ y) ** 3)


@pytest.mark.parametrize("degree", [3, 4])
def test_on_the_circle_they_are_the_roots_of_a_polynomial(degree):
    form = gaussian_form(degree, 2, jax.random.key(degree))
    ends = critical_points(form, RNG.normal(size=(200, 2)))
    angles = np.linspace(0, 2 * np.pi, 20_001)
    values = form(np.stack([np.cos(angles), np.sin(angles)], 1))
    turns = np.sign(np.diff(values))
    assert len(ends.points) == (np.diff(np.append(turns, turns[0])) != 0).sum()
    assert values.min() == pytest.approx(ends.value.min(), abs=1e-6)
    assert ends.complete


def test_of_a_quadratic_form_they_are_the_eigenvectors():
    matrix = RNG.normal(size=(4, 4))
    matrix = matrix + matrix.T
    rows = monomials(2, 4)
    coefficients = []
    for row in rows:
        i, j = np.repeat(np.arange(4), row)
        coefficients.append(matrix[i, j] * (2 if i != j else 1))
    ends = critical_points(Form(2, 4, np.array(coefficients)), RNG.normal(size=(100, 4)))
    eigenvalues, vectors = np.linalg.eigh(matrix)
    np.testing.assert_allclose(ends.value[::2], eigenvalues, atol=1e-9)
    np.testing.assert_allclose(np.abs((ends.points[::2] * vectors.T).sum(1)), 1, atol=1e-9)
    assert ends.index.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert ends.complete


def test_indices_of_a_sum_of_cubes():
    """x³ + y³ + z³ on the sphere: seven pairs, (±1, 0, 0) and so on; the largest values at the axes are maxima."""
    exponents = monomials(3, 3)
    cubes = (exponents == 3).any(1).astype(float)
    ends = critical_points(Form(3, 3, cubes), RNG.normal(size=(300, 3)))
    assert len(ends.points) == 14
    assert np.bincount(ends.index).tolist() == [4, 6, 4]
    assert ends.complete
    np.testing.assert_allclose(ends.value.max(), 1)


def test_index_is_that_of_the_hessian_by_differentiation():
    """In the chart x + v of the tangent plane, scaled back, against strict_saddle's dense Hessian."""
    form = gaussian_form(3, 3, jax.random.key(5))
    ends = critical_points(form, RNG.normal(size=(100, 3)))
    coefficients = form.coefficients
    exponents = monomials(3, 3)
    for point, index in list(zip(ends.points, ends.index, strict=True))[:4]:
        basis = np.linalg.svd(point[None])[2][1:]

        def height(v, point=point, basis=basis):
            x = point + v @ basis
            x = x / (x @ x) ** 0.5
            return (coefficients * (x**exponents).prod(1)).sum()

        critical = strict_saddle(height, np.zeros(2))
        assert critical.gradient < 1e-9
        assert critical.index == index


def test_morse_may_be_content_where_points_are_missing():
    """A minimum and its opposite maximum alone have Euler's number two already; the hits tell that one start came."""
    form = gaussian_form(3, 3, jax.random.key(1))
    many = critical_points(form, RNG.normal(size=(200, 3)))
    assert many.complete
    assert many.hits.min() > 1
    assert len(many.points) > 2
    few = critical_points(form, many.points[:1])
    assert few.index.tolist() == [0, 2]
    assert few.complete
    assert few.hits.tolist() == [1, 1]


def test_bad_input_is_one_sentence():
    with pytest.raises(UserError, match="starts of shape"):
        critical_points(Form(3, 2, np.ones(4)), np.ones((5, 3)))
    with pytest.raises(UserError, match="dimension"):
        gaussian_form(3, 1, jax.random.key(0))
