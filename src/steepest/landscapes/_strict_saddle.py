"""What kind of critical point a point is: its gradient, its lowest curvature and how many directions lead down."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from steepest.core.compiling import compile_quickly
from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.linalg import hessian_product, row_by_row, top_eigenpairs
from steepest.nn.types import Params, Risk

DENSE = 1000  # parameters up to which the whole Hessian is formed: 8 MB, and half a second to diagonalize
SEED = 0x5ADD1E  # of the random start of Lanczos


class Critical(NamedTuple):
    """What was found at a point, with the error of its lowest curvature.

    Attributes:
        value: the risk.
        gradient: ‖∇R‖, which is zero at a critical point up to rounding.
        lowest: λ_min of the Hessian.
        index: how many eigenvalues lie below −``tolerance``, the directions that lead down; of a Hessian that was not
            formed −1, as Lanczos tells the lowest one only.
        residual: ‖H v − λ_min v‖ of the lowest eigenvector; an eigenvalue lies this close to ``lowest``.
        eigenvalues: of the whole Hessian, increasing, shape ``(p,)``; of a Hessian that was not formed the lowest one.
        tolerance: what counts as negative.
    """

    value: float
    gradient: float
    lowest: float
    index: int
    residual: float
    eigenvalues: Float[np.ndarray, " p"]
    tolerance: float

    @property
    def strict(self) -> bool:
        """Whether the Hessian certifies a direction that leads down: λ_min + residual < −tolerance."""
        return self.lowest + self.residual < -self.tolerance

    @property
    def flat(self) -> int:
        """Return how many eigenvalues lie within ``tolerance`` of zero."""
        return int((np.abs(self.eigenvalues) <= self.tolerance).sum())


@checked
def strict_saddle(
    risk: Risk, params: Params, *, tolerance: float = 1e-9, dense: bool | None = None
) -> Critical:
    """Certify whether a point is a strict saddle: gradient zero, and λ_min(∇²R) < 0.

    A strict saddle is one that gradient descent leaves from almost every start (Lee, Simchowitz, Jordan and Recht
    2016). A point with zero gradient and λ_min = 0 may still be a saddle of higher order, which no Hessian tells.

    Args:
        risk: from parameters to a number, twice differentiable at the point.
        params: the point, any pytree.
        tolerance: eigenvalues below minus this count as negative; above it lie the zero modes of a symmetry, which
            rounding leaves near 1e-12.
        dense: whether the whole Hessian is formed; by default up to 1000 parameters. Otherwise Lanczos finds the
            lowest eigenpair.

    Raises:
        UserError: a point or a Hessian that is not finite.

    >>> saddle = strict_saddle(lambda x: x[0] ** 2 - 3 * x[1] ** 2, jnp.zeros(2))
    >>> saddle.lowest, saddle.index, saddle.strict
    (-6.0, 1, True)
    >>> strict_saddle(lambda x: x[0] ** 2 - x[1] ** 4, jnp.zeros(2)).strict
    False
    """
    flat, _ = ravel_pytree(params)
    if dense if dense is not None else flat.size <= DENSE:
        points = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], params)
        return strict_saddles(risk, points, tolerance=tolerance)[0]
    value, gradient = compile_quickly(partial(_slope, risk))(params)
    product = compile_quickly(lambda at, v: hessian_product(risk, at)(v))
    start = np.random.default_rng(SEED).standard_normal(flat.size)
    operator = row_by_row(lambda v: product(params, v))
    pair = top_eigenpairs(operator, start, which="smallest", tolerance=1e-8)
    lowest = float(pair.values[0])
    return Critical(
        float(value),
        float(gradient),
        lowest,
        -1,
        float(pair.residuals[0]),
        np.array([lowest]),
        tolerance,
    )


@checked
def strict_saddles(risk: Risk, points: Params, *, tolerance: float = 1e-9) -> list[Critical]:
    """Certify several points as :func:`strict_saddle` does, in one compiled program, with dense Hessians.

    Args:
        risk: from parameters to a number.
        points: parameters with a leading axis over the points.
        tolerance: eigenvalues below minus this count as negative.

    Raises:
        UserError: a point or a Hessian that is not finite.

    >>> each = strict_saddles(lambda x: (x**2).sum() ** 2 - x[0] ** 2, jnp.array([[0.0, 0.0], [0.5**0.5, 0.0]]))
    >>> [point.index for point in each]
    [1, 0]
    """

    def every(points: Params) -> tuple[jax.Array, jax.Array, jax.Array]:
        return jax.lax.map(partial(_second_order, risk), points)

    values, gradients, matrices = compile_quickly(every)(points)
    found = []
    for value, gradient, matrix in zip(
        np.asarray(values), np.asarray(gradients), np.asarray(matrices, float), strict=True
    ):
        if not np.isfinite(matrix).all() or not np.isfinite(value):
            raise UserError(
                "the risk or its Hessian is not finite at this point; a strict saddle needs a risk "
                "that is twice differentiable there, so try a point off its kinks"
            )
        eigenvalues, vectors = np.linalg.eigh(matrix)
        # some eigenvalue of the exact matrix lies this near
        residual = np.linalg.norm(matrix @ vectors[:, 0] - eigenvalues[0] * vectors[:, 0])
        found.append(
            Critical(
                float(value),
                float(gradient),
                float(eigenvalues[0]),
                int((eigenvalues < -tolerance).sum()),
                float(residual),
                eigenvalues,
                tolerance,
            )
        )
    return found


def _slope(risk: Risk, params: Params) -> tuple[jax.Array, jax.Array]:
    """Return the risk and the length of its gradient."""
    value, gradient = jax.value_and_grad(risk)(params)
    return value, jnp.linalg.norm(ravel_pytree(gradient)[0])


def _second_order(risk: Risk, params: Params) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the risk, the length of its gradient and its symmetrized Hessian, ``(p, p)``, by products.

    ``jax.hessian`` gives the same matrix, and compiles longer for deep products.
    """
    value, slope = _slope(risk, params)
    size = ravel_pytree(params)[0].size
    matrix = jax.vmap(hessian_product(risk, params))(jnp.eye(size))  # rows H e_i, (p, p)
    return value, slope, (matrix + matrix.T) / 2
