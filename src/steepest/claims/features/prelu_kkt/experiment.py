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
NETWORKS = ("centres", "uneven", "averages", "overlapping")


Measured = dict[str, tuple[str, Any]]  # axes and values, by name


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
    # with rows o e_i + c(1, …, 1) products are 2oc + Kc² = overlap, and squares one more o²
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


def random_networks(
    y: np.ndarray, power: float, tries: int, rng: np.random.Generator, *, apart: bool = False
) -> Neurons:
    """Draw networks whose margins are all one, with ``w`` of shape ``(tries, 2k, k)`` and absent neurons zero.

    A third has neurons of any weights, which see some centres of both classes and are turned away from others, and one
    neuron at each centre that makes up for their margins. A third is two KKT points at once: groups of two random
    partitions of each class. The others have one neuron of random weights a class, and those that it becomes where the
    centres of the class are turned around.

    Args:
        y: signs of the centres.
        power: p, at which margins are equal.
        tries: number of networks.
        rng: of all draws.
        apart: whether neurons see their own class alone, and are turned away from nothing.
    """
    third = tries // 3
    parts = (
        _any_weights(y, power, tries - 2 * third, rng, apart),
        _two_partitions(y, power, third, rng),
        _rotations(y, power, third, rng),
    )
    units, strengths = (np.concatenate(of_parts) for of_parts in zip(*parts, strict=True))
    lengths = np.sqrt(strengths)
    return of_numpy(lengths[..., None] * units, lengths * np.tile(y, 2))


def _any_weights(
    y: np.ndarray, power: float, tries: int, rng: np.random.Generator, apart: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return unit weights ``(tries, 2k, k)`` and strengths of k random neurons, and of one more at each centre."""
    k = len(y)
    shape = (tries, k, k)
    sees = (rng.random(shape) < 0.5) | np.eye(k, dtype=bool)
    unseen = rng.choice([0.0, -1.0], shape)
    weights = np.exp(1.5 * rng.standard_normal(shape)) * np.where(sees, 1.0, unseen)
    if apart:
        weights = np.maximum(weights, 0) * (y[:, None] == y)
    units = weights / np.linalg.norm(weights, axis=2, keepdims=True)
    strengths = np.exp(rng.standard_normal((tries, k)))
    margins = y * np.einsum("tj,tji->ti", strengths * y, np.maximum(units, 0) ** power)
    common = np.maximum(margins.max(1), 0) + np.exp(rng.standard_normal(tries))
    # a neuron at a centre alone adds its strength to that margin, and to no other
    missing = common[:, None] - margins
    centres = np.broadcast_to(np.eye(k), shape)
    return (
        np.concatenate([units, centres], axis=1),
        np.concatenate([strengths, missing], axis=1) / common[:, None],
    )


def _two_partitions(
    y: np.ndarray, power: float, tries: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return unit weights ``(tries, 2k, k)`` and strengths of the groups of two partitions; some groups are empty."""
    k = len(y)
    of_group = np.arange(k // 2)[:, None, None]
    of_class = y == np.array([[1.0], [-1.0]])
    labels = rng.integers(k // 2, size=(tries, 2, 1, 1, k))
    members = (labels == of_group) & of_class  # (tries, partition, group, class, centre)
    sizes = members.sum(-1)
    part = rng.random(tries)
    parts = np.stack([part, 1 - part], axis=1)[:, :, None, None]
    units = members / np.sqrt(np.maximum(sizes, 1))[..., None]
    # a group of m centres has margins of one at the strength m^(p/2), here in two shares
    strengths = parts * sizes ** (power / 2)
    return units.reshape(tries, 2 * k, k), strengths.reshape(tries, 2 * k)


def _rotations(
    y: np.ndarray, power: float, tries: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return unit weights ``(tries, 2k, k)`` and strengths of k neurons that are rotations of one a class."""
    k = len(y)
    spread = rng.uniform(0, 1.5, (tries, 1, 1))
    weights = np.exp(spread * rng.standard_normal((tries, 2, k // 2)))  # (tries, class, shift)
    weights /= np.linalg.norm(weights, axis=2, keepdims=True)
    neuron, centre = np.indices((k, k))
    shifted = weights[:, neuron % 2, (centre - neuron) // 2 % (k // 2)]
    units = np.where(y[:, None] == y, shifted, 0.0)
    # each centre meets every weight of its class once: Σ_j s û_ji^p = 1
    strengths = 1 / (units**power).sum(2)
    absent = np.zeros((tries, k, k))
    return np.concatenate([units, absent], axis=1), np.concatenate(
        [strengths, absent[:, 0]], axis=1
    )


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
    # φ(w, x) = ⟨w, x⟩₊^p ‖w‖^(1−p), of degree one in w
    outputs = active**power * sizes ** (1 - power)
    if power == 1:
        slope = (products >= 0).astype(float)
    else:
        slope = power * (active / sizes) ** (power - 1)
    inner = signed * slope  # of y f in ⟨w_j, x_i⟩
    # ∂φ/∂w = p(⟨w, x⟩₊/‖w‖)^(p−1) x + (1 − p)(φ/‖w‖) w/‖w‖
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
    # gradients hold the active side's y v x, the other side has zero
    jump[np.arange(len(example)), neuron] = -signed[example, neuron][:, None] * x[example]
    flat = jump.reshape(len(example), width * x.shape[1])
    return Kinks(example, np.hstack([flat, np.zeros((len(example), width))]))


# ------------------------------------------------------------------------------------------- descents


def descents(
    setting: Setting, powers: Sequence[float], clusters: Sequence[int], steps: int
) -> Neurons:
    """Descend from all starts; ``w`` has shape ``(seeds, powers, problems, h, d)``."""
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
    lanes = itertools.product(seeds, powers, clusters)
    seed, power, k = (np.array(part) for part in zip(*lanes, strict=True))
    starts = of_numpy(setting.starts.w[seed], setting.starts.v[seed])
    ends = kit.compiled(jax.vmap(follow))(starts, jnp.asarray(power), jnp.asarray(k))
    shape = (len(seeds), len(powers), len(clusters))
    return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(*shape, *leaf.shape[1:]), ends)


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
    """Measure the KKT residuals of random networks of k centres, and keep their weights.

    Those called tied have equal margins at p = 2, where they are KKT points, and are measured at all powers.
    """
    x = setting.x[:k]
    y = setting.y[:k]

    def look(power: float, networks: Neurons) -> np.ndarray:
        pairs = zip(networks.w, networks.v, strict=True)
        present = [of_numpy(w[v != 0] @ x, v[v != 0]) for w, v in pairs]
        return np.array([residuals(one, x=x, y=y, power=power).largest for one in present])

    drawn = [random_networks(y, power, tries, rng) for power in powers]
    tied = random_networks(y, 2.0, tries, rng, apart=True)
    every = list(zip(powers, drawn, strict=True))
    return {
        "random": ("try other_power", np.stack([look(*one) for one in every], axis=1)),
        "random_w": ("try other_power neuron centre", np.stack([one.w for one in drawn], axis=1)),
        "random_v": ("try other_power neuron", np.stack([one.v for one in drawn], axis=1)),
        "tied_random": ("try", look(2.0, tied)),
        "tied_elsewhere": (
            "try other_power",
            np.stack([look(power, tied) for power in powers], axis=1),
        ),
        "tied_w": ("try neuron centre", tied.w),
        "tied_v": ("try neuron", tied.v),
    }


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
        # over 1/2K, the margin of one neuron of |v| = ‖w‖ = 1 at each centre
        margin[place] = 2 * k * kkt.margin
        residual[place] = kkt.largest
    return margin, residual
