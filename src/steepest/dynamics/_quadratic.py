"""Descents on quadratic risks, in closed form: best steps, rates, and the mean square under noise."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from steepest.core.errors import UserError
from steepest.core.signatures import checked


class Method(NamedTuple):
    """A method at its own constants.

    Attributes:
        step: η.
        momentum: β, zero for plain descent.
        factor: by which the distance falls a step, at the slowest.
    """

    step: float
    momentum: float
    factor: float


class QuadraticRates(NamedTuple):
    """The three methods on one quadratic risk.

    Attributes:
        descent: η = 2/(λ_max + λ_min), factor (κ − 1)/(κ + 1).
        heavy_ball: η = 4/(√λ_max + √λ_min)², β = ((√κ − 1)/(√κ + 1))², factor √β, times t at both ends.
        nesterov: η = 1/λ_max, β = (√κ − 1)/(√κ + 1), factor 1 − 1/√κ, times t at the lower end.
        condition: κ = λ_max/λ_min.
    """

    descent: Method
    heavy_ball: Method
    nesterov: Method
    condition: float


@checked
def quadratic_rates(eigenvalues: ArrayLike) -> QuadraticRates:
    r"""Return best steps and factors on ½ θᵀHθ, from the eigenvalues of H.

    .. math:: \theta_{t+1} = \theta_t - ηHθ_t:\qquad \max_i |1 - ηλ_i| \ge \frac{κ-1}{κ+1}

    The constants of descent and heavy ball are the best ones; those of Nesterov are the usual ones.

    Args:
        eigenvalues: of the Hessian, positive; zeros, along which nothing moves, are to be left out.

    Raises:
        UserError: an eigenvalue that is not positive, or none.

    Source: Polyak 1964; Nesterov 2004, section 2.2.

    >>> rates = quadratic_rates([1.0, 0.3, 0.01])
    >>> [round(method.factor, 3) for method in rates[:3]]  # κ = 100: 99/101, 9/11, 9/10
    [0.98, 0.818, 0.9]
    """
    values = _positive(eigenvalues, "quadratic_rates")
    low = float(values.min())
    high = float(values.max())
    root = np.sqrt(high / low)  # √κ
    ratio = float((root - 1) / (root + 1))
    return QuadraticRates(
        # |1 − ηλ| is equal at both ends of the spectrum for η = 2/(λ_max + λ_min)
        Method(2 / (high + low), 0.0, (high - low) / (high + low)),
        # at β = ratio² both ends have a double root of modulus √β = ratio
        Method(float(4 / (np.sqrt(high) + np.sqrt(low)) ** 2), ratio**2, ratio),
        # with η = 1/λ_max the lower end has a double root 1 − 1/√κ
        Method(1 / high, ratio, float(1 - 1 / root)),
        high / low,
    )


@checked
def momentum_factor(
    eigenvalues: ArrayLike, step: float, momentum: float, nesterov: bool = False
) -> float:
    """Return the factor a step of heavy ball or Nesterov: the largest root of z² − bz + c over the eigenvalues.

    Heavy ball has b = 1 + β − ηλ and c = β, and is stable in the triangle 0 ≤ β < 1, 0 < ηλ_max < 2(1 + β). Nesterov
    has b = (1 + β)(1 − ηλ) and c = β(1 − ηλ).

    Args:
        eigenvalues: of the Hessian, positive.
        step: η.
        momentum: β.
        nesterov: whether the gradient is taken after the momentum's step.

    Raises:
        UserError: an eigenvalue that is not positive, or none.

    >>> round(momentum_factor([1.0, 0.1], 1.9, 0.0), 9), momentum_factor([1.0, 0.1], 3.2, 0.5) > 1
    (0.9, True)
    """
    values = _positive(eigenvalues, "momentum_factor")
    kept = 1 - step * values
    middle = (1 + momentum) * kept if nesterov else momentum + kept  # b, the sum of the two roots
    last = momentum * kept if nesterov else momentum + 0 * kept  # c, their product
    # complex where b² < 4c: a conjugate pair of modulus √c
    root = np.sqrt((middle**2 - 4 * last).astype(complex))
    sizes = np.maximum(np.abs(middle + root), np.abs(middle - root)) / 2
    return float(sizes.max())


@checked
def mean_square(
    eigenvalues: ArrayLike, steps: ArrayLike, noise: ArrayLike, start: ArrayLike = 1.0
) -> Float[np.ndarray, " times"]:
    r"""Return E‖θ_t − θ*‖² of descent with noisy gradients on a quadratic risk, exactly.

    .. math:: v_i(t+1) = (1 - η_t λ_i)^2 v_i(t) + η_t^2 σ_i^2, \qquad E\|θ_t - θ_*\|^2 = \sum_i v_i(t)

    Args:
        eigenvalues: λ_i of the Hessian, shape ``(d,)``.
        steps: η_t, shape ``(T,)``.
        noise: σ_i, standard deviation of the gradient's noise along each eigenvector, a number or shape ``(d,)``.
        start: θ_0 − θ* along each eigenvector, a number or shape ``(d,)``.

    Returns:
        the mean squares at t = 0 … T, shape ``(T + 1,)``.

    Raises:
        UserError: an eigenvalue that is not positive, or none; steps that are no vector.

    >>> curve = mean_square([1.0], 0.1 * np.ones(500), 0.5)
    >>> round(float(curve[-1]), 6), round(0.1 * 0.25 / (2 - 0.1), 6)  # the floor ησ²/(λ(2 − ηλ))
    (0.013158, 0.013158)
    """
    values = _positive(eigenvalues, "mean_square")
    steps = np.asarray(steps, float)
    squares = np.broadcast_to(np.asarray(start, float) ** 2, values.shape)
    variance = np.asarray(noise, float) ** 2
    if steps.ndim != 1:
        raise UserError(
            f"mean_square: expected one step size for each step, shape (T,), got shape {steps.shape}"
        )
    kept = (1 - steps[:, None] * values) ** 2  # (T, d)
    added = steps[:, None] ** 2 * variance
    curve = [squares.sum()]
    for factor, more in zip(kept, added, strict=True):
        squares = factor * squares + more  # fresh noise has mean zero: the cross term vanishes
        curve.append(squares.sum())
    return np.array(curve)


def _positive(eigenvalues: ArrayLike, name: str) -> Float[np.ndarray, " d"]:
    values = np.atleast_1d(np.asarray(eigenvalues, float))
    if values.ndim != 1 or not values.size or not (values > 0).all():
        lowest = values.min() if values.size else float("nan")
        raise UserError(
            f"{name}: expected a vector of positive eigenvalues, got shape {values.shape} and the smallest "
            f"{lowest:.3g}; leave out zeros, along which descent does not move"
        )
    return values
