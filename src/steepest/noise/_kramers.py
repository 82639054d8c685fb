"""Mean times to leave a basin: the formula of Eyring and Kramers, and the exact integral on the line."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.integrate import cumulative_simpson, simpson

from steepest.core.compiling import compile_quickly
from steepest.core.errors import UserError
from steepest.core.given import call, number
from steepest.core.signatures import checked
from steepest.nn.types import Values

FLAT = 1e-6  # gradient over curvature of a critical point, at most


class Kramers(NamedTuple):
    """The mean time to leave a basin over a saddle, in the limit of little noise.

    Attributes:
        time: ``prefactor · exp(β barrier)``.
        barrier: f(saddle) − f(minimum).
        prefactor: ``(2π/|λ₋|) √(|det H_s| / det H_a)``.
        correction: c of ``time · (1 + c/β + …)`` on the line; NaN in more dimensions, where it is not computed.
    """

    time: float
    barrier: float
    prefactor: float
    correction: float


@checked
def kramers(
    f: Callable[[Array], Array],
    minimum: Float[Values, "*d"] | float,
    saddle: Float[Values, "*d"] | float,
    beta: float,
) -> Kramers:
    """Return Eyring's and Kramers' formula for ``dX = −∇f dt + √(2/β) dW``, on the line with its first correction.

    ``τ = (2π/|λ₋|) √(|det H_s|/det H_a) e^{β(f_s − f_a)}`` with λ₋ the negative eigenvalue at the saddle; it is the
    time to the basin behind, not to the saddle, which takes half as long. On the line Laplace's method gives

        ``c = 5f‴_a²/(24f″_a³) − f⁗_a/(8f″_a²) + 5f‴_s²/(24|f″_s|³) + f⁗_s/(8f″_s²)``.

    Args:
        f: the potential, smooth; of a place ``(d,)``, or of a number.
        minimum: where the basin's minimum is.
        saddle: the lowest saddle on its rim.
        beta: β, the inverse temperature.

    Raises:
        UserError: a β that is not positive, or places that are no minimum and no saddle of index one above it.

    Source: Bovier, Eckhoff, Gayrard and Klein 2004; Kramers 1940; the correction is derived here.

    >>> well = kramers(lambda x: (x**2 - 1) ** 2 / 4, -1.0, 0.0, 8.0)
    >>> round(well.time, 2), well.barrier, round(well.correction, 12)  # 2π e²/√2
    (32.83, 0.25, 1.5)
    """
    if not (np.isfinite(beta) and beta > 0):
        raise UserError(f"kramers: expected an inverse temperature β above zero, got {beta}")
    places = [np.asarray(minimum, float), np.asarray(saddle, float)]
    if places[0].shape != places[1].shape or places[0].ndim > 1:
        raise UserError(
            f"kramers: expected a minimum and a saddle that are both numbers or of one shape (d,), got "
            f"{places[0].shape} and {places[1].shape}; try minimum=-1.0, saddle=0.0"
        )
    ends = jnp.asarray(np.stack(places))
    derivatives = compile_quickly(lambda x: jax.vmap(_derivatives(f))(x))(ends)
    value, slope, hessian, third, fourth = (np.asarray(part, float) for part in derivatives)
    size = max(1, ends[0].size)
    curvatures = np.linalg.eigvalsh(hessian.reshape(2, size, size))
    if np.abs(slope).max() > FLAT * np.abs(curvatures).max():
        raise UserError(
            "kramers: expected a minimum and a saddle, where the gradient vanishes, got one of "
            f"{np.abs(slope).max():.2g}"
        )
    signs = (curvatures <= 0).sum(1)
    barrier = float(value[1] - value[0])
    if signs[0] != 0 or signs[1] != 1 or barrier <= 0:
        raise UserError(
            f"kramers: expected a minimum, index 0, and a saddle above it, index 1, got indices {signs[0]} and "
            f"{signs[1]} and a barrier of {barrier:.3g}"
        )
    # in logarithms, so that hundreds of dimensions do not overflow
    logs = np.log(np.abs(curvatures)).sum(1)
    # (2π/|λ₋|) √(|det H_s|/det H_a), the determinants by sums of logarithms
    prefactor = float(2 * np.pi / abs(curvatures[1, 0]) * np.exp((logs[1] - logs[0]) / 2))
    correction = np.nan
    if ends[0].size == 1:
        bends = np.abs(curvatures[:, 0])
        turns = 5 * third.ravel() ** 2 / (24 * bends**3)  # 5f‴²/(24|f″|³) at both places
        # −f⁗/(8f″²) at the minimum, + at the saddle
        correction = float((turns + np.array([-1, 1]) * fourth.ravel() / (8 * bends**2)).sum())
    time = prefactor * float(np.exp(beta * barrier))
    return Kramers(time, barrier, prefactor, correction)


@checked
def passage_time(
    f: Callable[[Values], Values],
    beta: float,
    start: float,
    target: float,
    far: float,
    nodes: int = 20001,
) -> float:
    """Return the mean time that ``dX = −f'dt + √(2/β) dW`` on the line takes to its first visit of a target, exactly.

    ``τ = β ∫_a^b e^{βf(y)} ∫_{−∞}^y e^{−βf(z)} dz dy`` by Simpson's rule, for b above a; mirrored for b below.

    Args:
        f: a potential on arrays; it may be an effective one, such as f + log κ/2β beside a fast direction of
            stiffness κ(x).
        beta: β, the inverse temperature.
        start: a.
        target: b.
        far: where the tail beyond the start is cut, in place of −∞.
        nodes: of Simpson's rule.

    Raises:
        UserError: a β that is not positive, places out of order, or a tail that is cut too early.

    >>> round(passage_time(lambda x: (x**2 - 1) ** 2 / 4, 8.0, -1.0, 1.0, -4.0), 2)  # a quarter above Kramers' 32.83
    41.03
    """
    if not (np.isfinite(beta) and beta > 0):
        raise UserError(f"passage_time: expected an inverse temperature β above zero, got {beta}")
    if not (far < start < target or far > start > target):
        raise UserError(
            f"passage_time: expected the start between the far end and the target, got {far:g}, {start:g} and "
            f"{target:g}"
        )
    before = np.linspace(far, start, nodes)
    between = np.linspace(start, target, nodes)
    low = np.asarray(f(before), float)
    high = np.asarray(f(between), float)
    # bottom and top are taken out of the exponents, so that every exponential is at most one
    bottom = min(low.min(), high.min())
    top = high.max()
    tail = np.exp(-beta * (low - bottom))
    if tail[0] > 1e-12 * tail.max():
        raise UserError(
            f"passage_time: expected exp(−βf) to vanish at the far end {far:g}, got {tail[0] / tail.max():.2g} of the "
            "largest; take it further out, or a potential that confines"
        )
    gap = abs(target - start) / (nodes - 1)
    # ∫_{−∞}^y e^{−βf}: the tail before the start, and what accumulates from the start to y
    inner = simpson(tail, dx=abs(far - start) / (nodes - 1)) + cumulative_simpson(
        np.exp(-beta * (high - bottom)), dx=gap, initial=0
    )
    outer = simpson(np.exp(beta * (high - top)) * inner, dx=gap)
    # what was taken out of the two exponents
    return float(beta * np.exp(beta * (top - bottom)) * outer)


def _derivatives(f: Callable[[Array], Array]) -> Callable[[Array], tuple[Any, ...]]:
    """Return value, gradient, Hessian and, on the line, third and fourth derivative of a function."""

    def at(x: Array) -> tuple[Any, ...]:
        lower = (number("f", call("f", f, x)), jax.grad(f)(x), jax.hessian(f)(x))
        if x.size > 1:
            return (*lower, jnp.nan, jnp.nan)
        along = lambda t: f(jnp.reshape(t, x.shape))
        third = jax.grad(jax.grad(jax.grad(along)))
        point = jnp.reshape(x, ())
        return (*lower, third(point), jax.grad(third)(point))

    return at
