"""Properties of activations: scale invariance, Taylor polynomials, jumps."""

import math
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.activations import _closed_forms as closed
from steepest.nn.activations._activation import Activation
from steepest.nn.activations._pieces import Pieces, pieces_from_values


@checked
@lru_cache
def homogeneous_slopes(activation: Activation) -> tuple[float, float] | None:
    """Return the slopes (a₋, a₊) when σ is scale invariant, ``σ(z) = a± z`` for ±z > 0, and None otherwise.

    Decided by the values of σ(z)/z over nine decades, to a relative 1e-12 (float64).

    >>> from steepest.nn.activations import activation
    >>> homogeneous_slopes(activation("relu"))
    (0.0, 1.0)
    >>> homogeneous_slopes(activation("tanh")) is None
    True
    """
    # callers may be under jit; σ is known when they are traced
    with jax.ensure_compile_time_eval():
        points = np.asarray(jnp.asarray(np.geomspace(1e-4, 1e5, 37)))  # in JAX's precision
        # one program: on few numbers, compiling each operation would take longest
        outputs = jax.jit(activation.function)(np.append(-points, points))
        left, right = np.split(np.asarray(outputs) / np.append(-points, points), 2)
    tolerance = 5e3 * np.finfo(right.dtype).eps * max(np.abs(right).max(), np.abs(left).max())
    if not (np.isfinite(tolerance) and np.ptp(right) <= tolerance and np.ptp(left) <= tolerance):
        return None
    return float(np.median(left)), float(np.median(right))


@checked
@lru_cache
def homogeneity(activation: Activation) -> int | None:
    """Return the whole number p ≥ 0 with ``σ(λz) = λ^p σ(z)`` for all λ > 0, and None where there is none.

    Decided by the values of σ at powers of two, over six decades, to a relative 1e-12 (float64).

    >>> from steepest.nn.activations import activation
    >>> [homogeneity(activation(name)) for name in ("relu", "relu_power(2)", "step", "gelu")]
    [1, 2, 0, None]
    """
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        points = 2.0 ** np.arange(-10, 11)
        sides = [np.asarray(activation(jnp.asarray(side * points))) for side in (1.0, -1.0)]
    middle = len(points) // 2  # the point one
    largest = max(np.abs(side[middle]) for side in sides)
    if not largest:
        return None
    larger = next(side for side in sides if np.abs(side[middle]) == largest)
    # σ(2)/σ(1) = 2^p
    ratio = np.abs(larger[middle + 1] / larger[middle])
    power = np.log2(ratio) if ratio else np.nan
    if not (np.isfinite(power) and abs(power - round(power)) < 1e-9 and power > -0.5):
        return None
    # relative at each point to the largest value that a homogeneous σ has there
    alike = [np.abs(side / points**power - side[middle]) <= 1e-12 * largest for side in sides]
    return round(power) if np.all(alike) else None


@checked
def one_sided_taylor(activation: Activation, side: int) -> tuple[Float[Array, ""], ...]:
    """Differentiate σ at 0 up to the third order, from the right (``side = 1``) or from the left (−1), σ(0) first.

    >>> from steepest.nn.activations import activation
    >>> [float(coefficient) for coefficient in one_sided_taylor(activation("leaky_relu(0.5)"), -1)][1:]
    [0.5, 0.0, 0.0]
    """
    # Only where 0 is a kink does the side matter; a distance of 1e-30 chooses the branch and changes nothing else.
    at = jnp.asarray(side * 1e-30 if 0.0 in activation.kinks else 0.0)
    second = jax.grad(activation.slope)
    return activation(jnp.zeros(())), activation.slope(at), second(at), jax.grad(second)(at)


@checked
@lru_cache
def closed_form(activation: Activation) -> closed.DualForm | None:
    """Return the dual activation in closed form, if known: the activation's own, or that of a scale-invariant σ.

    >>> closed_form(Activation("doubled", lambda z: 2 * z))(1.0, 1.0, 0.5)[0].item()
    2.0
    """
    if activation.dual is not None:
        return activation.dual
    slopes = homogeneous_slopes(activation)
    return None if slopes is None else closed.homogeneous(*slopes)


@checked
@lru_cache
def pieces_of(activation: Activation) -> Pieces | None:
    """Return an activation by its terms between kinks: its own, or polynomials of degree three found from its values.

    None if it is neither, or where exponentials grow away from the origin.

    Raises:
        UserError: if its own pieces are not the function.

    >>> from steepest.nn.activations import activation
    >>> pieces_of(activation("hard_tanh")).terms[1]
    (Term(coefficient=1.0, power=1, rate=0.0),)
    >>> pieces_of(activation("abs_power(1.5)")) is None
    True
    """
    if not activation.kinks:
        return None
    pieces = activation.pieces
    if pieces is None:
        pieces = pieces_from_values(activation.function, activation.kinks)
    else:
        _check(activation, pieces)
    return None if pieces is None or pieces.split() is None else pieces


def _check(activation: Activation, pieces: Pieces) -> None:
    """Raise a UserError where pieces are not the function, by values between and beyond all knots."""
    reach = 2 + 2 * max(map(abs, pieces.knots))
    # no knot is hit: either side has its value
    points = np.linspace(-reach, reach, 201) + 1e-3 / math.pi
    right = pieces.values(points)
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        values = np.asarray(activation(jnp.asarray(points)), float)
    difference = np.abs(values - right)
    if not (difference <= 1e-9 * (1 + np.abs(right))).all():
        where = points[np.argmax(difference)]
        raise UserError(
            f"the pieces of {activation.name} are not its function, at z = {where:.3g} for one; correct them, or leave "
            "them out"
        )


@checked
@lru_cache
def jumps(activation: Activation) -> tuple[tuple[float, float, float], ...]:
    """List, for each kink where σ or σ' jumps, the kink, the jump of σ and the jump of σ'.

    A difference over a distance that shrinks by 10⁴ is a jump when it stays; |z|^p has none for p > 1.

    >>> from steepest.nn.activations import activation
    >>> jumps(activation("relu")), jumps(activation("step")), jumps(activation("elu"))
    (((0.0, 0.0, 1.0),), ((0.0, 1.0, 0.0),), ())
    """
    steps = []
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        for kink in activation.kinks:
            distance = 1e-9 * max(1.0, abs(kink)) * np.array([1.0, 1e-4])
            after, before = (jnp.asarray(kink + side * distance) for side in (1, -1))
            # [f] over the distances 1e-9 and 1e-13: a continuous f shrinks with them, a jump stays
            sizes = [np.asarray(f(after) - f(before)) for f in (activation, activation.slope)]
            value, slope = (
                float(d[1]) if abs(d[1]) > max(0.5 * abs(d[0]), 1e-7) else 0.0 for d in sizes
            )
            if value or slope:
                steps.append((kink, value, slope))
    return tuple(steps)
