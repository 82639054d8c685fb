"""Descent of finite networks, beside the recursion with the tangent kernel that each of them starts with."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from steepest import kit
from steepest.kernels import empirical_ntk
from steepest.nn.data import digits, signs
from steepest.nn.networks import Mlp, mlp
from steepest.nn.types import Params


class Setting(NamedTuple):
    """Images of two digits, training points first, and labels of the training points."""

    x: kit.Values  # (m + k, d)
    y: kit.Values  # (m,)
    top: float  # λ_max(Θ/m) of the limit, the unit of step sizes
    slowest: kit.Values  # eigenvector of the smallest eigenvalue, (m,)


class Runs(NamedTuple):
    """Networks of one width with several step sizes."""

    outputs: np.ndarray  # (networks, rates, steps + 1, points)
    own: np.ndarray  # the same by the recursion with each network's own kernel at the start
    others: np.ndarray  # the same with the kernel of another network


class Ensemble(NamedTuple):
    """Networks in pairs that differ in the sign of the last layer: opposite outputs, one tangent kernel."""

    early: np.ndarray  # mean of each pair after a tenth of the steps, (pairs, test points)
    late: np.ndarray  # after all
    decay: np.ndarray  # log(|r_T|/|r_0|)/T from a given residual, (pairs,)


def draw_images(key: kit.Key, train: int, test: int) -> tuple[np.ndarray, np.ndarray]:
    """Return centred images in the space that they span: Gaussian weights see no more of them."""
    count = train + test
    data = signs(digits((3, 8), count, key))
    pixels = np.asarray(data.x, float)
    x = pixels - pixels[:train].mean(0)
    if count < data.d:  # networks divide by √d of the turned inputs
        # Xᵀ = QR: rows of Rᵀ have the same inner products; the factor makes them x·x'/d over count
        x = np.linalg.qr(x.T)[1].T * np.sqrt(count / data.d)
    return x, np.asarray(data.y[:train], float)


def network(sigma: str, width: int, dimension: int) -> Mlp:
    """Return one hidden layer, NTK parameterization, biases from zero."""
    return mlp((dimension, width, 1), sigma, parameterized="ntk")


def follow(
    net: Mlp, params: Params, x: kit.Values, targets: Array, rate: Array | float, steps: int
) -> Array:
    """Return outputs at all points along descent on the mean of ½(f − y)², ``(steps + 1, points)``."""
    m = len(targets)

    def step(params: Params, _: None) -> tuple[Params, Array]:
        outputs, pull_back = jax.vjp(lambda params: net.apply(params, x), params)
        # the gradient is Jᵀr/m, r = f − y, zero at test points
        residual = jnp.zeros_like(outputs).at[:m].set((outputs[:m] - targets) / m)
        (slope,) = pull_back(residual)
        return jax.tree.map(lambda p, g: p - rate * g, params, slope), outputs

    return jax.lax.scan(step, params, None, length=steps + 1)[1]


def descend(
    net: Mlp, setting: Setting, rates: Sequence[float], steps: int, networks: int, key: kit.Key
) -> Runs:
    """Train networks of one width with every step size."""
    x, y = map(jnp.asarray, setting[:2])

    def train(key: kit.Key) -> tuple[Array, Array]:
        params = net.init(key)
        paths = jax.lax.map(lambda lr: follow(net, params, x, y, lr, steps), jnp.asarray(rates))
        return paths, empirical_ntk(net, params, x)[:, : len(y)]

    train_all = kit.compiled(lambda key: jax.lax.map(train, kit.keys(key, networks)))
    outputs, kernels = (np.asarray(values, float) for values in train_all(key))
    start = outputs[:, :, 0]
    by_own = repeat(start, kernels, setting.y, rates, steps)
    by_next = repeat(start, np.roll(kernels, 1, axis=0), setting.y, rates, steps)
    return Runs(outputs, by_own, by_next)


def repeat(
    start: np.ndarray, kernels: np.ndarray, y: np.ndarray, rates: Sequence[float], steps: int
) -> np.ndarray:
    """Repeat z ← z − (η/m) Θ (z − y) from every start with its kernel, ``(networks, rates, steps + 1, points)``."""
    m = len(y)
    scale = np.asarray(rates)[:, None] / m
    path = [start]
    for _ in range(steps):
        residual = path[-1][..., :m] - y
        # (networks, rates, m) × (networks, m, points)
        path.append(path[-1] - scale * (residual @ kernels.swapaxes(1, 2)))
    return np.stack(path, 2)


def train_pairs(
    net: Mlp,
    setting: Setting,
    direction: kit.Values,
    rate: float,
    steps: int,
    pairs: int,
    key: kit.Key,
) -> Ensemble:
    """Train pairs of networks for many steps, and the first of each also from a residual in some direction."""
    x, y = map(jnp.asarray, setting[:2])
    m = len(y)

    def pair(key: kit.Key) -> tuple[Array, Array]:
        *hidden, last = net.init(key)
        first = (*hidden, last)
        start = net.apply(first, x)[:m]
        targets = jnp.stack([y, y, start - direction])
        signs = jnp.array([1.0, -1.0, 1.0])

        def run(task: tuple[Array, Array]) -> Array:
            sign, goal = task
            flipped = (*hidden, jax.tree.map(lambda leaf: sign * leaf, last))
            return follow(net, flipped, x, goal, rate, steps)

        paths = jax.lax.map(run, (signs, targets))
        residual = jnp.linalg.norm(paths[2, -1, :m] - targets[2])
        # the direction has length one, so that this is log(|r_T|/|r_0|)/T
        return paths[:2, jnp.array([steps // 10, steps]), m:], jnp.log(residual) / steps

    train_all = kit.compiled(lambda key: jax.lax.map(pair, kit.keys(key, pairs)))
    ends, decay = (np.asarray(values, float) for values in train_all(key))
    # the mean over the two signs, (times, pairs, test points)
    early, late = ends.mean(1).swapaxes(0, 1)
    return Ensemble(early, late, decay)
