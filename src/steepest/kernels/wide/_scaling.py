"""Inputs of extreme norms, where kernels are homogeneous: scaled by powers of two, and the kernels scaled back.

Without biases a network of matrices, pools, sums and activations with ``σ(λz) = λ^p σ(z)`` for λ > 0 has kernels with
``K(λx, μx') = (λμ)^d K(x, x')``, and Θ alike. So each row may be scaled for itself, and exactly.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels._arguments import beyond_range
from steepest.kernels.wide._rule import rule_of
from steepest.nn.layers import WideLimit

SCALED = (
    0.25  # power of the range beyond which rows are scaled: products of a few squares are then held
)


class Scaled(NamedTuple):
    """Inputs that were multiplied by powers of two, row by row.

    Attributes:
        x: the first inputs, times ``2^-rows``.
        other: the second, times ``2^-columns``; None where there is one set.
        rows: exponents, shape ``(n,)``.
        columns: exponents of the second set, or of the first.
    """

    x: NDArray
    other: NDArray | None
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]

    @property
    def moved(self) -> bool:
        """Tell whether any row was scaled."""
        return bool(self.rows.any() or self.columns.any())

    def diagonal(self, kernel: NDArray, degree: int | None) -> NDArray:
        """Return kernels of each of the first inputs with itself, ``(n,)``, as they were."""
        assert degree is not None  # or nothing would have been scaled
        return multiplied(kernel, 2 * degree * self.rows)

    def back(self, kernel: NDArray, degree: int) -> NDArray:
        """Return kernels ``(n, m, …)`` of the inputs as they were, from kernels of these.

        Raises:
            UserError: one is beyond the precision.
        """
        exponents = degree * (self.rows[:, None] + self.columns)
        return multiplied(kernel, exponents)


def multiplied(kernel: NDArray, exponents: NDArray[np.int64]) -> NDArray:
    """Return kernels times powers of two; the first axes belong to the exponents.

    Raises:
        UserError: one is beyond the precision.
    """
    exponents = exponents.reshape(exponents.shape + (1,) * (kernel.ndim - exponents.ndim))
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(kernel, exponents).astype(kernel.dtype)
    tiny = np.finfo(kernel.dtype).tiny
    lost = (np.isfinite(kernel) & ~np.isfinite(scaled)) | ((kernel != 0) & (np.abs(scaled) < tiny))
    if lost.any():
        at = np.unravel_index(int(np.argmax(lost)), lost.shape)
        finer = "; take float64" if kernel.dtype == np.float32 else ""
        raise UserError(
            f"a kernel of row {int(at[0])} of the inputs is about 2^{_exponent(kernel[at], exponents, at)}, which "
            f"{kernel.dtype} does not hold with all digits; scale all inputs by one number{finer}"
        )
    return scaled


def _exponent(value: float, exponents: NDArray[np.int64], at: tuple) -> int:
    """Return the power of two of an entry as it would be; positions have the exponents of their inputs."""
    inputs = tuple(
        place if size > 1 else 0 for place, size in zip(at, exponents.shape, strict=True)
    )
    return int(np.frexp(value)[1] + exponents[inputs])


def scaled(x: NDArray, other: NDArray | None) -> Scaled:
    """Scale all rows to entries of one at most, where products of some row's squares are not held."""
    sets = [x] if other is None else [x, other]
    if not any(beyond_range(rows.reshape(len(rows), -1), SCALED).any() for rows in sets):
        still = [np.zeros(len(rows), np.int64) for rows in sets]
        return Scaled(x, other, still[0], still[-1])
    exponents = [_exponents(rows) for rows in sets]
    moved = None if other is None else _moved(other, exponents[-1])
    return Scaled(_moved(x, exponents[0]), moved, exponents[0], exponents[-1])


def _exponents(x: NDArray) -> NDArray[np.int64]:
    """Return the power of two of each row's largest entry, zero for a row of zeros."""
    return np.frexp(np.abs(x.reshape(len(x), -1)).max(1))[1].astype(np.int64)


def _moved(x: NDArray, exponents: NDArray[np.int64]) -> NDArray:
    with np.errstate(under="ignore"):  # beside entries of one these are nothing
        return np.ldexp(x, -exponents.reshape(-1, *(1 for _ in x.shape[1:])))


class InRange(NamedTuple):
    """An input that JAX may trace, ``(1, *shape)``, times ``2^-exponent``, and whether its square is held."""

    x: Array
    exponent: Array
    held: Array


def read_in_range(x: Array, mask: Array | None, degree: int | None) -> InRange:
    """Scale one input as ``scaled`` does, where kernels can be scaled back."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        x = x.astype(float)
    read = jax.lax.stop_gradient(x)
    if (
        mask is not None and mask.shape == x.shape[:-1]
    ):  # else its shape is refused where it is read
        read = jnp.where(mask[..., None], read, 0)
    numbers = jnp.finfo(x.dtype)
    size = jnp.abs(read).max()
    # the largest entry's square stands for the norm's, and kernels are its powers
    power = 0.375 / max(degree or 1, 1)
    inside = (size == 0) | ((size > numbers.tiny**power) & (size < numbers.max**power))
    if degree is None:
        return InRange(x, jnp.zeros((), int), inside)
    finite = jnp.isfinite(size)
    limit = -numbers.minexp - 2  # two factors, of which each is a normal number
    exponent = jnp.where(inside | ~finite, 0, jnp.clip(jnp.frexp(size)[1], -limit, limit))
    return InRange(x * jnp.exp2(-exponent.astype(x.dtype)), exponent, finite)


def multiplied_or_nan(kernel: Array, exponent: Array) -> Array:
    """Return a kernel times a power of two, NaN where the precision does not hold that."""
    half = exponent // 2
    factors = [jnp.exp2(power.astype(kernel.dtype)) for power in (half, exponent - half)]
    product = kernel * factors[0] * factors[1]
    held = (kernel == 0) | (
        jnp.isfinite(product) & (jnp.abs(product) >= jnp.finfo(kernel.dtype).tiny)
    )
    return jnp.where(held, product, jnp.nan)


def degrees(limit: WideLimit) -> list[int | None]:
    """Return the degree in which kernels behind each node are homogeneous in either input; None where they are not.

    >>> from steepest.nn.layers import dense, network
    >>> of = lambda name, **options: network(dense(8), name, dense(1), shape=(3,), parameterized="ntk", **options)
    >>> degrees(of("quadratic", bias=False).limit()), degrees(of("relu").limit())
    ([1, 1, 2, 2], [1, None, None, None])
    """
    behind: list[int | None] = []
    for node in limit.nodes:
        read = [degree for source in node.sources if (degree := behind[source]) is not None]
        homogeneous = len(read) == len(node.sources)
        behind.append(rule_of(node).degree(read) if homogeneous else None)
    return behind
