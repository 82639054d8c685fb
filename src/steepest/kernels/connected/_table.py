"""A whole network's kernels as one tabulated function of two norms and an angle.

For inputs of squares ``a = ‖x‖²/n_0`` and b at the angle θ, every layer of the recursion depends on (a, b, θ) alone,
and is analytic in θ, even for ReLU. So the kernels at the output, whatever the depth and the activation, are

    K(a, b, θ) = √(K(a,a,0) K(b,b,0)) Σ_r [A Q_r Bᵀ] g_r(θ)

with A and B polynomials of log a and log b, and g_r polynomials of θ: a Gram matrix costs one pass per entry.

One case does not fit: σ with corners, biases, and norms that differ. There the distance of the inputs enters, which has
a corner where they meet; the table says what it could reach.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy.fft import dctn

from steepest.core.errors import UserError
from steepest.kernels._arguments import as_number, check_limit_given
from steepest.kernels.connected._layers import Kernels, PairKernels, pair_kernels
from steepest.kernels.duals._expectations import Vector
from steepest.nn.networks import Limit

ANGLES = (16, 32, 64, 128, 256, 512)  # degrees in θ that are tried
NORMS = (1, 3, 9, 15, 21, 30, 42)  # numbers of nodes in log a
CHECKS = 60  # pairs off the nodes at which a table is compared with the recursion
NETWORKS = 128  # whose tables are kept
SPREAD = 1e-12  # relative spread of the squares below which inputs count as equally long


@dataclass(frozen=True)
class Factors:
    """One kernel divided by the root of its diagonal: ``Σ_r [A Q_r Bᵀ] g_r(θ)``.

    Attributes:
        norms: Q, shape ``(r, q, q)``, symmetric in its last axes.
        angles: Chebyshev coefficients of g over [0, π], shape ``(r, degree + 1)``.
    """

    norms: NDArray[np.float64]
    angles: NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """NNGP and NTK of one network for inputs with squares in a range.

    Attributes:
        low: smallest ‖x‖²/n_0.
        high: largest.
        nngp: factors of the NNGP kernel.
        ntk: factors of the NTK; None when σ jumps.
        diagonal: Chebyshev coefficients of log K(a, a, 0) and log Θ(a, a, 0) over log a, shape ``(2, degree + 1)``.
        error: largest difference from the recursion at ``CHECKS`` random pairs, relative to the root of the diagonal,
            plus the recursion's own error bound; the same of the kernels with the input zero.
        zero: Chebyshev coefficients over log a of K(a, 0)/√K(a, a) and Θ(a, 0)/√Θ(a, a), where the second input is zero
            and has no angle, shape ``(2, degree + 1)``; None where nobody asked.
        at_zero: both kernels of the input zero with itself, shape ``(2,)``.
    """

    low: float
    high: float
    nngp: Factors
    ntk: Factors | None
    diagonal: NDArray[np.float64]
    error: float
    zero: NDArray[np.float64] | None = None
    at_zero: NDArray[np.float64] | None = None

    def place(self, squares: Vector) -> Vector:
        """Return the position of squares in the range, from −1 to 1."""
        if self.low == self.high:
            return np.zeros_like(squares)
        # log a over [log low, log high], mapped onto [−1, 1]
        return 2 * np.log(squares / self.low) / np.log(self.high / self.low) - 1

    def scales(self, squares: Vector) -> NDArray[np.float64]:
        """Return √K(a, a, 0) and √Θ(a, a, 0), shape ``(2, n)``."""
        # the series is of the logarithm of the diagonal; half of it is the logarithm of the root
        return np.exp(chebyshev.chebval(self.place(squares), self.diagonal.T) / 2)

    def with_zero(self, squares: Vector) -> NDArray[np.float64]:
        """Return both kernels between inputs and the input zero, shape ``(2, n)``; squares may be zero."""
        assert self.zero is not None and self.at_zero is not None
        silent = squares == 0
        live = np.where(silent, self.low, squares)
        values = chebyshev.chebval(self.place(live), self.zero.T) * self.scales(live)
        return np.where(silent, self.at_zero[:, None], values)

    def evaluate(self, squares: Vector, first: NDArray, second: NDArray, angles: Vector) -> Kernels:
        """Evaluate single pairs in float64, slow and simple: what the compiled pass over a Gram is tested with."""
        scales = self.scales(squares)
        basis = lambda q: chebyshev.chebvander(self.place(squares), q - 1)

        def one(factors: Factors, scale: Vector) -> Vector:
            rows = basis(factors.norms.shape[-1])
            # [A Q_r Bᵀ] of each pair, (r, t)
            weights = np.einsum("tq,rqp,tp->rt", rows[first], factors.norms, rows[second])
            shape = chebyshev.chebval(2 * angles / np.pi - 1, factors.angles.T)
            return scale[first] * scale[second] * (weights * shape).sum(0)

        none = np.full(len(first), np.nan)
        return Kernels(one(self.nngp, scales[0]), one(self.ntk, scales[1]) if self.ntk else none)


_TABLES: dict[tuple[Limit, float], list[Table]] = {}


def tabulate(
    limit: Limit, low: float, high: float, tolerance: float = 1e-11, *, zero: bool = False
) -> Table:
    """Tabulate a network's kernels for inputs with ``low ≤ ‖x‖²/n_0 ≤ high``; existing tables are used again.

    Degrees grow until the last coefficients are below the tolerance; then ``CHECKS`` random pairs are compared with
    the recursion. With ``zero`` the table also has the kernels between these inputs and the input zero.

    Raises:
        UserError: when the tolerance cannot be met, with what can.

    >>> from steepest.nn.networks import mlp
    >>> table = tabulate(mlp((2, 100, 100, 1), "relu", parameterized="ntk", bias=False).limit(), 0.5, 2.0)
    >>> table.nngp.norms.shape, table.error < 1e-11  # no biases: only the angle matters
    ((1, 1, 1), True)
    """
    check_limit_given(limit)
    low, high = as_number("low", low, 0.0, above=True), as_number("high", high, 0.0, above=True)
    tolerance = as_number("tolerance", tolerance, 0.0, above=True)
    if low > high:
        raise UserError(f"a table needs low ≤ high, got {low:g} and {high:g}")
    table = _tabulated(limit, low, high, tolerance)
    if not zero:
        return table
    series, itself, error = _at_zero(limit, table.low, table.high, tolerance)
    return replace(table, zero=series, at_zero=itself, error=max(table.error, error))


def _tabulated(limit: Limit, low: float, high: float, tolerance: float) -> Table:
    if (limit, tolerance) not in _TABLES and len(_TABLES) >= NETWORKS:
        _TABLES.pop(next(iter(_TABLES)))  # of the network that came first
    tables = _TABLES.setdefault((limit, tolerance), [])
    for table in tables:
        if (
            table.low <= low
            and high <= table.high
            and np.log(table.high / table.low) <= 2 * np.log(high / low) + 0.3
        ):
            return table
    # a little wider, so that the next batch of the same data fits
    low, high = (
        (np.sqrt(low * high),) * 2 if high <= (1 + SPREAD) * low else (low / 1.05, high * 1.05)
    )
    table = _build(limit, float(low), float(high), tolerance)
    tables[:] = [*tables[-7:], table]
    return table


def _build(limit: Limit, low: float, high: float, tolerance: float) -> Table:
    """Raise the number of nodes in the norm, then the degree in the angle, until both series have ended."""
    count = 1 if low == high else NORMS[1]
    angles = ANGLES[1]
    while True:
        nodes = _Nodes(limit, low, high, count, angles, tolerance)
        tail_norm, tail_angle = nodes.tails()
        if tail_norm > tolerance and count < NORMS[-1]:
            count = NORMS[NORMS.index(count) + 1]
        elif tail_angle > tolerance and angles < ANGLES[-1]:
            angles = ANGLES[ANGLES.index(angles) + 1]
        else:
            break
    table = nodes.table()
    difference, recursion = _error(limit, table, tolerance)
    # of the tangent kernel the recursion's own bound has the rounding of angles, which no tolerance changes
    error = difference + recursion.nngp_error
    if not error <= 100 * tolerance:
        raise UserError(
            f"a table of {limit.name} cannot meet the tolerance {tolerance:g} for squares from {low:g} to {high:g}: "
            f"{error:.0e} could be met; pass tolerance={error / 50:.0e}, or use pair_kernels for a few inputs"
        )
    return replace(table, error=difference + recursion.error)


@lru_cache(maxsize=32)
def _at_zero(
    limit: Limit, low: float, high: float, tolerance: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return ``Table.zero`` and ``Table.at_zero``, and the largest error, relative to the root of both diagonals.

    Where the input zero has no kernel with itself it has none with others, by Cauchy and Schwarz.
    """
    for count in (1,) if low == high else NORMS[1:]:
        points = np.cos((2 * np.arange(count) + 1) * np.pi / (2 * count))
        values, itself, bound = _beside_zero(
            limit, np.sqrt(low * high) * (high / low) ** (points / 2), tolerance
        )
        # at N nodes of the first kind c_k = (2/N) Σ f T_k: DCT-II over N, with c_0 halved
        series = np.asarray(dctn(values, type=2, axes=[1])) / count
        series[:, 0] /= 2
        units = np.where(itself > 0, np.sqrt(itself), 1.0)
        if count == 1 or np.nanmax(np.abs(series[:, -2:]) / units[:, None]) <= tolerance:
            break
    between = np.linspace(-1, 1, CHECKS) if count > 1 else np.zeros(1)
    exact, _, bound_between = _beside_zero(
        limit, np.sqrt(low * high) * (high / low) ** (between / 2), tolerance
    )
    differences = np.abs(chebyshev.chebval(between, series.T) - exact) / units[:, None]
    error = float(np.nanmax(differences)) + max(bound, bound_between)
    if not error <= 100 * tolerance:
        raise UserError(
            f"kernels of {limit.name} between the input zero and squares from {low:g} to {high:g} cannot meet the "
            f"tolerance {tolerance:g}: {error:.0e} could be met; pass tolerance={2 * error:.0e} to allow it"
        )
    return series, itself, error


def _beside_zero(
    limit: Limit, squares: Vector, tolerance: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return both kernels with the input zero over the root of the other's own, its kernels, and an error bound."""
    count = len(squares)
    first = np.arange(count)
    kernels = pair_kernels(
        limit,
        np.append(squares, 0.0),
        first,
        np.full(count, count),
        np.full(count, np.pi / 2),
        tolerance,
    )
    singles = np.stack(kernels.singles)
    values = np.stack(kernels.pairs) / np.sqrt(singles[:, :count])
    return values, singles[:, count], kernels.error


class _Nodes:
    """The recursion at Chebyshev points of (log a, log b, θ) and its coefficients, ``c[kernel, m, n, k]``."""

    def __init__(
        self, limit: Limit, low: float, high: float, count: int, degree: int, tolerance: float
    ):
        self.low = low
        self.high = high
        self.tolerance = tolerance
        # points of the first kind in the norms; of the second kind in θ, so that 0 and π are among them
        points = np.cos((2 * np.arange(count) + 1) * np.pi / (2 * count))
        squares = np.sqrt(low * high) * (high / low) ** (points / 2)
        theta = (np.cos(np.arange(degree + 1) * np.pi / degree) + 1) * np.pi / 2
        i, j = np.triu_indices(count)
        first, second = (np.repeat(index, degree + 1) for index in (i, j))
        kernels = pair_kernels(limit, squares, first, second, np.tile(theta, len(i)), tolerance)
        self.smooth = not np.isnan(kernels.pairs.ntk).any()
        self.coefficients = np.stack(
            [self._normalized(kernels, kernel, i, j, degree) for kernel in range(1 + self.smooth)]
        )
        logs = np.log(np.stack(kernels.singles[: 1 + self.smooth]))
        # DCT-II over N, c_0 halved, as at all nodes of the first kind
        self.diagonal = np.asarray(dctn(logs, type=2, axes=[1])) / count
        self.diagonal[:, 0] /= 2

    @staticmethod
    def _normalized(
        kernels: PairKernels, kernel: int, i: NDArray, j: NDArray, degree: int
    ) -> NDArray:
        """Return the coefficients of one kernel over the root of its diagonal."""
        pairs = kernels.pairs[kernel].reshape(len(i), degree + 1)
        single = kernels.singles[kernel]
        count = len(single)
        values = np.empty((count, count, degree + 1))
        # K is symmetric in the two norms at a fixed angle: half of the pairs suffice
        values[i, j] = values[j, i] = pairs / np.sqrt(single[i] * single[j])[:, None]
        # both norms: DCT-II; the angle, at nodes of the second kind: DCT-I, first and last halved
        c = np.asarray(dctn(values, type=2, axes=[0, 1])) / count**2
        c = np.asarray(dctn(c, type=1, axes=[2])) / degree
        c[0] /= 2
        c[:, 0] /= 2
        c[..., 0] /= 2
        c[..., -1] /= 2
        return c

    def tails(self) -> tuple[float, float]:
        """Return the largest of the last two coefficients in the norm (of kernels and diagonal) and in the angle."""
        c = np.abs(self.coefficients)
        if self.diagonal.shape[1] == 1:
            return 0.0, float(c[..., -2:].max())
        return float(max(c[:, -2:].max(), np.abs(self.diagonal[:, -2:]).max())), float(
            c[..., -2:].max()
        )

    def table(self) -> Table:
        parts = [_factorize(c, self.tolerance / 30) for c in self.coefficients]
        diagonal = (
            self.diagonal
            if self.smooth
            else np.concatenate([self.diagonal, np.full_like(self.diagonal, np.nan)])
        )
        return Table(
            self.low, self.high, parts[0], parts[1] if self.smooth else None, diagonal, np.nan
        )


def _factorize(c: NDArray[np.float64], small: float) -> Factors:
    """Split ``c[m, n, k]`` into ``Σ_r Q[r, m, n] g[r, k]`` by a singular value decomposition; drop the small."""
    count = len(c)
    # (m, n) as one index: c = Σ_r (u_r s_r) ⊗ g_r, the best of every rank
    left, values, right = np.linalg.svd(c.reshape(count**2, -1), full_matrices=False)
    rank = max(1, int((values > small).sum()))
    norms = (left[:, :rank] * values[:rank]).T.reshape(rank, count, count)
    angles = right[:rank]
    rows = np.abs(norms).max((0, 1)) > small / 10
    kept = int(np.flatnonzero(rows)[-1]) + 1
    long = np.abs(values[:rank, None] * angles).max(0) > small / 10
    return Factors(norms[:, :kept, :kept], angles[:, : int(np.flatnonzero(long)[-1]) + 1])


def _error(limit: Limit, table: Table, tolerance: float) -> tuple[float, PairKernels]:
    """Return the largest relative difference from the recursion at random pairs, some nearly parallel, and these."""
    rng = np.random.default_rng(0)
    # log-uniform over the range, (2 · CHECKS,): first inputs, then second
    squares = table.low * (table.high / table.low) ** rng.random(2 * CHECKS)
    first = np.arange(CHECKS)
    second = np.arange(CHECKS, 2 * CHECKS)
    # after a layer a covariance in double precision does not fix angles below 1e-3 well enough to be a reference
    # the sixth power of a uniform number lies near 0: nearly parallel pairs
    theta = np.maximum(
        np.pi * rng.random(CHECKS) ** np.where(np.arange(CHECKS) % 4 == 0, 6, 1), 1e-3
    )
    exact = pair_kernels(limit, squares, first, second, theta, tolerance)
    interpolated = table.evaluate(squares, first, second, theta)
    differences = [
        np.abs(interpolated[k] - exact.pairs[k])
        / np.sqrt(exact.singles[k][first] * exact.singles[k][second])
        for k in range(1 + (table.ntk is not None))
    ]
    return float(np.max(differences)), exact
