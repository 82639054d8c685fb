"""Networks trained to one risk in as many steps, on true and on random labels: what their margins tell."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import rankdata

from steepest import kit
from steepest.nn.losses import cross_entropy, mean_risk
from steepest.nn.networks import Mlp
from steepest.programs import network_margins, weight_matrices

ROUNDS = 12
"""Trainings with true labels at most, each with a better step size: four are enough at most seeds."""
EQUAL = 0.02
"""Relative difference of the numbers of steps that is small enough."""
DAMPING = 0.7
"""Power of the ratio of steps by which a step size is corrected, after the first time: smaller than one, as halving a
step of momentum may more than double their number."""


class Pairs(NamedTuple):
    """Images with true and with random labels, of every seed."""

    x: kit.Values  # (seeds, images, pixels)
    true: kit.Values  # (seeds, images, classes)
    random: kit.Values  # the same shape
    isotropic: kit.Values  # Gaussian inputs as large as the images, (seeds, images, pixels)


class Goal(NamedTuple):
    """When a training stops."""

    total: float  # summed cross-entropy
    most: int  # steps after which a training is given up


class Trained(NamedTuple):
    """Networks at their goal, one for each seed."""

    margins: np.ndarray  # (seeds, images)
    complexity: np.ndarray  # (seeds,)
    lipschitz: np.ndarray
    risk: np.ndarray
    steps: np.ndarray


def draw(rng: np.random.Generator, x: np.ndarray, y: np.ndarray, seeds: int, n: int) -> Pairs:
    """Draw images for each seed, centred, and an order in which their labels become random.

    Gaussian inputs without a direction have the mean and the Frobenius norm of the images.
    """
    rows = np.stack([rng.choice(len(x), n, replace=False) for _ in range(seeds)])
    other = np.stack([rng.permutation(chosen) for chosen in rows])
    images = x[rows]
    # the mean image makes the risk sharp in one direction; with it some runs die at half this step size
    images = images - images.mean(1, keepdims=True)
    isotropic = rng.standard_normal(images.shape)
    isotropic = isotropic - isotropic.mean(1, keepdims=True)
    size = [np.linalg.norm(part, axis=(1, 2), keepdims=True) for part in (images, isotropic)]
    return Pairs(images, y[rows], y[other], isotropic * size[0] / size[1])


def train_both(
    net: Mlp, pairs: Pairs, lr: float, momentum: float, goal: Goal, key: kit.Key
) -> dict[str, Trained]:
    """Train on random labels, and on true ones with the steps that take as many of them.

    ``"further"`` is a third training, on true labels at that step size to a tenth of the risk, and ``"isotropic"`` one
    on random labels of Gaussian inputs.
    """
    seeds = len(pairs.x)
    starts = kit.keys(key, seeds)
    x, true, random, isotropic = (jnp.asarray(part, jnp.float32) for part in pairs)
    train = kit.compiled(jax.vmap(partial(_descend, net)))

    def trained(
        labels: jax.Array, steps: np.ndarray, total: float, inputs: jax.Array = x
    ) -> Trained:
        settings = np.full((seeds, 3), (momentum, total / pairs.x.shape[1], goal.most))
        ends = train(starts, inputs, labels, steps.astype("float32"), settings)
        margins, matrices, begin, risk, taken = jax.tree.map(np.asarray, ends)
        lipschitz = np.prod([_spectral_norms(layer) for layer in matrices], axis=0)
        return Trained(margins, _complexities(matrices, begin), lipschitz, risk, taken)

    common = np.full(seeds, lr)
    noise = trained(random, common, goal.total)
    step = common
    truth = trained(true, step, goal.total)
    for i in range(ROUNDS):
        ratio = truth.steps / noise.steps
        if abs(ratio - 1).max() <= EQUAL:
            break
        step = step * ratio ** (DAMPING if i else 1.0)
        truth = trained(true, step, goal.total)
    return {
        "true": truth,
        "random": noise,
        "further": trained(true, step, goal.total / 10),
        "isotropic": trained(random, common, goal.total, isotropic),
    }


def _descend(
    net: Mlp, key: kit.Key, x: jax.Array, y: jax.Array, lr: jax.Array, setting: jax.Array
) -> tuple:
    """Descend with momentum until the mean risk is at its goal, of one network.

    Matrices are returned as they are: singular values in a mapped program may hang.
    """
    momentum, goal, most = setting
    start = net.init(key)
    risk = jax.value_and_grad(mean_risk(cross_entropy, net.apply, x, y))

    def body(state: tuple) -> tuple:
        params, velocity, step, (_, slope) = state
        velocity = jax.tree.map(lambda v, g: momentum * v + g, velocity, slope)
        params = jax.tree.map(lambda p, v: p - lr * v, params, velocity)
        return params, velocity, step + 1, risk(params)

    def goes_on(state: tuple) -> jax.Array:
        return (state[3][0] > goal) & (state[2] < most)

    at_rest = jax.tree.map(jnp.zeros_like, start)
    params, _, step, (value, _) = jax.lax.while_loop(
        goes_on, body, (start, at_rest, 0, risk(start))
    )
    margins = network_margins(net.apply(params, x), y)
    return margins, weight_matrices(params), weight_matrices(start), value, step


def _spectral_norms(layer: np.ndarray) -> np.ndarray:
    """Return the largest singular value of each seed's matrix, ``(seeds,)``."""
    return np.linalg.norm(layer, 2, axis=(1, 2))


def _complexities(matrices: list[np.ndarray], begin: list[np.ndarray]) -> np.ndarray:
    """Return ``Π_i ‖W_i‖₂ (Σ_i (‖W_i − W_i(0)‖_{2,1}/‖W_i‖₂)^{2/3})^{3/2}`` of each seed, ``(seeds,)``."""
    lipschitz = np.ones(len(matrices[0]))
    total = np.zeros(len(matrices[0]))
    for layer, start in zip(matrices, begin, strict=True):
        norm = _spectral_norms(layer)
        moved = np.linalg.norm(layer - start, axis=2).sum(1)  # one Euclidean norm a neuron
        lipschitz *= norm
        total += (moved / norm) ** (2 / 3)
    return lipschitz * total ** (3 / 2)


def ordered(true: np.ndarray, random: np.ndarray) -> np.ndarray:
    """Return the share of pairs, an image of each network, with the larger margin under true labels.

    The shapes are ``(…, images)`` and ``(…,)``; chance gives 1/2 (Mann and Whitney's statistic, the area under the ROC
    curve).
    """
    n = true.shape[-1]
    ranks = rankdata(np.concatenate([true, random], -1), axis=-1)
    # U is the rank sum less its least value, n(n + 1)/2; ties count by half
    return (ranks[..., :n].sum(-1) - n * (n + 1) / 2) / n**2
