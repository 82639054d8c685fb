"""The steady state of stochastic gradient descent on least squares, exactly at any step."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.noise._moments import Sampling, batch_factor


class SteadyState(NamedTuple):
    """Mean and covariance of SGD's stationary law on least squares.

    Attributes:
        minimum: the mean, which is the minimum of the full risk, shape ``(d,)``.
        hessian: H of the full risk, shape ``(d, d)``.
        covariance: S = ⟨(θ − w)(θ − w)ᵀ⟩, shape ``(d, d)``; NaN where there is none.
        radius: spectral radius of the map of second moments; there is a covariance where it is below 1.
    """

    minimum: np.ndarray
    hessian: np.ndarray
    covariance: np.ndarray
    radius: float

    @property
    def excess_risk(self) -> float:
        """Return the mean of the risk above its minimum, ½ tr HS."""
        return float((self.hessian * self.covariance).sum() / 2)


@checked
def steady_state(
    x: Float[np.ndarray, "m d"],
    y: Float[np.ndarray, " m"],
    lr: float,
    batch: float,
    *,
    ridge: float = 0.0,
    sampling: Sampling = "independent",
) -> SteadyState:
    """Return the stationary mean and covariance of SGD on ½ mean (x·w − y)² + ½ ridge ‖w‖².

    With g_k = a_k + B_k δ for example k at w + δ, a_k = −r_k x_k + ridge w and B_k = x_k x_kᵀ + ridge I, the second
    moment of δ obeys one linear equation without any approximation in the step γ:

        S = (I − γH) S (I − γH) + γ² c (1/m) Σ (a_k a_kᵀ + B_k S B_kᵀ)    [− γ² c H S H unless coins are independent]

    with c of :func:`batch_factor`. Second moments stay finite only below the step at which its map has radius 1, which
    is less than 2/λ_max.

    Args:
        x: inputs, shape ``(m, d)``.
        y: targets, shape ``(m,)``.
        lr: step size γ, positive.
        batch: (mean) size of the batches.
        ridge: μ, not negative.
        sampling: how a batch is drawn.

    Raises:
        UserError: a step that is not positive, a singular Hessian, batches larger than the data.

    >>> one = steady_state(np.ones((2, 1)), np.array([1.0, -1.0]), 0.1, 1, sampling="fixed")
    >>> round(float(one.covariance[0, 0]), 6), round(0.1 / (2 - 0.1), 6)  # gradient noise ±1, curvature 1
    (0.052632, 0.052632)
    """
    x = np.asarray(x, float)
    y = np.asarray(y, float)
    examples, dimension = x.shape
    if not (np.isfinite(lr) and lr > 0):
        raise UserError(f"a step size is positive, got {lr}")
    if not ridge >= 0:
        raise UserError(f"a ridge is not negative, got {ridge}")
    largest = np.abs(np.append(x, y)).max()
    with np.errstate(over="ignore"):
        if not np.isfinite(largest**4):
            raise UserError(
                "least squares needs finite inputs and targets whose fourth powers are numbers too, got "
                f"{largest:.3g}; leave out rows of NaN, or scale the data"
            )
    factor = batch_factor(examples, batch, sampling)
    identity = np.eye(dimension)
    hessian = x.T @ x / examples + ridge * identity
    if np.linalg.eigvalsh(hessian)[0] <= 1e-12 * np.abs(hessian).max():
        raise UserError(
            "the Hessian is singular, so that flat directions have no steady state; drop dependent features "
            "or pass a ridge"
        )
    minimum = np.linalg.solve(hessian, x.T @ y / examples)
    at_minimum = (x @ minimum - y)[:, None] * x + ridge * minimum  # a_k, shape (m, d)

    # Matrices of (d², d²) that act on the entries of S.
    # Σ_k x_i x_a x_j x_b/m, (i, a, j, b)
    noise = np.einsum("ki,kj,ka,kb->iajb", x, x, x, x, optimize=True) / examples
    noise = noise.transpose(0, 2, 1, 3).reshape(dimension**2, dimension**2)  # Σ x_i x_j x_a x_b
    plain = hessian - ridge * identity
    # mean of B S Bᵀ with B = xxᵀ + μI: xxᵀSxxᵀ + μ(xxᵀS + Sxxᵀ) + μ²S
    if ridge:
        noise = noise + ridge * (np.kron(plain, identity) + np.kron(identity, plain))
        noise = noise + ridge**2 * np.eye(dimension**2)
    # a_k has mean zero at the minimum: centred already
    source = at_minimum.T @ at_minimum / examples
    if sampling != "independent":
        noise = noise - np.kron(hessian, hessian)  # centred B_k: the mean of B S Bᵀ minus HSH
    contracted = identity - lr * hessian  # I − γH
    # E[δδᵀ] after a step: cross terms with a_k vanish, as E δ = 0
    step = np.kron(contracted, contracted) + lr**2 * factor * noise
    radius = float(np.abs(np.linalg.eigvals(step)).max())
    if radius < 1:
        # S = step S + γ²c mean a aᵀ
        flat = np.linalg.solve(np.eye(dimension**2) - step, lr**2 * factor * source.ravel())
        covariance = flat.reshape(dimension, dimension)
    else:
        covariance = np.full((dimension, dimension), np.nan)
    return SteadyState(minimum, hessian, covariance, radius)
