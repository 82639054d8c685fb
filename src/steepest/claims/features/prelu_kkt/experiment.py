"""Networks on orthogonal centres: KKT points by construction, others by chance, and where descent ends."""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.dynamics import descend, log_risk_steps
from steepest.linalg import sequential
from steepest.nn.networks import Neurons, two_layer
from steepest.programs import Kinks, KktResiduals, kkt_from_gradients

STEP = 4.0  # of descent on log R
DEAD = 24  # neurons of descents in which each sees two centres of its class
NETWORKS = ("centres", "uneven", "averages", "overlapping")
SCALINGS = (
    300  # of a random network until its margins are equal, most within 1e-8 and all within 1 %
)
LEAST = 1e-3  # disagreement of neurons from which a random network counts as no KKT point


Measured = dict[str, tuple[str, np.ndarray]]  # axes and values, by name


class Setting(NamedTuple):
    """Examples in coordinates along the centres, and networks at the start of descent.

    Attributes:
        x: one example at each centre, shape ``(K, K)``.
        y: signs of the examples, which alternate, + first, shape ``(K,)``.
        starts: input weights ``(seeds, h, d)`` and output weights ``(seeds, h)``.
    """

    x: kit.Values
    y: kit.Values
    starts: Neurons


def draw_setting(
    key: kit.Key,
    *,
    clusters: int,
    dimension: int,
    width: int,
    scale: float,
    seeds: int,
    overlap: float,
    spread: float,
) -> Setting:
    """Draw examples about centres, and the starts of descents.

    Args:
        key: of all draws.
        clusters: K, the number of centres.
        dimension: d, of the networks that descend.
        width: h, their number of neurons.
        scale: ε, about the norm of the input weights.
        seeds: number of starts.
        overlap: product of two centres.
        spread: about the distance of an example from its centre.
    """
    for_noise, for_starts = jax.random.split(key)

    def draw(for_noise: kit.Key, for_seeds: kit.Key) -> tuple[jax.Array, Neurons]:
        noise = jax.random.normal(for_noise, (clusters, clusters))
        return noise, jax.vmap(two_layer(dimension, width, scale=scale).init)(for_seeds)

    noise, starts = kit.compiled(draw)(for_noise, kit.keys(for_starts, seeds))
    # rows are μ_i with products overlap, made of the identity and its mean
    orthogonal = np.sqrt(max(1 - overlap, 0.0))
    common = (np.sqrt(orthogonal**2 + clusters * overlap) - orthogonal) / clusters
    centres = orthogonal * np.eye(clusters) + common
    x = centres + spread / np.sqrt(clusters) * np.asarray(noise)
    return Setting(x, alternating_signs(clusters), jax.tree.map(np.asarray, starts))


def alternating_signs(k: int) -> np.ndarray:
    """Return 1, −1, 1, … of length k."""
    return np.where(np.arange(k) % 2 == 0, 1.0, -1.0)


def starts_that_miss_a_class(starts: Neurons, clusters: Sequence[int]) -> int:
    """Count starts and problems in which some class has no neuron with positive products with all its centres."""
    count = 0
    for k in clusters:
        for first, sign in enumerate((1.0, -1.0)):
            sees_all = (starts.w[..., first:k:2] > 0).all(-1)
            same_class = sign * starts.v > 0
            count += int((~(sees_all & same_class).any(1)).sum())
    return count


# ------------------------------------------------------------------------------------- exact networks


def of_numpy(w: Any, v: Any) -> Neurons:
    """Return parameters whose arrays are NumPy's, which the type of a network's parameters does not know."""
    return Neurons(w, v)


def network(
    directions: np.ndarray, signs: np.ndarray, strengths: np.ndarray | float = 1.0
) -> Neurons:
    """Return balanced neurons in these directions, with |v|‖w‖ equal to their strengths."""
    lengths = np.sqrt(np.broadcast_to(strengths, len(directions)))
    unit = directions / np.linalg.norm(directions, axis=1)[:, None]
    return of_numpy(lengths[:, None] * unit, lengths * signs)


def exact_network(x: np.ndarray, y: np.ndarray, power: float, name: str) -> Neurons:
    """Return a network of ``NETWORKS``, with margins of one at orthonormal examples.

    Its neurons are w ∝ Σ m_i μ_i over the centres that they see, with a weight m_i of the centre that they share.
    """
    rows = []
    signs = []
    strengths = []
    for sign in (1.0, -1.0):
        of_class = np.flatnonzero(y == sign)
        weights = _class_weights(len(of_class), power, name)
        if name == "overlapping":
            strength = (weights**2).sum(1) ** (power / 2)  # each sees a centre that no other does
        else:
            strength = weights.sum(1) ** (power / 2)  # of groups that share no centre
        rows.append(weights @ x[of_class])
        signs.append(np.full(len(weights), sign))
        strengths.append(strength)
    return network(np.concatenate(rows), np.concatenate(signs), np.concatenate(strengths))


def _class_weights(count: int, power: float, name: str) -> np.ndarray:
    """Return how the neurons of one class weigh its centres, ``(neurons, count)``."""
    single = np.eye(count)
    if name == "centres":
        return single
    if name == "averages":
        return np.ones((1, count))
    if name == "uneven":
        return np.stack([single[0], 1 - single[0]])
    shared = single[1:].copy()
    shared[:, 0] = (count - 1) ** (-1 / power)
    return shared


def two_to_one(x: np.ndarray, y: np.ndarray, *, all_of_them: bool) -> Neurons:
    """Return neurons that weigh one centre of their class twice: each centre in turn, or the first of each class."""
    weights = (y[:, None] == y) + np.eye(len(y))
    rows = np.arange(len(y)) if all_of_them else np.arange(2)
    return network(weights[rows] @ x, y[rows])


def random_weights(
    y: np.ndarray, power: float, tries: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw weights of the centres for unit neurons, ``(tries, k, k)``, and the neurons' strengths, ``(tries, k)``.

    The weights of every second network are random; those of the others differ from each other by their random groups
    alone. Then all weights of a centre are multiplied by one number until its margin is that of the others, as far as
    the groups allow it.
    """
    same_class = y[:, None] == y
    shape = (tries, len(y), len(y))
    spread = np.exp(1.5 * rng.standard_normal(shape))
    groups = (rng.random(shape) < 0.5) | np.eye(len(y), dtype=bool)  # every centre is in some
    grouped = np.arange(tries) % 2 == 1
    weights = same_class * np.where(grouped[:, None, None], groups, spread)
    strengths = np.exp(rng.standard_normal((tries, len(y))))
    for _ in range(SCALINGS):
        weights /= np.linalg.norm(weights, axis=2, keepdims=True)
        margins = np.einsum("tj,tji->ti", strengths, weights**power)
        weights *= margins[:, None] ** (-0.5 / power)
    weights /= np.linalg.norm(weights, axis=2, keepdims=True)
    margins = np.einsum("tj,tji->ti", strengths, weights**power)
    of_class = margins @ same_class / same_class.sum(0)
    return weights, strengths / of_class


def disagreement(weights: np.ndarray, strengths: np.ndarray, power: float) -> float:
    """Return how far neurons are from weighing each centre alike: D ≥ 0, zero where they do.

    D² = min over λ of Σ_j s_j Σ_i û_ji² (λ_i û_ji^(p−2) − 1)² / Σ_j s_j, for neurons of strength s_j and weights û_ji.
    """
    linear = strengths @ weights**power
    square = strengths @ ((weights > 0) * weights ** (2 * power - 2))  # 0⁰ is 1 at p = 1
    agreed = (linear**2 / square).sum() / strengths.sum()
    return float(np.sqrt(max(1 - agreed, 0.0)))


def residuals(
    params: Neurons, *, x: np.ndarray, y: np.ndarray, power: float, clarke: bool = True
) -> KktResiduals:
    """Measure KKT residuals, at kinks of ReLU in Clarke's sense or with the gradient of the active side.

    The active side is where the kinks' multipliers set out from.
    """
    products = x @ params.w.T  # (k, h)
    sizes = np.linalg.norm(params.w, axis=1)
    active = np.maximum(products, 0.0)
    unit = params.w / sizes[:, None]
    signed = y[:, None] * params.v
    outputs = active**power * sizes ** (1 - power)
    if power == 1:
        slope = (products >= 0).astype(float)
    else:
        slope = power * (active / sizes) ** (power - 1)
    inner = signed * slope  # of y f in ⟨w_j, x_i⟩
    lengths = (1 - power) * signed * outputs / sizes
    blocks = inner[:, :, None] * x[:, None] + lengths[:, :, None] * unit
    gradients = np.hstack([blocks.reshape(len(x), -1), y[:, None] * outputs])
    kinks = None
    if power == 1 and clarke:
        kinks = _kinks(products, signed, x)
    theta = np.append(params.w.ravel(), params.v)
    margins = y * (outputs @ params.v)
    return kkt_from_gradients(theta, margins, gradients, 2.0, kinks)


def _kinks(products: np.ndarray, signed: np.ndarray, x: np.ndarray) -> Kinks:
    """Return where examples lie on the kinks of ReLU neurons, and how gradients jump there."""
    example, neuron = np.nonzero(products == 0)
    width = products.shape[1]
    jump = np.zeros((len(example), width, x.shape[1]))
    jump[np.arange(len(example)), neuron] = -signed[example, neuron][:, None] * x[example]
    flat = jump.reshape(len(example), width * x.shape[1])
    return Kinks(example, np.hstack([flat, np.zeros((len(example), width))]))


# ------------------------------------------------------------------------------------------- descents


def dead_on_all_but_two(starts: Neurons, k: int) -> Neurons:
    """Return starts in which each neuron sees the first centre of a class and one other, and is dead on all else."""
    width = starts.v.shape[1]
    neurons = np.arange(width)
    sign = neurons % 2  # 0 for the first class
    other = 1 + (neurons // 2) % (k // 2 - 1)
    sees = np.zeros(starts.w.shape[1:], bool)
    sees[neurons, sign] = True
    sees[neurons, sign + 2 * other] = True
    w = np.where(sees, np.abs(starts.w), -np.abs(starts.w))
    return of_numpy(w, np.abs(starts.v) * alternating_signs(width))


def descents(
    setting: Setting, powers: Sequence[float], clusters: Sequence[int], steps: int, dead: int
) -> tuple[Neurons, Neurons]:
    """Descend from all starts, and from the first ``dead`` neurons of each, made dead on all but two centres.

    ``w`` has shape ``(seeds, powers, problems, h, d)``.
    """
    d = max(clusters)
    x = jnp.asarray(setting.x[:d, :d])
    y = jnp.asarray(setting.y[:d])

    def follow(start: Neurons, power: jax.Array, k: jax.Array) -> Neurons:
        net = two_layer(d, start.v.shape[0], power=power)
        counts = (jnp.arange(d) < k).astype(float)
        risk = lambda params: jax.nn.logsumexp(-y * net.apply(params, x), b=counts)
        return descend(risk, start, log_risk_steps(STEP), steps, record=steps).params

    # one lane a seed, power and problem: nested maps are traced thrice
    seeds = range(len(setting.starts.v))
    lanes = list(itertools.product(seeds, powers, clusters))
    seed, power, k = (np.array(part) for part in zip(*lanes, strict=True))
    few = of_numpy(setting.starts.w[:, :dead], setting.starts.v[:, :dead])
    restricted = {k: dead_on_all_but_two(few, k) for k in clusters}
    free = of_numpy(setting.starts.w[seed], setting.starts.v[seed])
    held = of_numpy(
        np.stack([restricted[k].w[seed] for seed, _, k in lanes]),
        np.stack([restricted[k].v[seed] for seed, _, k in lanes]),
    )
    every = kit.compiled(
        lambda *lanes: [
            jax.vmap(follow)(starts, jnp.asarray(power), jnp.asarray(k)) for starts in lanes
        ]
    )
    shape = (len(seeds), len(powers), len(clusters))
    split = lambda leaf: np.asarray(leaf).reshape(*shape, *leaf.shape[1:])
    free_ends, held_ends = jax.tree.map(split, every(free, held))
    return free_ends, held_ends


# ---------------------------------------------------------------------------------------- measurements


@sequential
def measure_networks(
    setting: Setting, powers: Sequence[float], clusters: Sequence[int]
) -> Measured:
    """Measure residuals and margins of exact networks, and of what is no KKT point, at all powers and problems."""
    shape = (len(powers), len(clusters))
    residual = np.zeros((len(NETWORKS), *shape))
    margin = np.zeros((len(NETWORKS), *shape))
    far_side = np.zeros((len(NETWORKS), *shape))
    unequal = np.zeros(shape)
    tied = np.zeros(shape)
    lopsided = np.zeros(shape)
    for i, j in np.ndindex(*shape):
        x = setting.x[: clusters[j]]
        y = setting.y[: clusters[j]]
        look = partial(residuals, x=x, y=y, power=powers[i])
        for n, name in enumerate(NETWORKS):
            params = exact_network(x, y, powers[i], name)
            kkt = look(params)
            residual[n, i, j] = kkt.largest
            margin[n, i, j] = kkt.margin
            far_side[n, i, j] = look(params, clarke=False).largest
        unequal[i, j] = look(two_to_one(x, y, all_of_them=True)).largest
        tied[i, j] = residuals(two_to_one(x, y, all_of_them=True), x=x, y=y, power=2.0).largest
        lopsided[i, j] = look(two_to_one(x, y, all_of_them=False)).largest
    return {
        "residual": ("network power clusters", residual),
        "margin": ("network power clusters", margin / margin[NETWORKS.index("centres")]),
        "far_side": ("network power clusters", far_side),
        "unequal": ("power clusters", unequal),
        "tied": ("power clusters", tied),
        "lopsided": ("power clusters", lopsided),
    }


@sequential
def search(
    setting: Setting, powers: Sequence[float], k: int, tries: int, rng: np.random.Generator
) -> Measured:
    """Search for KKT points among random networks whose neurons weigh centres differently.

    ``nearest`` is the least residual over the disagreement of the neurons; ``nearest_at_two`` that of networks at p = 2
    whose disagreement is computed as if at the other power.
    """
    x = setting.x[:k]
    y = setting.y[:k]

    def look(power: float, weights: np.ndarray, strengths: np.ndarray) -> list[float]:
        directions = zip(weights @ x, strengths, strict=True)
        networks = [network(w, y, strength) for w, strength in directions]
        return [residuals(params, x=x, y=y, power=power).largest for params in networks]

    def differ(power: float, weights: np.ndarray, strengths: np.ndarray) -> np.ndarray:
        pairs = zip(weights, strengths, strict=True)
        return np.array([disagreement(w, strength, power) for w, strength in pairs])

    tied = random_weights(y, 2.0, tries, rng)
    residual_at_two = np.array(look(2.0, *tied))
    largest = np.zeros((tries, len(powers)))
    nearest = np.zeros(len(powers))
    nearest_at_two = np.zeros(len(powers))
    for i, power in enumerate(powers):
        weights = random_weights(y, power, tries, rng)
        largest[:, i] = look(power, *weights)
        nearest[i] = _least_ratio(largest[:, i], differ(power, *weights))
        nearest_at_two[i] = _least_ratio(residual_at_two, differ(power, *tied))
    return {
        "random": ("try other_power", largest),
        "nearest": ("other_power", nearest),
        "nearest_at_two": ("other_power", nearest_at_two),
    }


def _least_ratio(residual: np.ndarray, differ: np.ndarray) -> float:
    """Return the least residual over disagreement, of networks whose neurons do disagree."""
    some = differ > LEAST
    return float((residual[some] / differ[some]).min())


@sequential
def measure_ends(
    setting: Setting, ends: Neurons, powers: Sequence[float], clusters: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return margins, over that of the centres, and residuals where descents end, ``(seeds, powers, problems)``."""
    shape = ends.v.shape[:3]
    margin = np.zeros(shape)
    residual = np.zeros(shape)
    for place in np.ndindex(*shape):
        k = clusters[place[2]]
        x = setting.x[:k, : ends.w.shape[-1]]
        params = of_numpy(ends.w[place], ends.v[place])
        kkt = residuals(params, x=x, y=setting.y[:k], power=powers[place[1]])
        margin[place] = 2 * k * kkt.margin
        residual[place] = kkt.largest
    return margin, residual


def weights_of_shared(dead: Neurons) -> np.ndarray:
    """Return the weight of a class's first centre over that of the other one that a neuron sees.

    It is the mean of neurons by strength, of shape ``(seeds, powers, problems)``; the neurons are those of
    :func:`dead_on_all_but_two`.
    """
    neurons = np.arange(dead.v.shape[-1])
    sign = neurons % 2
    w = np.asarray(dead.w)
    first = w[..., neurons, sign]
    others = w.copy()
    others[..., neurons, sign] = -np.inf
    strengths = np.asarray(dead.v) ** 2
    return (strengths * first / others.max(-1)).sum(-1) / strengths.sum(-1)
