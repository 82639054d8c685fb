"""Derivatives at kinks: one-sided ones, for which a chain rule holds, and Clarke's subdifferential."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import linprog

from steepest.core.compiling import compile_quickly
from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Key

Program = Callable[[Array, Callable[[Array], Array]], Array]
"""A function of x, shape ``(d,)``, and of the ReLU that it is to use, to a number."""

SAME = 1e-9  # gradients nearer than this times the largest are those of one cell


@jax.custom_jvp
def one_sided_relu(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return max(x, 0), whose derivative along t at x = 0 is max(t, 0): the one-sided one, which is not linear in t.

    Forward derivatives (``jax.jvp``) of programs made of it are their directional derivatives, as the chain rule holds
    for these. Its gradient by ``jax.grad`` is that of no derivative; use :func:`directional_gradient`.

    >>> [float(jax.jvp(one_sided_relu, (0.0,), (t,))[1]) for t in (2.0, -2.0)]
    [2.0, 0.0]
    """
    return jnp.maximum(x, 0)


@one_sided_relu.defjvp
def _one_sided(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,) = primals
    (t,) = tangents
    at_kink = jnp.maximum(t, 0)  # f'(0; t) of max(x, 0)
    return jnp.maximum(x, 0), jnp.where(x > 0, t, jnp.where(x < 0, 0, at_kink))


@checked
def directional_gradient(
    program: Program, x: Float[Array, " d"], direction: Float[Array, " d"]
) -> Float[Array, " d"]:
    """Differentiate a program of ReLUs on the side of x that a direction points to.

    The directional derivative f'(x; u) obeys a chain rule, and it is piecewise linear in u. Its gradient in u is, for
    almost every u, the gradient of a cell next to x: an element of Clarke's subdifferential, which a backward pass
    through the ReLUs need not return.

    Args:
        program: f(x, relu), made of smooth functions and of the ``relu`` that it is given.
        x: the point; ties are exact zeros before a ReLU.
        direction: u, a random vector.

    Source: Kakade and Lee 2018; J. Lee's talk at MIT, 2019.

    >>> identity = lambda x, relu: (relu(x) - relu(-x)).sum()
    >>> float(jax.grad(identity)(jnp.zeros(1), jax.nn.relu)[0])  # wrong
    0.0
    >>> float(directional_gradient(identity, jnp.zeros(1), jnp.array([-0.3]))[0])
    1.0
    """
    # u ↦ f'(x; u) by the chain rule of one-sided derivatives; linear in u on each cell's cone
    along = lambda u: jax.jvp(lambda x: program(x, one_sided_relu), (x,), (u,))[1]
    return jax.grad(along)(direction)


@dataclass(frozen=True)
class Clarke:
    """Clarke's subdifferential of a piecewise smooth program at a point: the convex hull of gradients of its cells.

    Attributes:
        vertices: the gradients of the cells next to the point that were met, shape ``(cells, d)``.
    """

    vertices: Float[np.ndarray, "cells d"]

    def distance(self, gradient: Float[Any, " d"]) -> float:
        """Return how far a vector is from the hull, in the largest coordinate, by a linear program.

        Raises:
            UserError: a vector of another length.
        """
        g = np.asarray(gradient, float)
        cells, size = self.vertices.shape
        if g.shape != (size,):
            raise UserError(f"a gradient must have shape {(size,)} as the point has, got {g.shape}")
        # min t over weights λ on the simplex with |Vᵀλ − g| ≤ t
        above = np.hstack([self.vertices.T, -np.ones((size, 1))])
        below = np.hstack([-self.vertices.T, -np.ones((size, 1))])
        solved = linprog(
            np.append(np.zeros(cells), 1.0),
            A_ub=np.vstack([above, below]),
            b_ub=np.append(g, -g),  # |Vᵀλ − g| ≤ t as two one-sided rows
            A_eq=np.append(np.ones(cells), 0.0)[None],
            b_eq=[1.0],
        )
        return float(solved.fun)

    def contains(self, gradient: Float[Any, " d"], tolerance: float = 1e-9) -> bool:
        """Say whether a vector lies in the hull, to a tolerance relative to its largest vertex or one."""
        return self.distance(gradient) <= tolerance * max(1.0, float(np.abs(self.vertices).max()))


@checked
def clarke(program: Program, x: Float[Any, " d"], key: Key, *, directions: int = 256) -> Clarke:
    """Find Clarke's subdifferential of a program of ReLUs at a point, from the cells that random directions meet.

    A cell whose cone at x is narrow may be missed; more directions find it. A hull of fewer cells is smaller, so that
    ``contains`` may say no where the whole set would say yes, and never the reverse.

    Args:
        program: f(x, relu), made of smooth functions and of the ``relu`` that it is given.
        x: the point, shape ``(d,)``; ties are exact zeros before a ReLU.
        key: of the directions.
        directions: how many.

    Raises:
        UserError: a point that is not a vector; fewer than one direction; gradients that are not finite.

    Source: Clarke 1983, theorem 2.5.1.

    >>> absolute = lambda x, relu: (relu(x) + relu(-x)).sum()
    >>> hull = clarke(absolute, jnp.zeros(1), jax.random.key(0))
    >>> sorted(hull.vertices[:, 0].tolist()), hull.contains([0.3]), hull.contains([1.2])
    ([-1.0, 1.0], True, False)
    """
    point = jnp.asarray(x, float)
    if point.ndim != 1 or point.size == 0:
        raise UserError(f"a point must be a vector of at least one number, got shape {point.shape}")
    if directions < 1:
        raise UserError(f"at least one direction is needed, got {directions}")

    def every(point: Array, key: Key) -> Array:
        around = jax.random.normal(key, (directions, point.size))
        return jax.vmap(lambda u: directional_gradient(program, point, u))(around)

    gradients = np.asarray(compile_quickly(every)(point, key), float)
    if not np.isfinite(gradients).all():
        raise UserError("the program has no finite gradient next to this point; try another point")
    grain = SAME * max(1.0, float(np.abs(gradients).max()))
    _, chosen = np.unique(np.round(gradients / grain), axis=0, return_index=True)
    return Clarke(gradients[np.sort(chosen)])
