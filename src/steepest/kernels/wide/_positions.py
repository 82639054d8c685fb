"""Gram matrices of limits of any architecture, in tiles."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from steepest.core.precision import arithmetic
from steepest.kernels.connected._tabulated import TOLERANCE
from steepest.kernels.wide._evaluate import evaluate
from steepest.kernels.wide._plan import Plan, plan_of
from steepest.kernels.wide._rule import Pairs, Sides
from steepest.kernels.wide._survey import Survey, survey
from steepest.kernels.wide.duals import Dual
from steepest.nn.layers import WideLimit
from steepest.nn.layers._beside import ALONE, NOTHING, Beside, Besides, beside_both


class Blocks(NamedTuple):
    """How much is computed at a time.

    Attributes:
        cells: pairs of positions and inputs in one array.
        columns: inputs on the last axis, or a multiple of them.
    """

    cells: int
    columns: int


IN_CACHE = Blocks(2**16, 16)
"""On a processor what is computed stays in the cache, and fills vectors."""
ON_DEVICE = Blocks(2**24, 256)
"""Others have many more units to occupy."""


@dataclass(frozen=True)
class Positions:
    """Kernels by the recursion of the nodes, displacement by displacement.

    Attributes:
        plan: of the limit.
        duals: the expectations of each activation at the variances of these inputs.
        error: bound of the error of both kernels, relative to √(K_αα K_ββ) and √(Θ_αα Θ_ββ).
        surveyed: the inputs that it was built for, and what is known of them, so that it need not be computed again.
    """

    plan: Plan
    duals: tuple[Dual | None, ...]
    error: float
    surveyed: tuple[NDArray, Survey] | None = None

    @classmethod
    def of(
        cls,
        limit: WideLimit,
        x: NDArray,
        other: NDArray | None,
        tolerance: float | None,
        *,
        positions: bool = False,
        keep: tuple[int, ...] = (),
        besides: Besides = ALONE,
    ) -> "Positions":
        """Build it for these inputs.

        Args:
            limit: the network.
            x: inputs; zero where no position exists.
            other: a second set.
            tolerance: of each activation's expectation.
            positions: whether those of the output are wanted.
            keep: nodes whose diagonals are wanted.
            besides: which positions exist, and graphs, of both sets.

        Raises:
            UserError: the output keeps its positions; no signal reaches it; an activation has no known expectation.
        """
        plan = plan_of(limit, positions=positions, masked=besides[0].mask is not None)
        both = x if other is None else np.concatenate([x, other.astype(x.dtype)])
        beside = besides[0] if other is None else beside_both(besides)
        at = tolerance or TOLERANCE[x.dtype.itemsize]
        surveyed = survey(plan, both, at, keep=keep, beside=beside)
        return cls(plan, surveyed.duals, surveyed.error, (both, surveyed))

    def rows(self, x: NDArray, beside: Beside = NOTHING) -> tuple[NDArray, ...]:
        """Return what a tile needs of each input; inputs come last but one in arrays.

        The diagonals of both kernels, ``(2, n, 1)``, then the numbers of each node at its positions.
        """
        if self.surveyed is not None and x is self.surveyed[0]:
            surveyed = self.surveyed[1]
        else:
            surveyed = survey(self.plan, x, 1.0, self.duals, beside=beside)
        k = surveyed.output.k
        theta = np.zeros_like(k) if surveyed.output.theta is None else surveyed.output.theta
        arrays = [np.stack([k, theta])[..., None]]
        for node in sorted(surveyed.sides):
            arrays += surveyed.sides[node]
        return tuple(np.ascontiguousarray(array, x.dtype) for array in arrays)

    def tile(
        self, rows: tuple, columns: tuple, *, same: bool, threads: int = 1
    ) -> tuple[NDArray, NDArray]:
        """Compute NNGP and NTK between some rows and columns; ``same`` puts the exact diagonal on it.

        Blocks are spread over ``threads``: they are too small to occupy several processors one after the other.
        """
        n, m = rows[0].shape[-2], columns[0].shape[-2]
        double = rows[0].dtype == np.float64
        height, width = self._block(n, m, _platform(rows[0]))
        down = blocks_of(n, height)
        across = blocks_of(m, width)
        # of a symmetric matrix one half
        pairs = [(i, j) for i in down for j in across if not same or i.start < j.stop]
        out = np.empty((2, n, m), rows[0].dtype)
        with arithmetic(double=double):
            one = {i.start: self.firsts(rows, i) for i in down}
            two = {j.start: self.seconds(columns, j) for j in across}

        def fill(pair: tuple[slice, slice]) -> None:
            i, j = pair
            with arithmetic(double=double):  # of this thread
                computed = self.pairs(one[i.start], two[j.start])
            out[0, i, j] = computed.k
            out[1, i, j] = 0.0 if computed.theta is None else computed.theta

        fill(pairs[0])  # else each thread compiles the program
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(fill, pairs[1:]))
        if same:
            for matrix, diagonal in zip(out, np.asarray(rows[0])[..., 0], strict=True):
                lower = np.tril_indices(n, -1)
                matrix[lower] = matrix.T[lower]
                np.fill_diagonal(matrix, diagonal)
        return out[0], out[1]

    def pairs(self, one: Sides, two: Sides) -> Pairs:
        """Compute both kernels between first and second inputs."""
        return evaluate(self.plan, self.duals, len(self.plan.limit.nodes) - 1, one, two)

    def firsts(self, rows: tuple, block: slice) -> dict[int, list]:
        """Give the arrays of some rows to their nodes."""
        return self._by_node([_cut(array, block) for array in rows[1:]])

    def seconds(self, columns: tuple, block: slice) -> dict[int, list]:
        """Do the same for some columns, with the inputs last."""
        return self._by_node([_cut(array, block, last=True) for array in columns[1:]])

    def _by_node(self, arrays: list) -> dict[int, list]:
        sides: dict[int, list] = {}
        for index, count in self._counts():
            sides[index] = arrays[:count]
            arrays = arrays[count:]
        return sides

    def _counts(self) -> list[tuple[int, int]]:
        """List the nodes that need numbers at single positions, and how many arrays of them (``survey``)."""
        counts = []
        for index, (rule, dual) in enumerate(zip(self.plan.rules, self.duals, strict=True)):
            of_node = rule.arrays(dual) + self.plan.gained(index)
            if of_node:
                counts.append((index, of_node))
        return counts

    def _block(self, n: int, m: int, platform: str) -> tuple[int, int]:
        """Return rows and columns of a block; all blocks have one shape, near a square where positions are few."""
        cells, columns = IN_CACHE if platform == "cpu" else ON_DEVICE
        inputs = cells // self.plan.cells
        columns = max(columns, math.isqrt(inputs) // columns * columns)
        rows = max(1, inputs // columns)
        return min(rows, columns, n), min(columns, m)


def _platform(array: Any) -> str:
    """Return where an array is, or where JAX would put it."""
    if isinstance(array, Array):
        return next(iter(array.devices())).platform
    return jax.default_backend()


def blocks_of(count: int, size: int) -> list[slice]:
    """Cut into slices of one length, so that one program serves all; the last overlaps the one before."""
    starts = [min(start, count - size) for start in range(0, count, size)]
    return [slice(start, start + size) for start in starts]


def _cut(array: Any, block: slice, *, last: bool = False) -> Array:
    """Take some inputs out of an array ``(…, n, 1)``, or put them last; on a processor without a program for each n."""
    if _platform(array) == "cpu":
        inputs = np.asarray(array)[..., block, :]
        return jnp.asarray(np.swapaxes(inputs, -1, -2) if last else inputs)
    inputs = jax.lax.dynamic_slice_in_dim(array, block.start, block.stop - block.start, -2)
    return jnp.swapaxes(inputs, -1, -2) if last else inputs
