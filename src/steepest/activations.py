"""Activation functions, by name or your own, and their expectations under a centred Gaussian.

An activation acts on every entry of an array. It declares its *kinks*, the points where it or its derivative
is not smooth, and every integral here is cut there: a rule that ignores the corner of ReLU is wrong in the
fourth digit.
"""

import difflib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf as _erf
from jax.scipy.special import ndtr
from jaxtyping import Array, Float

from steepest.errors import UserError

Elementwise = Callable[[Float[Array, "*shape"]], Float[Array, "*shape"]]


@dataclass(frozen=True)
class Activation:
    """An activation function σ with its derivative and the points where it is not smooth.

    Attributes:
        name: how pages and tables call it.
        function: σ, applied to every entry of an array of any shape.
        derivative: σ'; by default forward-mode differentiation of ``function``.
        kinks: where σ, σ' or σ'' jumps; σ itself must be continuous. Integrals are cut there.

    >>> import jax.numpy as jnp
    >>> shifted = Activation("shifted", lambda z: jnp.maximum(z - 1, 0), kinks=(1.0,))
    >>> float(shifted.slope(jnp.asarray(3.0)))
    1.0
    """

    name: str
    function: Elementwise
    derivative: Elementwise | None = None
    kinks: tuple[float, ...] = ()

    def __call__(self, z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """σ(z), entry by entry."""
        return self.function(z)

    def slope(self, z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """σ'(z), entry by entry."""
        if self.derivative is not None:
            return self.derivative(z)
        z = jnp.asarray(z)
        return jax.jvp(self.function, (z,), (jnp.ones_like(z),))[1]


class Estimate(NamedTuple):
    """A computed number with an estimate of its absolute error."""

    value: Float[Array, "*shape"]
    error: Float[Array, "*shape"]


@lru_cache
def leaky_relu(slope: float = 0.01) -> Activation:
    """Leaky ReLU, ``σ(z) = z`` for z > 0 and ``slope · z`` otherwise.

    >>> float(leaky_relu(0.5)(-2.0))
    -1.0
    """
    return Activation(
        f"leaky_relu({slope:g})",
        lambda z: jnp.where(z > 0, z, slope * z),
        lambda z: jnp.where(z > 0, jnp.ones_like(z), slope),
        (0.0,),
    )


@lru_cache
def relu_power(p: float = 2.0) -> Activation:
    """Power of ReLU, ``σ(z) = max(z, 0)^p`` with p ≥ 1.

    Raises:
        UserError: if p < 1, where σ' is not square integrable in general.

    >>> float(relu_power(3)(2.0))
    8.0
    """
    if p < 1:
        raise UserError(f"relu_power needs a power p ≥ 1, got {p:g}; use p = 1 for the plain ReLU.")
    return Activation(
        f"relu_power({p:g})",
        lambda z: jnp.where(z > 0, jnp.where(z > 0, z, 1.0) ** p, 0.0),
        lambda z: jnp.where(z > 0, p * jnp.where(z > 0, z, 1.0) ** (p - 1), 0.0),
        (0.0,),
    )


def _normal_density(z):
    return jnp.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


_NAMED = {
    each.name: each
    for each in (
        Activation("linear", lambda z: 1.0 * z, jnp.ones_like),
        Activation("relu", jax.nn.relu, lambda z: jnp.where(z > 0, jnp.ones_like(z), 0.0), (0.0,)),
        Activation("tanh", jnp.tanh),
        Activation("sin", jnp.sin, jnp.cos),
        Activation("erf", _erf),
        # The exact GELU z Φ(z), not the tanh approximation that jax.nn.gelu uses by default.
        Activation("gelu", lambda z: z * ndtr(z), lambda z: ndtr(z) + z * _normal_density(z)),
        Activation("silu", jax.nn.silu),
        Activation("softplus", jax.nn.softplus, jax.nn.sigmoid),
        Activation("sigmoid", jax.nn.sigmoid),
        Activation("elu", lambda z: jax.nn.elu(1.0 * z), lambda z: jnp.exp(jnp.minimum(z, 0.0)), (0.0,)),
        Activation("quadratic", lambda z: z**2, lambda z: 2.0 * z),
    )
}
_FAMILIES = {"leaky_relu": leaky_relu, "relu_power": relu_power}
_KNOWN_FUNCTIONS = {jax.nn.relu: "relu", jax.nn.leaky_relu: "leaky_relu", jax.nn.elu: "elu"}  # these have kinks


def activation_names() -> tuple[str, ...]:
    """The names that ``activation`` knows; families take one number, as in ``leaky_relu(0.2)``.

    >>> "tanh" in activation_names()
    True
    """
    return (*_NAMED, *_FAMILIES)


def activation(name_or_callable: str | Elementwise | Activation) -> Activation:
    """Finds an activation by its name, or wraps your own elementwise JAX function, taken to be smooth.

    For one with corners build an ``Activation`` with its ``kinks`` yourself.

    Raises:
        UserError: if the name is unknown; the message names the nearest known one.

    >>> activation("leaky_relu(0.2)").kinks
    (0.0,)
    >>> activation("thanh")
    Traceback (most recent call last):
    steepest.errors.UserError: There is no activation 'thanh'; did you mean 'tanh'? Known: linear, relu, ...
    """
    if isinstance(name_or_callable, Activation):
        return name_or_callable
    if not isinstance(name_or_callable, str):
        return _from_callable(name_or_callable)
    name = name_or_callable.strip().lower()
    if name in _NAMED:
        return _NAMED[name]
    family, number = _parse(name)
    if family in _FAMILIES:
        return _FAMILIES[family]() if number is None else _FAMILIES[family](number)
    nearest = difflib.get_close_matches(family, activation_names(), n=1, cutoff=0.0)[0]
    raise UserError(
        f"There is no activation {name_or_callable!r}; did you mean {nearest!r}? "
        f"Known: {', '.join(activation_names())}; or pass an elementwise function."
    )


def _parse(name: str) -> tuple[str, float | None]:
    """Splits "leaky_relu(0.2)" into its family and its number."""
    match = re.fullmatch(r"(\w+)\s*\(\s*([-+]?\d*\.?\d+(?:e[-+]?\d+)?)\s*\)", name)
    return (match[1], float(match[2])) if match else (name, None)


def _from_callable(function: Elementwise) -> Activation:
    if not callable(function):
        raise UserError(
            f"An activation is a name, an elementwise function or an Activation, got "
            f"{type(function).__name__}; try activation('tanh')."
        )
    if function in _KNOWN_FUNCTIONS:
        return activation(_KNOWN_FUNCTIONS[function])
    return Activation(getattr(function, "__name__", "custom"), function)


@lru_cache
def homogeneous_slopes(activation: Activation) -> tuple[float, float] | None:
    """The slopes (a₋, a₊) when σ is scale invariant, ``σ(z) = a± z`` for ±z > 0, and None otherwise.

    Decided by the values of σ(z)/z over nine decades, to a relative 1e-12 (float64).

    >>> homogeneous_slopes(activation("relu"))
    (0.0, 1.0)
    >>> homogeneous_slopes(activation("tanh")) is None
    True
    """
    with jax.ensure_compile_time_eval():  # callers may be under jit; σ is known when they are traced
        points = jnp.asarray(np.geomspace(1e-4, 1e5, 37))
        right = np.asarray(activation(points) / points)
        left = np.asarray(activation(-points) / -points)
    tolerance = 5e3 * np.finfo(right.dtype).eps * max(np.abs(right).max(), np.abs(left).max())
    if not (np.ptp(right) <= tolerance and np.ptp(left) <= tolerance):
        return None
    return float(np.median(left)), float(np.median(right))


def one_sided_taylor(activation: Activation, side: int) -> tuple[Float[Array, ""], ...]:
    """σ and its first three derivatives at 0, approached from the right (``side = 1``) or from the left (−1).

    >>> [float(each) for each in one_sided_taylor(leaky_relu(0.5), -1)][1:]
    [0.5, 0.0, 0.0]
    """
    # Only where 0 is a kink does the side matter; a distance of 1e-30 chooses the branch and changes nothing else.
    at = jnp.asarray(side * 1e-30 if 0.0 in activation.kinks else 0.0)
    second = jax.grad(activation.slope)
    return activation(jnp.zeros(())), activation.slope(at), second(at), jax.grad(second)(at)


# --------------------------------------------------------------------------------------- Gaussian quadrature


def panel_breaks(
    mean: Float[Array, "*batch"],
    deviation: Float[Array, "*batch"],
    kinks: tuple[float, ...],
    panels: int,
    reach: float,
) -> Float[Array, "*batch breaks"]:
    """Sorted ends of integration panels over [−reach, reach], in standard deviations, cut at every kink.

    Panels are narrower near the middle (a sinh grading), so that unit features are resolved even at a
    standard deviation of 20. Kinks that lie outside make panels of no width, hence shapes never depend on
    data.
    """
    grading = np.sinh(np.linspace(-3.0, 3.0, panels + 1)) * (reach / math.sinh(3.0))
    shape = jnp.broadcast_shapes(jnp.shape(mean), jnp.shape(deviation))
    base = jnp.broadcast_to(jnp.asarray(grading), (*shape, panels + 1))
    safe = jnp.where(deviation > 0, deviation, 1.0)
    cuts = [jnp.where(deviation > 0, (kink - mean) / safe, reach) for kink in kinks]
    cuts = [jnp.broadcast_to(jnp.clip(cut, -reach, reach), shape)[..., None] for cut in cuts]
    return jnp.sort(jnp.concatenate([base, *cuts], axis=-1), axis=-1)


def panel_rule(
    breaks: Float[Array, "*batch breaks"], order: int
) -> tuple[Float[Array, "*batch nodes"], Float[Array, "*batch nodes"]]:
    """Gauss–Legendre nodes on every panel and their weights times the standard normal density."""
    nodes, weights = (jnp.asarray(each) for each in np.polynomial.legendre.leggauss(order))
    middle = ((breaks[..., 1:] + breaks[..., :-1]) / 2)[..., None]
    half = ((breaks[..., 1:] - breaks[..., :-1]) / 2)[..., None]
    x = middle + half * nodes
    flat = (*breaks.shape[:-1], -1)
    return x.reshape(flat), (half * weights * _normal_density(x)).reshape(flat)


def gaussian_mean(
    f: Elementwise,
    variance: Float[Array, "*batch"] | float,
    kinks: tuple[float, ...] = (),
    *,
    panels: int = 64,
    order: int = 32,
    reach: float = 13.0,
) -> Estimate:
    """Mean of a function of a centred Gaussian, ``E f(z)`` with ``z ~ N(0, K)``, with an error estimate.

    Composite Gauss–Legendre panels over ±``reach`` standard deviations, cut at the kinks; the error is the
    change when the order is halved, plus rounding. In float64 it is near 1e-14 for K from 1e-6 to 400 and
    features of unit size. ``K = 0`` gives ``f(0)``. It can be jitted and mapped; source: ORF 543, lecture
    9/19 (the integrals).

    Args:
        f: elementwise function; smooth between the kinks, growing slower than the density falls.
        variance: K ≥ 0, any shape.
        kinks: points z where f or a derivative jumps.
        panels: number of panels before the kinks are cut in.
        order: nodes of each panel, an even number.
        reach: half-width of the interval in standard deviations.

    Returns:
        ``Estimate(value, error)``, each of the shape of ``variance``.

    >>> estimate = gaussian_mean(lambda z: z**4, 2.0)
    >>> abs(float(estimate.value) - 12.0) <= float(estimate.error)
    True
    """
    variance = jnp.asarray(variance, dtype=float)
    deviation = jnp.sqrt(variance)
    breaks = panel_breaks(jnp.zeros_like(variance), deviation, kinks, panels, reach)
    at_zero = f(jnp.zeros_like(variance))

    def rule(order):
        x, weights = panel_rule(breaks, order)
        terms = weights * f(deviation[..., None] * x)
        return jnp.where(deviation > 0, terms.sum(-1), at_zero), jnp.abs(terms).sum(-1)

    (coarse, _), (fine, size) = rule(order // 2), rule(order)
    rounding = 16 * jnp.finfo(fine.dtype).eps * size
    return Estimate(fine, jnp.abs(fine - coarse) + rounding)
