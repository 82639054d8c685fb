"""Seven ways to the function of least penalized risk, none of which inverts the kernel matrix of the law."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import DotProduct
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, Ridge

from steepest import kit
from steepest.dynamics import descend
from steepest.kernels import gram
from steepest.nn.data import digits, signs
from steepest.nn.networks import mlp


class Problem(NamedTuple):
    """Least penalized risk in the features of one kernel."""

    inside: NDArray  # features of the training points, (m, N)
    every: NDArray  # of all points, those of training first, (m + k, N)
    y: NDArray  # labels of the training points, (m,)
    ridge: float  # λ


def draw_problems(
    key: kit.Key, train: int, test: int, counts: tuple[int, int], ridge: float
) -> list[Problem]:
    """Draw two classes of digits, and features: of two random networks, and of the infinitely wide one's kernel."""
    for_data, for_few, for_many = jax.random.split(key, 3)
    data = signs(digits((3, 8), train + test, for_data))
    pixels = np.asarray(data.x)
    x = pixels - pixels[:train].mean(0)

    def draw(seeds: tuple[kit.Key, kit.Key]) -> list[jax.Array]:
        nets = [mlp((data.d, count, 1), "relu", c_w=2.0) for count in counts]
        return [net.features(net.init(k), x) for net, k in zip(nets, seeds, strict=True)]

    drawn = kit.compiled(draw)((for_few, for_many))
    features = [np.asarray(phi) / np.sqrt(phi.shape[1]) for phi in drawn]
    infinite = mlp((data.d, counts[1], 1), "relu", parameterized="ntk", c_w=2.0)
    values, vectors = np.linalg.eigh(gram(infinite.limit(), x).ntk)
    features.append(vectors * np.sqrt(np.maximum(values, 0)))  # Θ = VΛVᵀ, features VΛ^½
    y = np.asarray(data.y)[:train]
    return [
        Problem(phi[:train], phi, y, ridge * float((phi[:train] ** 2).sum(1).mean()))
        for phi in features
    ]


# ------------------------------------------------------------------------------------------- the squared loss


def ridge_outputs(problem: Problem, steps: int) -> Mapping[str, NDArray]:
    """Return the outputs at all points by each way, by its name."""
    weights = {"squares": least_squares(problem), "descent": decayed(problem, steps)}
    outputs = {way: problem.every @ theta for way, theta in weights.items()}
    outputs["elimination"] = eliminate(problem)
    for way, peer in PEERS.items():
        outputs[way] = peer(problem.ridge).fit(problem.inside, problem.y).predict(problem.every)
    return outputs


def least_squares(problem: Problem) -> NDArray:
    """Return the weights of ridge regression as least squares with N more rows, ``[Φ; √λ I] θ ≈ [y; 0]``."""
    features = problem.inside.shape[1]
    rows = np.concatenate([problem.inside, np.sqrt(problem.ridge) * np.eye(features)])
    return np.linalg.lstsq(rows, np.concatenate([problem.y, np.zeros(features)]))[0]


def decayed(problem: Problem, steps: int) -> NDArray:
    """Return the weights after descent from zero on the sum of squares with weight decay λ."""
    phi, _, y, ridge = problem
    top = float(np.linalg.norm(phi, 2) ** 2)
    # 2/(sum of the extreme eigenvalues) of ΦᵀΦ + λ: they are top + λ, and λ or more
    optimizer = optax.chain(optax.add_decayed_weights(ridge), optax.sgd(2 / (top + 2 * ridge)))
    risk = lambda theta: 0.5 * jnp.sum((phi @ theta - y) ** 2)
    run = kit.compiled(lambda start: descend(risk, start, optimizer, steps, record=steps))
    return np.asarray(run(jnp.zeros(phi.shape[1])).params)


def eliminate(problem: Problem) -> NDArray:
    """Return E[f | y], by eliminating y from the joint covariance of y and f, a column at a time."""
    m = len(problem.inside)
    features = np.concatenate([problem.inside, problem.every])
    joint = features @ features.T
    joint[:m, :m] += problem.ridge * np.eye(m)
    mean = np.concatenate([problem.y, np.zeros(len(problem.every))])
    for k in range(m):
        # a step of Gaussian elimination: the rest is the covariance given the labels so far
        gain = joint[k + 1 :, k] / joint[k, k]
        joint[k + 1 :, k + 1 :] -= np.outer(gain, joint[k, k + 1 :])
        mean[k + 1 :] -= gain * mean[k]
    return -mean[m:]  # elimination leaves 0 − Σ_fy Σ_yy⁻¹ y


def sparse_weights(problem: Problem) -> NDArray:
    """Return weights of least squared loss with an ℓ1 penalty, for which the theorem is false.

    The penalty is a tenth of the least one that leaves no weight, ``max |Φᵀy|``.
    """
    most = np.abs(problem.inside.T @ problem.y).max() / len(problem.y)  # Lasso has the loss over 2m
    lasso = Lasso(most / 10, fit_intercept=False, max_iter=100_000)
    return lasso.fit(problem.inside, problem.y).coef_


def _estimator(kind: Any, **choices: Any) -> Callable[[float], Any]:
    """Return how one of scikit-learn's estimators is made for a λ."""
    return lambda ridge: kind(alpha=ridge, **choices)


PEERS = {
    "sklearn_ridge": _estimator(Ridge, fit_intercept=False, solver="svd"),
    "sklearn_kernel_ridge": _estimator(KernelRidge, kernel="linear"),
    "sklearn_process": _estimator(
        GaussianProcessRegressor,
        kernel=DotProduct(sigma_0=0.0, sigma_0_bounds="fixed"),
        optimizer=None,
    ),
}
WAYS = ("squares", "descent", "elimination", *PEERS)


# ------------------------------------------------------------------------------------------ the logistic loss


def logistic_weights(problem: Problem, start: NDArray) -> NDArray:
    """Return the θ of least ``Σ log(1 + exp(−y Φθ)) + λ/2 ‖θ‖²``, by Newton's steps in all of feature space."""
    phi, _, y, ridge = problem
    objective = lambda theta: np.logaddexp(0, -y * (phi @ theta)).sum() + ridge / 2 * theta @ theta

    def step(theta: NDArray) -> NDArray:
        share = expit(-y * (phi @ theta))
        # Hessian ΦᵀDΦ + λ with D = s(1 − s), s = s(−yf); the right side is minus the gradient
        curvature = (phi * (share * (1 - share))[:, None]).T @ phi + ridge * np.eye(len(theta))
        return np.linalg.solve(curvature, phi.T @ (y * share) - ridge * theta)

    theta = start
    for _ in range(40):  # far more than enough
        move = step(theta)
        # near the minimum the objective is flat to rounding, and the whole step is the best one
        while objective(theta + move) > objective(theta) + 1e-9:
            move = move / 2
        theta = theta + move
    return theta


def share_outside(problem: Problem, theta: NDArray) -> float:
    """Return ``‖Π⊥θ‖/‖θ‖``, Π⊥ the projection away from the span of the features of the training points."""
    basis = np.linalg.qr(problem.inside.T)[0]  # of the row space of Φ
    return float(np.linalg.norm(theta - basis @ (basis.T @ theta)) / np.linalg.norm(theta))
