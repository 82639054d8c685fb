"""One tile of a Gram matrix, layer by layer: for a few layers with dual activations in closed form."""

from dataclasses import dataclass
from functools import partial
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from steepest.core.precision import arithmetic
from steepest.kernels.connected._layers import predict_signal
from steepest.kernels.connected._tabulated import (
    Norms,
    cosines,
    squares,
    symmetric,
    unit_rows,
)
from steepest.nn.activations import DualForm, closed_form, homogeneous_slopes, jumps
from steepest.nn.networks import Limit

DEPTH = 6  # hidden layers to which this is faster than a table over unequal norms


@dataclass(frozen=True)
class Direct:
    """Kernels by the recursion itself.

    Attributes:
        limit: the network.
        error: rounding, relative to √(K_αα K_ββ).
    """

    limit: Limit
    error: float

    @staticmethod
    def suits(limit: Limit, norms: Norms) -> bool:
        """Tell whether this is the better way: closed forms over norms that differ and matter, few layers or kinks."""
        if closed_form(limit.activation) is None:
            return False
        if not limit.layers[0].c_b and norms.zero:
            return False  # closed forms are those of signals that are not zero
        biased = any(layer.c_b or layer.t_b for layer in limit.layers)
        if norms.low == norms.high or (homogeneous_slopes(limit.activation) and not biased):
            return False  # only the angle matters
        # With biases the distance of two inputs enters, which has a corner where they meet, and kinks let it through:
        # no polynomial of the norms and the angle is near that.
        return limit.depth <= DEPTH or bool(limit.activation.kinks)

    @classmethod
    def of(cls, limit: Limit, x: NDArray) -> "Direct":
        """Build it for inputs of this dtype."""
        return cls(limit, 16 * (limit.depth + 1) * float(np.finfo(x.dtype).eps))

    def rows(self, x: NDArray) -> tuple[NDArray, ...]:
        """Return unit vectors ``(n, d)``, lengths ``(n, 1)``, variances of layers and the NTK, ``(L + 2, n, 1)``."""
        sizes = squares(x)
        path = predict_signal(self.limit, sizes)
        layers = np.concatenate([path.variance, path.ntk[None]])
        parts = unit_rows(x, sizes), np.sqrt(sizes)[:, None], layers[..., None]
        return tuple(np.ascontiguousarray(array, x.dtype) for array in parts)

    def tile(self, rows: tuple, columns: tuple, *, same: bool) -> tuple[Array, Array]:
        """Compute NNGP and NTK between some rows and columns; ``same`` puts the exact diagonal on it."""
        with arithmetic(double=rows[0].dtype == np.float64):
            limit = self.limit
            kept = tuple(limit.kept(i) for i in range(limit.depth + 1))
            form = cast(DualForm, closed_form(limit.activation))
            kernel, theta = _tile(form, limit.normalized, rows, columns, limit.layers, kept, same)
        return kernel, theta if not any(
            value for _, value, _ in jumps(self.limit.activation)
        ) else theta * jnp.nan


@partial(jax.jit, static_argnums=(0, 1, 6))
def _tile(
    form: DualForm, normalized: bool, rows, columns, layers, kept, same: bool
) -> tuple[Array, Array]:
    """Coefficients are arguments, so that one program serves all networks of one depth and activation."""
    (start, *others) = layers
    (cosine, sine) = cosines(rows[0], columns[0])
    lengths = rows[1]
    other_lengths = columns[1].T
    product = lengths * other_lengths * cosine
    k = start.c_b + start.c_w * product
    theta = start.t_b + start.t_w * product
    # law of cosines: ‖x − x'‖²/n_0 by 1 − cos θ, which keeps its digits for near inputs
    distance = (lengths - other_lengths) ** 2 + 2 * lengths * other_lengths * (1 - cosine)
    # det K⁽¹⁾ = (C_W ab sin θ)² + C_b C_W ‖x − x'‖²/n_0, positive terms without cancellation
    root = jnp.sqrt(
        (start.c_w * lengths * other_lengths * sine) ** 2 + start.c_b * start.c_w * distance
    )
    for i, layer in enumerate(others, 1):
        a = rows[2][i - 1]
        b = columns[2][i - 1].T
        if normalized:
            both = jnp.sqrt(a * b)
            # σ sees z/√K: a pair of unit variances, and Price's derivative gains 1/√(K_αα K_ββ)
            value, slope = form(a / a, b / b, k / both, root / both)
            slope = slope / both
        else:
            value, slope = form(a, b, k, root)
        # Θ' = r² Θ + t_b + t_w E σσ + C_W E σ'σ' Θ (Limit): this layer's weights, then those below
        theta = kept[i] * theta + layer.t_b + layer.t_w * value + layer.c_w * slope * theta
        k = kept[i] * k + layer.c_b + layer.c_w * value
        square = rows[2][i] * columns[2][i].T
        gap = square - k**2
        # below the rounding of K_αα K_ββ a determinant is noise: equal inputs stay equal
        root = jnp.sqrt(jnp.where(gap > 16 * jnp.finfo(k.dtype).eps * square, gap, 0.0))
    if not same:
        return k, theta
    # rows[2] holds K_αα of every layer and Θ_αα last, (L + 2, n, 1): the exact diagonals
    return symmetric(k, rows[2][-2, :, 0]), symmetric(theta, rows[2][-1, :, 0])
