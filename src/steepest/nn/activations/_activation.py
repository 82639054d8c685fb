"""Activation functions, by name or your own.

An activation acts on every entry of an array. It declares its *kinks*, the points where it or its derivative
is not smooth, and every integral over it is cut there: a rule that ignores the corner of ReLU is wrong in the
fourth digit.
"""

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar, cast

import jax
import jax.numpy as jnp
from jax.scipy.special import erf as _erf
from jax.scipy.special import ndtr
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.activations import _closed_forms as closed
from steepest.nn.activations._pieces import Pieces, Term
from steepest.nn.activations._quadrature import Elementwise, normal_density

Given = ParamSpec("Given")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Activation:
    """An activation function σ with its derivative and the points where it is not smooth.

    Attributes:
        name: how pages and tables call it.
        function: σ, applied to every entry of an array of any shape.
        derivative: σ'; by default forward-mode differentiation of ``function``.
        kinks: where σ or one of its derivatives jumps. Integrals are cut there.
        dual: E σ(u)σ(v) and E σ'(u)σ'(v) as functions of (K_αα, K_ββ, K_αβ), where a closed form is known.
        pieces: σ as sums of ``c z^m exp(rz)`` between its kinks. Cubic polynomials are found without (``pieces_of``).

    >>> import jax.numpy as jnp
    >>> shifted = Activation("shifted", lambda z: jnp.maximum(z - 1, 0), kinks=(1.0,))
    >>> float(shifted.slope(jnp.asarray(3.0)))
    1.0
    """

    name: str
    function: Elementwise
    derivative: Elementwise | None = None
    kinks: tuple[float, ...] = ()
    dual: closed.DualForm | None = None
    pieces: Pieces | None = None

    def __call__(self, z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Return σ(z), entry by entry."""
        return self.function(z)

    def slope(self, z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Return σ'(z), entry by entry."""
        if self.derivative is not None:
            return self.derivative(z)
        z = jnp.asarray(z)
        return jax.jvp(self.function, (z,), (jnp.ones_like(z),))[1]


@checked
@lru_cache
def leaky_relu(slope: float = 0.01) -> Activation:
    """Return leaky ReLU, ``σ(z) = z`` for z > 0 and ``slope · z`` otherwise.

    >>> float(leaky_relu(0.5)(-2.0))
    -1.0
    """
    return Activation(
        f"leaky_relu({slope:g})",
        lambda z: jnp.where(z > 0, z, slope * z),
        lambda z: jnp.where(z > 0, jnp.ones_like(z), slope),
        (0.0,),
        closed.homogeneous(slope, 1.0),
    )


@checked
@lru_cache
def relu_power(p: float = 2.0) -> Activation:
    """Return a power of ReLU, ``σ(z) = max(z, 0)^p`` with p ≥ 1.

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
        closed.relu_square if p == 2 else None,
    )


@checked
@lru_cache
def abs_power(p: float = 1.5) -> Activation:
    """Return a power of the absolute value, ``σ(z) = |z|^p`` with p ≥ 1.

    Raises:
        UserError: if p < 1.

    >>> float(abs_power(1.5)(-4.0))
    8.0
    """
    if p < 1:
        raise UserError(
            f"abs_power needs a power p ≥ 1, got {p:g}; use p = 1 for the absolute value."
        )

    def power(z, q):
        return jnp.where(z == 0, 0.0, jnp.where(z == 0, 1.0, jnp.abs(z)) ** q)

    return Activation(
        f"abs_power({p:g})",
        lambda z: power(z, p),
        lambda z: jnp.sign(z) * p * power(z, p - 1),
        (0.0,),
    )


@checked
@lru_cache
def piecewise(knots: tuple[float, ...], terms: tuple[tuple[Term, ...], ...]) -> Activation:
    """Return a function that is a sum of terms ``c z^m exp(rz)`` on each interval between knots.

    Kernels between positions are exact for it if exponentials decay away from the origin.

    Args:
        knots: increasing.
        terms: of each interval from left to right; a ``Term`` is (c, m, r), where m and r are zero by default.

    Raises:
        UserError: knots that do not increase, another number of intervals, or a power that is no whole number ≥ 0.

    >>> celu = piecewise((0.0,), ((Term(2.0, 0, 0.5), Term(-2.0)), (Term(1.0, 1),)))
    >>> round(float(celu(-1.0)), 6), float(celu(3.0)), celu.kinks
    (-0.786939, 3.0, (0.0,))
    """
    if not knots or sorted(set(knots)) != list(knots) or len(terms) != len(knots) + 1:
        raise UserError(
            f"piecewise needs increasing knots and one interval more than knots, got {knots} and {len(terms)} "
            "intervals; try piecewise((0.0,), ((), (Term(1.0, 1),))) for ReLU"
        )
    powers = [term.power for interval in terms for term in interval]
    if any(power < 0 or power != int(power) for power in powers):
        raise UserError(
            f"powers are whole numbers from 0 on, got {powers}; write a smooth function instead"
        )
    pieces = Pieces(knots, terms)
    name = f"piecewise({','.join(f'{knot:g}' for knot in knots)})"
    return Activation(name, pieces, pieces.derivative(), knots, pieces=pieces)


@checked
@lru_cache
def polynomial(*coefficients: float) -> Activation:
    """Return a polynomial, ``σ(z) = p_0 + p_1 z + p_2 z² + …``; without coefficients z².

    >>> float(polynomial(0.0, 1.0, 1.0)(3.0))
    12.0
    """
    p = coefficients or (0.0, 0.0, 1.0)
    slopes = [j * coefficient for j, coefficient in enumerate(p)][1:] or [0.0]
    value = lambda z: sum(
        (coefficient * z**j for j, coefficient in enumerate(p)), start=jnp.zeros_like(z)
    )
    slope = lambda z: sum(
        (coefficient * z**j for j, coefficient in enumerate(slopes)), start=jnp.zeros_like(z)
    )
    return Activation(
        f"polynomial({','.join(f'{coefficient:g}' for coefficient in p)})",
        value,
        slope,
        dual=closed.polynomial(p),
    )


_NAMED = {
    built_in.name: built_in
    for built_in in (
        Activation("linear", lambda z: 1.0 * z, jnp.ones_like, dual=closed.polynomial((0.0, 1.0))),
        Activation(
            "relu",
            jax.nn.relu,
            lambda z: jnp.where(z > 0, jnp.ones_like(z), 0.0),
            (0.0,),
            closed.homogeneous(0.0, 1.0),
        ),
        Activation("abs", jnp.abs, jnp.sign, (0.0,), closed.homogeneous(-1.0, 1.0)),
        Activation(
            "step",
            lambda z: jnp.where(z > 0, jnp.ones_like(z), 0.0),
            jnp.zeros_like,
            (0.0,),
            closed.step,
        ),
        Activation("tanh", jnp.tanh),
        Activation("sin", jnp.sin, jnp.cos, dual=closed.sin),
        Activation("cos", jnp.cos, lambda z: -jnp.sin(z), dual=closed.cos),
        Activation("erf", _erf, dual=closed.erf),
        Activation("exp", jnp.exp, jnp.exp, dual=closed.exponential),
        Activation("gaussian", lambda z: jnp.exp(-(z**2) / 2), dual=closed.gaussian),
        # The exact GELU z Φ(z), not the tanh approximation that jax.nn.gelu uses by default.
        Activation(
            "gelu",
            lambda z: z * ndtr(z),
            lambda z: ndtr(z) + z * normal_density(z),
            dual=closed.gelu,
        ),
        Activation("silu", jax.nn.silu),
        Activation("softplus", jax.nn.softplus, jax.nn.sigmoid),
        Activation("sigmoid", jax.nn.sigmoid),
        Activation(
            "elu",
            lambda z: jax.nn.elu(1.0 * z),
            lambda z: jnp.exp(jnp.minimum(z, 0.0)),
            (0.0,),
            pieces=Pieces((0.0,), ((Term(1.0, 0, 1.0), Term(-1.0)), (Term(1.0, 1),))),
        ),
        Activation(
            "hard_tanh",
            lambda z: jnp.clip(z, -1.0, 1.0),
            lambda z: jnp.where(jnp.abs(z) < 1, 1.0, 0.0 * z),
            (-1.0, 1.0),
        ),
        Activation(
            "quadratic", lambda z: z**2, lambda z: 2.0 * z, dual=closed.polynomial((0.0, 0.0, 1.0))
        ),
    )
}
_FAMILIES = {
    "leaky_relu": leaky_relu,
    "relu_power": relu_power,
    "abs_power": abs_power,
    "polynomial": polynomial,
}
_KNOWN_FUNCTIONS = {
    jax.nn.relu: "relu",
    jax.nn.leaky_relu: "leaky_relu",
    jax.nn.elu: "elu",
}  # these have kinks


def activation_names() -> tuple[str, ...]:
    """List the names that ``activation`` knows; families take one number, as in ``leaky_relu(0.2)``.

    >>> "tanh" in activation_names()
    True
    """
    return (*_NAMED, *_FAMILIES)


def activation(name_or_callable: str | Elementwise | Activation) -> Activation:
    """Find an activation by its name, or wrap your own elementwise JAX function, taken to be smooth.

    For one with corners build an ``Activation`` with its ``kinks`` yourself.

    Raises:
        UserError: if the name is unknown; the message names the nearest known one.

    >>> activation("leaky_relu(0.2)").kinks
    (0.0,)
    >>> activation("thanh")
    Traceback (most recent call last):
    steepest.core.errors.UserError: There is no activation 'thanh'; did you mean 'tanh'? Known: linear, relu, ...
    """
    if isinstance(name_or_callable, Activation):
        return name_or_callable
    if not isinstance(name_or_callable, str):
        return _from_callable(name_or_callable)
    name = name_or_callable.strip().lower()
    if name in _NAMED:
        return _NAMED[name]
    family, numbers = _parse(name)
    if family in _FAMILIES and (len(numbers) < 2 or family == "polynomial"):
        return _FAMILIES[family](*numbers)
    nearest = difflib.get_close_matches(family, activation_names(), n=1, cutoff=0.0)[0]
    raise UserError(
        f"There is no activation {name_or_callable!r}; did you mean {nearest!r}? "
        f"Known: {', '.join(activation_names())}; or pass an elementwise function."
    )


@checked
def by_name(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Let a function whose first argument is an activation take whatever ``activation`` knows, such as its name.

    >>> by_name(lambda sigma: sigma.kinks)("relu")
    (0.0,)
    """

    @wraps(function)
    def call(*arguments: Given.args, **named: Given.kwargs) -> Result:
        if arguments:
            sigma: Any = arguments[0]
            return cast(Any, function)(activation(sigma), *arguments[1:], **named)
        if "activation" in named:
            sigma = named["activation"]
            return cast(Any, function)(**{**named, "activation": activation(sigma)})
        return function(*arguments, **named)

    return call


def _parse(name: str) -> tuple[str, tuple[float, ...]]:
    """Split "leaky_relu(0.2)" into its family and its numbers."""
    match = re.fullmatch(r"(\w+)\s*\(([-+.\de,\s]+)\)", name)
    try:
        return (
            (match[1], tuple(float(number) for number in match[2].split(",")))
            if match
            else (name, ())
        )
    except ValueError:
        return name, ()


def _from_callable(function: Elementwise) -> Activation:
    if not callable(function):
        raise UserError(
            f"An activation is a name, an elementwise function or an Activation, got "
            f"{type(function).__name__}; try activation('tanh')."
        )
    if function in _KNOWN_FUNCTIONS:
        return activation(_KNOWN_FUNCTIONS[function])
    return Activation(getattr(function, "__name__", "custom"), function)
