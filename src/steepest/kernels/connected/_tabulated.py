"""One tile of a Gram matrix: the table evaluated at the norms and angles of its rows and columns."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from steepest.core.precision import arithmetic
from steepest.kernels.connected._table import Factors, Table, tabulate
from steepest.nn.activations import angle_of
from steepest.nn.networks import Limit

TOLERANCE = {4: 1e-7, 8: 1e-11}  # of the table, by bytes of the inputs' floats


def squares(x: NDArray) -> NDArray[np.float64]:
    """Return ``‖x‖²/n_0`` of each row, in float64."""
    return np.einsum("nd,nd->n", x, x, dtype=np.float64) / x.shape[1]


def unit_rows(x: NDArray, sizes: NDArray[np.float64]) -> NDArray:
    """Return each row over its norm, divided in float64 and rounded once; ``sizes`` are its ``squares``.

    A row of zeros has no direction and stays as it is.
    """
    norms = np.sqrt(np.where(sizes > 0, sizes * x.shape[1], 1.0))[:, None]
    return np.divide(x, norms, out=np.empty_like(x), dtype=np.float64, casting="same_kind")


class Norms(NamedTuple):
    """What the choice of a way and a table need to know of inputs.

    Attributes:
        low: smallest ``‖x‖²/n_0`` but zero.
        high: largest, the same number where all are so up to the inputs' rounding.
        zero: whether some input is zero, which has no angle to others.
    """

    low: float
    high: float
    zero: bool

    @classmethod
    def of(cls, x: NDArray, other: NDArray | None = None) -> "Norms":
        """Read them from one set of inputs, or from two."""
        sizes = squares(x) if other is None else np.concatenate([squares(x), squares(other)])
        live = sizes[sizes > 0]
        zero = len(live) < len(sizes)
        if not len(live):
            return cls(1.0, 1.0, zero)
        low = float(live.min())
        high = float(live.max())
        if high / low - 1 < 4 * np.finfo(x.dtype).eps:
            low = high = float(live.mean())
        return cls(low, high, zero)


@dataclass(frozen=True)
class Tabulated:
    """Kernels by a table: any activation, any depth.

    Attributes:
        table: of the network, for the norms in question.
    """

    table: Table

    @classmethod
    def of(
        cls, limit: Limit, norms: Norms, dtype: np.dtype, tolerance: float | None = None
    ) -> "Tabulated":
        """Build it with the table that covers inputs of these norms."""
        at = tolerance or TOLERANCE[dtype.itemsize]
        return cls(tabulate(limit, norms.low, norms.high, at, zero=norms.zero))

    @property
    def error(self) -> float:
        """Return the largest error relative to √(K_αα K_ββ)."""
        return self.table.error

    @property
    def factors(self) -> list[Factors]:
        """Return the factors of the kernels that exist."""
        return [factors for factors in (self.table.nngp, self.table.ntk) if factors is not None]

    def rows(self, x: NDArray) -> tuple[NDArray, ...]:
        """Return what a tile needs to know of each input; the inputs come last but one in every array.

        Unit vectors ``(n, d)``; √K(a, a, 0) and √Θ(a, a, 0), ``(2, n, 1)``; and for each kernel the Chebyshev
        polynomials of log a, ``(n, q)``, and A Q_r, ``(r, n, q)``. Where some inputs are zero, behind them a mark of
        those, ``(n, 1)``, and the kernels with the input zero, ``(2, n, 1)``.
        """
        sizes = squares(x)
        silent = sizes == 0
        live = np.where(silent, self.table.low, sizes)
        place = np.clip(self.table.place(live), -1, 1)
        scales = self.table.scales(live)
        beside: list[NDArray] = []
        if self.table.zero is not None and self.table.at_zero is not None:
            scales = np.where(silent, np.sqrt(self.table.at_zero)[:, None], scales)
            beside = [silent[:, None], self.table.with_zero(sizes)[..., None]]
        parts = [unit_rows(x, sizes), scales[..., None]]
        for factor in self.factors:
            # T_j(log a), (n, q), and A Q_r, (r, n, q): half of A Q_r Bᵀ belongs to each input
            basis = chebyshev.chebvander(place, factor.norms.shape[-1] - 1)
            parts += [basis, np.einsum("nq,rqp->rnp", basis, factor.norms)]
        return tuple(np.ascontiguousarray(array, x.dtype) for array in (*parts, *beside))

    def tile(self, rows: tuple, columns: tuple, *, same: bool) -> tuple[Array, Array]:
        """Compute NNGP and NTK between some rows and columns; ``same`` puts the exact diagonal on it."""
        with arithmetic(double=rows[0].dtype == np.float64):
            angles = tuple(factors.angles.astype(rows[0].dtype) for factors in self.factors)
            kernels = _tile(rows, columns, angles, same)
            return (
                kernels if len(kernels) == 2 else (kernels[0], jnp.full_like(kernels[0], jnp.nan))
            )


def put(rows: tuple[NDArray, ...], device: jax.Device | None = None) -> tuple[Array, ...]:
    """Put the arrays where tiles are computed, once for all tiles that need them; by default on JAX's own choice."""
    with arithmetic(double=rows[0].dtype == np.float64):
        return tuple(jax.device_put(array, device) for array in rows)


def part(rows: tuple[NDArray, ...], block: slice) -> tuple[NDArray, ...]:
    """Return the arrays of some rows."""
    return tuple(array[..., block, :] for array in rows)


@partial(jax.jit, static_argnames="same")
def _tile(rows, columns, angles, same: bool) -> tuple[Array, ...]:
    cosine, sine = cosines(rows[0], columns[0])
    # θ in [0, π] becomes the variable in [−1, 1] of the series g_r
    place = 2 / jnp.pi * angle_of(sine, cosine) - 1
    kernels = []
    beside = 2 + 2 * len(angles)  # what is known where some inputs are zero
    for k, series in enumerate(angles):
        scale = rows[1][k]
        weights = rows[3 + 2 * k]
        other = columns[1][k]
        basis = columns[2 + 2 * k]
        shape = 0.0
        for r, values in enumerate(_chebyshev(series, place)):
            flat = weights.shape[-1] == 1  # one node in the norm: a constant
            # Σ_r g_r(θ) [A Q_r Bᵀ]: one product of matrices for each r
            shape = shape + values * (weights[r, 0, 0] if flat else weights[r] @ basis.T)
        tile = scale * other.T * shape
        if len(rows) > beside:
            (silent, with_zero), (silent_too, zero_with) = rows[beside:], columns[beside:]
            tile = jnp.where(silent > 0, zero_with[k].T, tile)
            tile = jnp.where(silent_too.T > 0, with_zero[k], tile)
        kernels.append(symmetric(tile, scale[:, 0] ** 2) if same else tile)
    return tuple(kernels)


def cosines(
    units: Float[Array, "p d"], others: Float[Array, "q d"]
) -> tuple[Float[Array, "p q"], Float[Array, "p q"]]:
    """Return cosine and sine of the angles between unit vectors.

    Angles within rounding of 0 or π count as such, so that equal inputs have none.
    """
    rho = units @ others.T
    distance = 1 - jnp.abs(rho)
    distance = jnp.where(distance < 4 * jnp.finfo(rho.dtype).eps, 0.0, distance)
    # sin² θ = (1 − |ρ|)(1 + |ρ|), from one rounded difference instead of 1 − ρ²
    return jnp.where(rho < 0, distance - 1, 1 - distance), jnp.sqrt(distance * (2 - distance))


def symmetric(tile: Float[Array, "p p"], diagonal: Float[Array, " p"]) -> Float[Array, "p p"]:
    """Return the mean with the transpose, which differs by rounding, with the exact diagonal."""
    return jnp.fill_diagonal((tile + tile.T) / 2, diagonal, inplace=False)


def _chebyshev(series: Float[Array, "r k"], t: Float[Array, "p q"]) -> list[Float[Array, "p q"]]:
    """Sum ``Σ_k c_k T_k(t)`` of several series that share their polynomials."""
    last = jnp.ones_like(t)
    now = t
    sums = [c[0] + (c[1] * t if len(c) > 1 else 0.0) for c in series]
    for k in range(2, series.shape[1]):
        # T_{k+1} = 2 t T_k − T_{k−1}
        last, now = now, 2 * t * now - last
        sums = [total + c[k] * now for total, c in zip(sums, series, strict=True)]
    return sums
