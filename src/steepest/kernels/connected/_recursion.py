"""The covariance of two inputs, layer by layer, in a network of infinite width.

With ``z^{l+1} = b + W σ(z^l)``, ``W_ij ~ N(0, C_W/n_l)``, ``b ~ N(0, C_b)``, the pre-activations of two
inputs α, β become a Gaussian pair as the widths grow, and its covariance follows a recursion of three
numbers, always in the order ``(K_αα, K_ββ, K_αβ)``.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.core.compiling import compile_quickly
from steepest.core.errors import UserError
from steepest.core.given import traced
from steepest.kernels._arguments import as_count, as_floats, as_number, as_variances
from steepest.kernels.duals._pair_mean import Triple, pair_mean
from steepest.nn.activations import (
    Activation,
    by_name,
    closed_form,
    gaussian_mean,
    homogeneous_slopes,
    jumps,
    one_sided_taylor,
)


@by_name
def dual(activation: Activation) -> Callable[[Triple], Float[Array, ""]]:
    """Return the dual activation ``(K_αα, K_ββ, K_αβ) ↦ E σ(u)σ(v)``, in closed form where one is known.

    Closed for every scale-invariant σ (linear, ReLU, leaky ReLU, your own), erf, GELU, sin, polynomials and more;
    otherwise by ``pair_mean``. ``covariance_map`` gives it with derivatives and a certified error.
    Source: ORF 543, lecture 9/14.

    >>> import jax.numpy as jnp
    >>> from steepest.nn.activations import activation
    >>> float(dual(activation("relu"))(jnp.array([1.0, 1.0, 1.0])))
    0.5
    """
    form = closed_form(activation)

    def value(triple: Triple) -> Array:
        if form is not None:
            return form(triple[0], triple[1], triple[2])[0]
        return pair_mean(activation, activation, triple, activation.kinks).value

    smooth = form is not None and not activation.kinks
    jumping = any(jump for kink, jump, _ in jumps(activation) if kink)
    if smooth or jumping:
        return value
    return _with_derivative(activation, value)


def _with_derivative(
    activation: Activation, value: Callable[[Triple], Array]
) -> Callable[[Triple], Array]:
    """Give a dual its derivative where the formula has none: at perfect correlation, and by quadrature.

    That in K_αβ is ``E σ'(u)σ'(v)`` (Price 1958). That in K_αα is ``½ E σ''(u)σ(v)``, and by Stein's lemma for
    ``u σ'(u)σ(v)`` it is ``(E[u σ'(u)σ(v)] − K_αβ E σ'(u)σ'(v))/(2 K_αα)``, which takes no second derivative.
    """
    form = closed_form(activation)
    scale_free = homogeneous_slopes(activation) is not None
    turned = lambda z: z * activation.slope(z)
    mean = lambda f, g, triple: pair_mean(f, g, triple, activation.kinks).value

    def slope_of(triple: Triple) -> Array:
        if form is not None:
            return form(triple[0], triple[1], triple[2])[1]
        return mean(activation.slope, activation.slope, triple)

    def in_variance(triple: Triple, at: Array, slope: Array) -> Array:
        """Return the derivative in the first variance, zero where that is zero."""
        # ½ E σ''(u)σ(v) by Stein in u: no second derivative of σ, which a corner lacks
        moment = at if scale_free else mean(turned, activation, triple)  # u σ'(u) = σ(u)
        variance = jnp.where(triple[0] > 0, triple[0], 1.0)
        return jnp.where(triple[0] > 0, (moment - triple[2] * slope) / (2 * variance), 0.0)

    @jax.custom_jvp
    def differentiable(triple: Triple) -> Array:
        return value(triple)

    def push(at, change):
        (triple,) = at
        (step,) = change
        result = value(triple)
        slope = slope_of(triple)
        swapped = jnp.stack([triple[1], triple[0], triple[2]])
        # ∂/∂K_αα, ∂/∂K_ββ by the symmetry of the pair, ∂/∂K_αβ = E σ'σ' (Price)
        parts = in_variance(triple, result, slope), in_variance(swapped, result, slope), slope
        moved: Any = sum(part * move for part, move in zip(parts, step, strict=True))
        return result, moved

    differentiable.defjvp(push)
    return lambda triple: differentiable(jnp.asarray(triple, float))


# --------------------------------------------------------------------------------------------- the recursion


def first_layer(inputs: Float[Array, "2 d"], c_w: float, c_b: float) -> Triple:
    """Return the covariance of the first layer, ``K^{(1)} = C_b + (C_W/d) <x_α, x_β>`` (ORF 543, lecture 9/14).

    Raises:
        UserError: if ``inputs`` is not a pair of rows, or a variance is negative.

    >>> import jax.numpy as jnp
    >>> first_layer(jnp.array([[1.0, 1.0], [1.0, -1.0]]), c_w=2.0, c_b=0.5).tolist()
    [2.5, 2.5, 0.5]
    """
    if not traced(inputs):
        as_floats("inputs", inputs)
    inputs = jnp.asarray(inputs, dtype=float)
    if inputs.ndim != 2 or inputs.shape[0] != 2:
        raise UserError(
            f"Two inputs are needed, an array of shape (2, d), got shape {inputs.shape}."
        )
    check_variances(c_w, c_b)
    gram = inputs @ inputs.T / inputs.shape[1]
    return c_b + c_w * jnp.stack([gram[0, 0], gram[1, 1], gram[0, 1]])


@by_name
def layer_map(activation: Activation, c_w: float, c_b: float) -> Callable[[Triple], Triple]:
    """Apply one layer of the recursion, ``K ↦ C_b + C_W E σ(u)σ(v)`` under ``N(0, K)``, to all three covariances.

    The map is pure and can be jitted, mapped and scanned. Source: ORF 543, lectures 9/14 and 9/19.

    >>> import jax.numpy as jnp
    >>> from steepest.nn.activations import activation
    >>> layer_map(activation("linear"), c_w=0.5, c_b=0.0)(jnp.array([4.0, 2.0, 1.0])).tolist()
    [2.0, 1.0, 0.5]
    """
    check_variances(c_w, c_b)
    product = dual(activation)
    closed = closed_form(activation) is not None

    def second_moments(variances):
        if closed:
            return jax.vmap(lambda k: product(jnp.stack([k, k, k])))(variances)
        return gaussian_mean(lambda z: activation(z) ** 2, variances, activation.kinks).value

    def apply(triple: Triple) -> Triple:
        # K_αα' and K_ββ' need E σ² under one variance alone
        return c_b + c_w * jnp.append(second_moments(triple[:2]), product(triple))

    return apply


@by_name
def propagate(
    activation: Activation, c_w: float, c_b: float, start: Triple, depth: int
) -> Float[Array, "depth+1 3"]:
    """Propagate covariances of two inputs through ``depth`` layers of infinite width; the first row is ``start``.

    ``K^{l+1} = C_b + C_W E σ(z_α)σ(z_β)`` under ``N(0, K^l)``. Source: ORF 543, lectures 9/14 and 9/19.

    Args:
        activation: σ.
        c_w: weight variance times fan-in, C_W ≥ 0.
        c_b: bias variance, C_b ≥ 0.
        start: ``(K_αα, K_ββ, K_αβ)`` of the first layer, see ``first_layer``.
        depth: how many times the map is applied.

    Raises:
        UserError: if a variance is negative, or ``start`` is no covariance.

    >>> import jax.numpy as jnp
    >>> from steepest.nn.activations import activation
    >>> propagate(activation("relu"), 2.0, 0.0, jnp.array([1.0, 1.0, 0.0]), 2)[:, 0].tolist()
    [1.0, 1.0, 1.0]
    """
    check_variances(c_w, c_b)
    depth = as_count("depth", depth, 0)
    if not traced(start):
        _check_covariance(as_floats("a covariance", start))
    start = jnp.asarray(start, dtype=float)
    inside = any(map(traced, (c_w, c_b, start)))
    run = _path if inside else _propagate  # what compiles quickly cannot be part of another program
    return run(activation, c_w, c_b, start, depth)


def _path(activation, c_w, c_b, start, depth):
    step = layer_map(activation, c_w, c_b)

    def layer(triple, _):
        following = step(triple)
        return following, following

    _, path = jax.lax.scan(layer, start, length=depth)
    return jnp.concatenate([start[None], path])


_propagate = compile_quickly(_path, static_argnums=(0, 4))


def check_variances(c_w: float, c_b: float) -> None:
    """Raise a ValueError when C_W or C_b is not a finite number ≥ 0."""
    for name, value in (("C_W", c_w), ("C_b", c_b)):
        if traced(value):  # a derivative is being taken, and nothing is known of the number
            continue
        as_number(f"{name} is a variance and", value, 0.0)


def _check_covariance(triple: np.ndarray) -> None:
    if triple.shape != (3,):
        raise UserError(
            f"A covariance of two inputs is (K_αα, K_ββ, K_αβ), shape (3,), got shape {triple.shape}."
        )
    rounding = 1 + 1e3 * np.finfo(triple.dtype).eps
    if not (triple[:2].min() >= 0 and abs(triple[2]) <= rounding * np.sqrt(triple[0] * triple[1])):
        raise UserError(
            f"No covariance has K_αα = {triple[0]:g}, K_ββ = {triple[1]:g}, K_αβ = {triple[2]:g}: "
            "variances are ≥ 0 and |K_αβ| ≤ √(K_αα K_ββ); first_layer(inputs, c_w, c_b) makes one from two inputs."
        )


# ---------------------------------------------------------------------------------------------------- slopes


@by_name
def chi_parallel(
    activation: Activation, c_w: float, k: Float[Array, "*batch"] | float
) -> Float[Array, "*batch"]:
    """Return the slope of the variance map, ``χ∥ = (C_W/2) E (σ²)''(z)`` with ``z ~ N(0, K)``.

    Computed as ``C_W E[z σ σ']/K`` (Stein), which never differentiates across a kink; at K = 0 as its limit
    ``C_W (σ'² + σ σ'')`` at 0, the average of both sides. Source: ORF 543, lecture 9/19.

    >>> from steepest.nn.activations import activation
    >>> round(float(chi_parallel(activation("relu"), 2.0, 3.0)), 6)
    1.0
    """
    check_variances(c_w, 0.0)
    k = as_variances("variances", k)
    safe = jnp.where(k > 0, k, 1.0)
    # ½ E (σ²)'' = E[z (σ²)']/2K = E[z σσ']/K
    moment = gaussian_mean(
        lambda z: z * activation(z) * activation.slope(z), safe, activation.kinks
    ).value
    left, right = (one_sided_taylor(activation, side) for side in (-1, 1))
    # lim K → 0 of E[σ'² + σσ''], half of the Gaussian on either side of 0
    smooth = (left[1] ** 2 + right[1] ** 2 + right[0] * (left[2] + right[2])) / 2
    # A corner at 0 with σ(0) ≠ 0 makes the slope diverge like σ(0) (σ'(0+) − σ'(0−)) / √(2πK).
    corner = right[0] * (right[1] - left[1])
    at_zero = jnp.where(corner == 0, smooth, jnp.sign(corner) * jnp.inf)
    return c_w * jnp.where(k > 0, moment / safe, at_zero)


@by_name
def chi_perpendicular(
    activation: Activation, c_w: float, k: Float[Array, "*batch"] | float
) -> Float[Array, "*batch"]:
    """Return the slope of the covariance map at equal inputs, ``χ⊥ = C_W E σ'(z)²`` with ``z ~ N(0, K)``.

    At K = 0 it is its limit, the mean of ``C_W σ'²`` on both sides of 0. Source: ORF 543, lecture 9/19.

    >>> from steepest.nn.activations import activation
    >>> round(float(chi_perpendicular(activation("tanh"), 1.0, 0.0)), 6)
    1.0
    """
    check_variances(c_w, 0.0)
    k = as_variances("variances", k)
    left, right = (one_sided_taylor(activation, side)[1] for side in (-1, 1))
    mean = gaussian_mean(lambda z: activation.slope(z) ** 2, k, activation.kinks).value
    return c_w * jnp.where(k > 0, mean, (left**2 + right**2) / 2)
