"""Random forms on the sphere, and all their critical points by Newton's method from many starts."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from steepest.core.compiling import compile_quickly
from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Key

NEWTON = 25
"""Steps from every start: quadratic convergence takes six, the wandering before it a few more."""
ARRIVED = 1e-9
"""Length of the tangential gradient, relative to the coefficients', below which a start has arrived."""
SAME = 1e-5
"""Distance below which two points are one."""


@dataclass(frozen=True)
class Form:
    """A homogeneous polynomial of degree p in N variables.

    Attributes:
        degree: p.
        dimension: N.
        coefficients: of the monomials x^α in the order of :func:`monomials`, shape ``(monomials,)``.
    """

    degree: int
    dimension: int
    coefficients: Float[np.ndarray, " monomials"]

    def __call__(self, x: Float[np.ndarray, "*points N"]) -> Float[np.ndarray, "*points"]:
        """Return the values at points."""
        return _monomials_at(np.asarray(x), self.degree) @ self.coefficients


class CriticalPoints(NamedTuple):
    """The critical points of a form on the unit sphere.

    Attributes:
        points: shape ``(count, N)``, in pairs ±x.
        value: of the form there, shape ``(count,)``.
        index: number of directions on the sphere that lead down, shape ``(count,)``.
        hits: how many starts came to each pair ±x, at either, shape ``(count,)``; a 1 says that others may be missing.
        complete: whether Σ (−1)^index is Euler's number of the sphere, 1 + (−1)^(N−1), as Morse's theorem wants it.
            That is necessary, and not sufficient: a minimum and a saddle may be missing together.
    """

    points: Float[np.ndarray, "count N"]
    value: Float[np.ndarray, " count"]
    index: Int[np.ndarray, " count"]
    hits: Int[np.ndarray, " count"]
    complete: bool


class Arrivals(NamedTuple):
    """Where Newton's method ended, one row a start.

    Attributes:
        points: shape ``(starts, N)``.
        value: H(x), shape ``(starts,)``.
        residual: length of the tangential gradient, shape ``(starts,)``.
        index: number of negative eigenvalues of the Hessian on the sphere, shape ``(starts,)``.
    """

    points: Float[Array, "starts N"]
    value: Float[Array, " starts"]
    residual: Float[Array, " starts"]
    index: Int[Array, " starts"]


@checked
@cache
def monomials(degree: int, dimension: int) -> Int[np.ndarray, "monomials N"]:
    """Return the exponents α of all monomials of a degree, one row each.

    >>> monomials(2, 2).tolist()
    [[2, 0], [1, 1], [0, 2]]
    """
    rows = []
    for chosen in combinations_with_replacement(range(dimension), degree):
        rows.append(np.bincount(np.array(chosen, int), minlength=dimension))
    return np.array(rows)


@checked
@cache
def binomial_weights(degree: int, dimension: int) -> Float[np.ndarray, " monomials"]:
    """Return √(p!/α!), which makes a form with independent normal coefficients invariant under rotations.

    >>> binomial_weights(2, 2).round(3).tolist()
    [1.0, 1.414, 1.0]
    """
    weights = []
    for exponents in monomials(degree, dimension):
        products = prod(factorial(int(exponent)) for exponent in exponents)
        # the multinomial theorem: E H(x)H(y) = Σ p!/α! x^α y^α = ⟨x, y⟩^p
        weights.append(np.sqrt(factorial(degree) / products))
    return np.array(weights)


@checked
def gaussian_form(degree: int, dimension: int, key: Key) -> Form:
    r"""Draw the isotropic Gaussian form, the spherical p-spin Hamiltonian of unit variance.

    .. math:: H(x) = \sum_{|α|=p} \sqrt{p!/α!}\, g_α x^α, \qquad E H(x)H(y) = ⟨x, y⟩^p

    Args:
        degree: p.
        dimension: N, of the space; the sphere has N − 1.
        key: random key.

    Raises:
        UserError: a degree below one or a dimension below two.

    >>> form = gaussian_form(3, 2, jax.random.key(0))
    >>> bool(np.isclose(form(np.array([2.0, 4.0])), 8 * form(np.array([1.0, 2.0]))))
    True
    """
    _check(degree, dimension)
    weights = binomial_weights(degree, dimension)
    normal = np.asarray(jax.random.normal(key, weights.shape), float)
    return Form(degree, dimension, weights * normal)


@checked
def critical_points(form: Form, starts: Float[np.ndarray, "starts N"]) -> CriticalPoints:
    """Find the critical points of a form on the unit sphere by Newton's method from every start.

    Solutions come in pairs: where x is critical, −x is, with another index if the degree is odd.

    Args:
        form: of degree two or more.
        starts: points, which are scaled to the sphere, shape ``(starts, N)``; ten times as many as there are critical
            points leave few out.

    Raises:
        UserError: starts of another dimension.

    >>> form = Form(2, 2, np.array([1.0, 0.0, 3.0]))  # x² + 3y²
    >>> found = critical_points(form, np.array([[1.0, 0.3], [0.2, 1.0]]))
    >>> found.value.round(6).tolist(), found.index.tolist(), found.complete
    ([1.0, 1.0, 3.0, 3.0], [0, 0, 1, 1], True)
    """
    _check(form.degree, form.dimension)
    starts = np.asarray(starts, float)
    if starts.ndim != 2 or starts.shape[1] != form.dimension:
        raise UserError(
            f"critical_points: expected starts of shape (starts, {form.dimension}), got {starts.shape}; "
            "give one row for each start"
        )
    arrivals = _compiled(form.degree, form.dimension)(form.coefficients, starts)
    points, value, residual, index = (np.asarray(values) for values in arrivals)
    size = np.linalg.norm(form.coefficients)
    arrived = np.flatnonzero(np.isfinite(residual) & (residual < ARRIVED * size))
    parity = (-1) ** form.degree  # H(−x) = (−1)^p H(x)
    rows = []
    while arrived.size:
        x = points[arrived[0]]
        overlaps = points[arrived] @ x
        same = 1 - np.abs(overlaps) < SAME**2 / 2  # 1 − |⟨x, x'⟩| = ½‖x ∓ x'‖² on the sphere
        at = arrived[0]
        # at −x an odd form and its Hessian on the N − 1 tangent directions change their sign
        opposite = index[at] if parity == 1 else form.dimension - 1 - index[at]
        rows.append((x, value[at], index[at], same.sum()))
        rows.append((-x, parity * value[at], opposite, same.sum()))
        arrived = arrived[~same]
    order = np.argsort([row[1] for row in rows], kind="stable")
    columns = [np.array([rows[i][column] for i in order]) for column in range(4)]
    ends = CriticalPoints(columns[0].reshape(-1, form.dimension), *columns[1:], complete=False)
    euler = int(((-1) ** ends.index).sum())
    return ends._replace(complete=euler == 1 + (-1) ** (form.dimension - 1))


@checked
def sphere_newton(
    coefficients: Float[Array, " monomials"],
    starts: Float[Array, "starts N"],
    degree: int,
    steps: int = NEWTON,
) -> Arrivals:
    """Run Newton's method for the critical points of a form on the sphere, in pure JAX, to be mapped over forms.

    The step solves (∇²H − pH)d + cx = −∇H on the tangent space ⟨d, x⟩ = 0; the point is then scaled back.

    Args:
        coefficients: of the form.
        starts: shape ``(starts, N)``.
        degree: p ≥ 2.
        steps: from each start.
    """
    dimension = starts.shape[-1]
    tensor = jnp.tensordot(coefficients, _second_derivatives(degree, dimension), 1)

    def at(x: Array) -> tuple[Array, Array, Array]:
        hessian = jnp.tensordot(_monomials_at(x, degree - 2), tensor, 1)
        gradient = hessian @ x / (degree - 1)  # Euler's identities
        value = gradient @ x / degree
        # the Hessian on the sphere is ∇²H − ⟨x, ∇H⟩ I, and ⟨x, ∇H⟩ = pH
        return value, gradient, hessian - degree * value * jnp.eye(dimension)

    def step(x: Array) -> Array:
        _, gradient, matrix = at(x)
        border = jnp.concatenate([x, jnp.zeros(1)])  # unknowns d and the multiplier c of ⟨d, x⟩ = 0
        bordered = jnp.concatenate([matrix, x[None]])
        bordered = jnp.concatenate([bordered, border[:, None]], axis=1)
        right = jnp.concatenate([-gradient, jnp.zeros(1)])
        moved = x + jnp.linalg.solve(bordered, right)[:-1]
        return moved / jnp.sqrt(moved @ moved)

    def end(x: Array) -> tuple[Array, Array, Array]:
        value, gradient, matrix = at(x)
        project = jnp.eye(dimension) - jnp.outer(x, x)  # onto the tangent space of the sphere
        tangential = project @ gradient
        eigenvalues = jnp.linalg.eigvalsh(project @ matrix @ project)
        # the normal direction has the eigenvalue zero
        index = (eigenvalues < -1e-9 * jnp.abs(eigenvalues).max()).sum()
        return value, jnp.sqrt(tangential @ tangential), index

    points = starts / jnp.sqrt((starts**2).sum(-1, keepdims=True))  # onto the unit sphere
    points = jax.lax.fori_loop(0, steps, lambda _, x: jax.vmap(step)(x), points)
    return Arrivals(points, *jax.vmap(end)(points))


@cache
def _compiled(degree: int, dimension: int) -> Callable[..., Arrivals]:
    """Return Newton's method for one kind of form, compiled once for all its forms."""
    return compile_quickly(partial(sphere_newton, degree=degree))


@cache
def _second_derivatives(degree: int, dimension: int) -> Float[np.ndarray, "monomials lower N N"]:
    """Return ∂_i∂_j x^α as coefficients of monomials of degree p − 2."""
    rows = {tuple(row): k for k, row in enumerate(monomials(degree - 2, dimension).tolist())}
    exponents = monomials(degree, dimension)
    table = np.zeros((len(exponents), len(rows), dimension, dimension))
    for k, row in enumerate(exponents):
        for i in range(dimension):
            for j in range(dimension):
                lower = row.copy()
                factor = lower[i]
                lower[i] -= 1
                factor = factor * lower[j]  # α_i α_j, or α_i (α_i − 1) where i = j
                lower[j] -= 1
                if factor:
                    table[k, rows[tuple(lower.tolist())], i, j] = factor
    return table


def _monomials_at(x: Any, degree: int) -> Any:
    """Return x^α for all monomials of a degree, shape ``(*points, monomials)``, in the arrays that x is of."""
    exponents = monomials(degree, x.shape[-1])
    product = x[..., 0, None] ** exponents[:, 0]
    for i in range(1, x.shape[-1]):
        product = product * x[..., i, None] ** exponents[:, i]
    return product


def _check(degree: int, dimension: int) -> None:
    if degree < 1 or dimension < 2:
        raise UserError(
            f"a form on a sphere: expected a degree p ≥ 1 and a dimension N ≥ 2, got p = {degree} and N = {dimension}; "
            "try p = 3 and N = 3"
        )
