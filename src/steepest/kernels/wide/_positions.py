"""Gram matrices of limits of any architecture, in tiles."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.precision import arithmetic
from steepest.kernels._tabulated import TOLERANCE, symmetric
from steepest.kernels.wide._duals import Dual
from steepest.kernels.wide._evaluate import evaluate
from steepest.kernels.wide._plan import Plan, plan_of
from steepest.kernels.wide._rules import Pairs
from steepest.kernels.wide._survey import survey
from steepest.nn.layers import WideLimit

BLOCK = 2**16  # pairs of positions and inputs in one array: what is computed stays in the cache
COLUMNS = 16  # pairs of inputs are the last axis; shorter ones waste vector instructions


@dataclass(frozen=True)
class Positions:
    """Kernels by the recursion of the nodes, displacement by displacement.

    Attributes:
        plan: of the limit.
        duals: the expectations of each activation at the variances of these inputs.
        counts: nodes that need numbers at single positions, and how many arrays of them.
        error: bound of the error of both kernels, relative to √(K_αα K_ββ) and √(Θ_αα Θ_ββ).
    """

    plan: Plan
    duals: tuple[Dual | None, ...]
    counts: tuple[tuple[int, int], ...]
    error: float

    @classmethod
    def of(
        cls, limit: WideLimit, x: NDArray, other: NDArray | None, tolerance: float | None
    ) -> "Positions":
        """Build it for these inputs.

        Raises:
            UserError: the output keeps its positions; no signal reaches it; an activation has no known expectation.
        """
        if limit.spaces[-1]:
            raise UserError(
                f"the output of the {limit.name} has positions of its own; end with flatten() or global_pool()"
            )
        plan = plan_of(limit)
        both = x if other is None else np.concatenate([x, other.astype(x.dtype)])
        surveyed = survey(plan, both, tolerance or TOLERANCE[x.dtype.itemsize])
        counts = tuple((node, len(surveyed.sides[node])) for node in sorted(surveyed.sides))
        return cls(plan, surveyed.duals, counts, surveyed.error)

    def rows(self, x: NDArray) -> tuple[NDArray, ...]:
        """Return what a tile needs of each input; the inputs come last but one in every array.

        The diagonals of both kernels, ``(2, n, 1)``, then the numbers of each node at its positions.
        """
        surveyed = survey(self.plan, x, 1.0, self.duals)
        theta = surveyed.output.theta if surveyed.output.theta is not None else surveyed.output.k
        arrays = [np.stack([surveyed.output.k, theta])[..., None]]
        for node in sorted(surveyed.sides):
            arrays += surveyed.sides[node]
        return tuple(np.ascontiguousarray(array, x.dtype) for array in arrays)

    def tile(self, rows: tuple, columns: tuple, *, same: bool) -> tuple[Array, Array]:
        """Compute NNGP and NTK between some rows and columns; ``same`` puts the exact diagonal on it."""
        double = rows[0].dtype == np.float64
        down = _cut(rows[0].shape[-2], self._block()[0])
        across = _cut(columns[0].shape[-2], self._block()[1])
        with arithmetic(double=double):
            out = np.empty((2, rows[0].shape[-2], columns[0].shape[-2]), rows[0].dtype)
            for i in down:
                for j in across:
                    if same and j.stop <= i.start:
                        continue
                    pairs = self.pairs(rows, columns, i, j)
                    out[0, i, j] = pairs.k
                    out[1, i, j] = pairs.theta if pairs.theta is not None else 0.0
            if not same:
                return jnp.asarray(out[0]), jnp.asarray(out[1])
            for matrix in out:  # below the diagonal blocks nothing was computed
                lower = np.tril_indices(len(matrix), -1)
                matrix[lower] = matrix.T[lower]
            diagonal = jnp.asarray(rows[0][..., 0])
            return symmetric(jnp.asarray(out[0]), diagonal[0]), symmetric(
                jnp.asarray(out[1]), diagonal[1]
            )

    def pairs(self, rows: tuple, columns: tuple, i: slice, j: slice) -> Pairs:
        """Compute both kernels between some rows and some columns."""
        one, two = self.sides(rows, columns, i, j)
        end = len(self.plan.limit.nodes) - 1
        return evaluate(self.plan, self.duals, end, one, two)

    def sides(self, rows: tuple, columns: tuple, i: slice, j: slice) -> tuple[dict, dict]:
        """Give the arrays of some rows and columns back to their nodes; the inputs of columns come last."""
        one = self._by_node([array[..., i, :] for array in rows[1:]])
        return one, self._by_node([jnp.swapaxes(a[..., j, :], -1, -2) for a in columns[1:]])

    def _by_node(self, arrays: list) -> dict[int, list]:
        sides: dict[int, list] = {}
        for index, count in self.counts:
            sides[index] = arrays[:count]
            arrays = arrays[count:]
        return sides

    def _block(self) -> tuple[int, int]:
        """Return rows and columns of a block whose arrays stay in the cache."""
        rows = max(1, BLOCK // (self.plan.cells * COLUMNS))
        return min(rows, COLUMNS), COLUMNS


def _cut(count: int, size: int) -> list[slice]:
    """Cut into slices of equal length as far as possible, so that few shapes are compiled."""
    pieces = -(-count // size)
    length = -(-count // pieces)
    return [slice(start, min(start + length, count)) for start in range(0, count, length)]
