"""Train classifiers of several numbers of classes, and look at the leading eigenvectors of their Hessians."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest import kit
from steepest.claims.curvature._trained import TOLERANCE, Lanes, Setting, Training
from steepest.linalg import row_by_row, top_eigenpairs
from steepest.measurement.quantities import softmax, subspace_overlap
from steepest.nn.losses import cross_entropy

MOMENTS = ("start", "a sixth", "a third", "end")  # of training: the axis "moment"
THIRD = MOMENTS.index("a third")
END = MOMENTS.index("end")
PLACES = (0, 1, -2, -1)  # of the moments among the records
EDGES = (0, THIRD, END)  # moments at which the lower end of the spectrum is looked at
EDGE_TOLERANCE = 1e-2  # of the lowest eigenpair's residual, relative to its eigenvalue


class Network(NamedTuple):
    """What is measured of one network.

    Attributes:
        values: the 2C + 1 largest eigenvalues at the end.
        class_share: v · G_class v / v · H v of each eigenvector, for classes and for random groups, ``(2, 2C + 1)``.
        share: of the squared gradient in the top space, at each moment.
        overlap: of the top spaces of neighbouring moments, up to a third.
        residual: of the eigenpairs, over the largest eigenvalue.
        space: the top space at a third of the training, ``(C, p)``.
        largest: the largest eigenvalue at each moment.
    """

    values: np.ndarray
    class_share: np.ndarray
    share: np.ndarray
    overlap: np.ndarray
    residual: float
    space: np.ndarray
    largest: np.ndarray


def records(steps: int) -> np.ndarray:
    """Return the steps that are kept: the start, a sixth, several until a third, the end."""
    before_third = np.linspace(steps / 4, steps / 3, 6).astype(int)
    return np.unique([0, steps // 6, *before_third, steps])


def look(setting: Setting, key: kit.Key, classes: tuple[int, ...], steps: int) -> kit.Observation:
    """Train every network and measure it.

    Args:
        setting: how networks are trained, and on what; all seeds of one number of classes, then the next.
        key: of random groups and of where Lanczos starts.
        classes: the numbers of classes.
        steps: of training.
    """
    training, all_lanes = setting
    weights, _, error = training(all_lanes, records(steps))
    weights = np.asarray(weights)
    without_keys = all_lanes._replace(keys=None)  # the keys have done their work
    lanes = [
        jax.tree.map(lambda a, i=i: np.asarray(a[i]), without_keys) for i in range(len(weights))
    ]
    draws = np.asarray(kit.compiled(jax.vmap(jax.random.bits))(_split(key, len(weights))))
    pullback = kit.compiled(partial(_pullback, training))
    product = jax.jit(partial(_product, training))  # hundreds of calls: worth optimizing
    seeds = len(lanes) // len(classes)
    networks = []
    for i, lane in enumerate(lanes):
        groups = np.random.default_rng(int(draws[i])).permutation(lane.y)
        pulled = jax.tree.map(np.asarray, pullback(weights[i], lane, groups))
        rng = np.random.default_rng(int(draws[i]))
        networks.append(_measure(product, weights[i], pulled, lane, classes[i // seeds], rng))
    # the lower end for the most classes alone, which come last
    curvature = kit.compiled(partial(_curvature, training))
    edges = []
    for i in range(len(lanes) - seeds, len(lanes)):
        look_at = partial(_lower_end, product, curvature, lane=lanes[i])
        rng = np.random.default_rng(int(draws[i]))
        ends = [look_at(weights[i, PLACES[moment]], rng=rng) for moment in EDGES]
        edges.append(np.array(ends) / networks[i].largest[list(EDGES), None])
    lowest, convex = np.moveaxis(np.array(edges), -1, 0)
    return kit.Observation(
        lowest=("seed looked", lowest),
        lowest_of_convex=("seed looked", convex),
        **_stacked(networks, classes, seeds),
        error=("lane", np.asarray(error)[:, -1]),
    )


def _stacked(
    networks: list[Network], classes: tuple[int, ...], seeds: int
) -> dict[str, tuple[str, Any]]:
    """Return what was measured as classes × seeds; ranks beyond 2C + 1 are NaN."""
    ranks = 2 * max(classes) + 1
    pad = lambda values: np.append(
        values, np.full((*values.shape[:-1], ranks - values.shape[-1]), np.nan), -1
    )
    shape = lambda values: np.reshape(values, (len(classes), seeds, *np.shape(values)[1:]))
    column = lambda name: shape(np.stack([getattr(network, name) for network in networks]))
    shares = shape(np.stack([pad(network.class_share) for network in networks]))
    spaces = [network.space for network in networks]
    following = np.roll(np.arange(len(spaces)).reshape(len(classes), -1), -1, 1).ravel()
    # the top spaces of one network against those of the next with as many classes
    others = [subspace_overlap(spaces[i], spaces[k]) for i, k in enumerate(following)]
    return {
        "values": (
            "classes seed rank",
            shape(np.stack([pad(network.values) for network in networks])),
        ),
        "class_share": ("classes seed rank", shares[:, :, 0]),
        "random_share": ("classes seed rank", shares[:, :, 1]),
        "share": ("classes seed moment", column("share")),
        "overlap": ("classes seed pair", column("overlap")),
        "other_network": ("classes seed", shape(others)),
        "residual": ("classes seed", column("residual")),
    }


def _measure(
    product: Callable,
    weights: np.ndarray,
    pulled: tuple[np.ndarray, np.ndarray],
    lane: Lanes,
    c: int,
    rng: np.random.Generator,
) -> Network:
    """Measure one network at the start, at a sixth, at a third and at the end of its training.

    ``pulled`` are gradients at all records, and factors of the class part and of its like for random groups.
    """
    gradients, factors = pulled
    values = np.empty(0)
    class_share = np.empty((2, 0))
    spaces = []
    share = []
    largest = []
    residual = 0.0
    for place in PLACES:
        top = top_eigenpairs(
            row_by_row(partial(product, weights[place], lane)),
            rng.standard_normal(weights.shape[1]),
            2 * c + 1 if place == -1 else c,
            tolerance=TOLERANCE,
            missed=None,
        )
        values = top.values
        # v·G_class v = ‖rows v‖², for classes and for random groups, (2, 2C + 1)
        class_share = ((factors @ top.vectors.T) ** 2).sum(1) / values
        spaces.append(top.vectors[:c])
        largest.append(values[0])
        # before a third, the mean over several steps
        late = gradients[2:-1] if place == -2 else gradients[place][None]
        # ‖projection‖²/‖g‖², both summed over the steps
        share.append(((late @ spaces[-1].T) ** 2).sum() / (late**2).sum())
        residual = max(residual, float(top.residuals.max() / top.values[0]))
    overlap = [subspace_overlap(spaces[i], spaces[i + 1]) for i in range(2)]
    return Network(
        values,
        class_share,
        np.array(share),
        np.array(overlap),
        residual,
        spaces[THIRD],
        np.array(largest),
    )


def _lower_end(
    product: Callable, curvature: Callable, w: np.ndarray, lane: Lanes, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the lowest eigenvalue, and the curvature of the Gauss–Newton matrix along its eigenvector."""
    # the largest of −H is the lowest of H
    lowest = top_eigenpairs(
        row_by_row(lambda v: -product(w, lane, v)),
        rng.standard_normal(len(w)),
        1,
        tolerance=EDGE_TOLERANCE,
        missed=None,
    )
    return -float(lowest.values[0]), float(curvature(w, lane, lowest.vectors[0]))


def _curvature(training: Training, w: jax.Array, lane: Lanes, v: jax.Array) -> jax.Array:
    """Return v · G v: the mean over images of the variance, under p, by which outputs move along v."""
    outputs, moved = jax.jvp(lambda w: training.outputs(w, lane), (w,), (v,))
    p = softmax(outputs)
    # ṡᵀ(diag p − ppᵀ)ṡ, with ṡ the change of the outputs along v
    return ((p * moved**2).sum(1) - (p * moved).sum(1) ** 2).mean()


def _pullback(
    training: Training, w: jax.Array, lane: Lanes, random: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return gradients at all records; at the last, factors of the class part for classes and random groups."""
    rows = jax.vmap(lambda groups: class_rows(training, w[-1], lane, groups))
    slopes = jax.vmap(jax.grad(training.objective), (0, None))(w, lane)
    return slopes, rows(jnp.stack([lane.y, random]))


def _product(training: Training, w: jax.Array, lane: Lanes, v: jax.Array) -> jax.Array:
    """Return the Hessian of the mean cross-entropy, without the decay, times a vector."""
    risk = lambda w: cross_entropy(training.outputs(w, lane), lane.y).mean()
    return jax.jvp(jax.grad(risk), (w,), (v,))[1]  # forward over reverse


def class_rows(
    training: Training, w: jax.Array, lane: Lanes, groups: jax.Array
) -> Float[Array, "10 p"]:
    """Return the factor of the class part of the Gauss–Newton matrix: G_class is ``rowsᵀ rows``; one product a class.

    With the images' own classes as ``groups`` these are the rows of ``three_levels``: the mean over wrong labels c' of
    ``g_ic' = J_iᵀ(p_i − e_c')``, weighted by ``p_ic'``, is ``J_iᵀ p_iy (e_y − p_i)/(1 − p_iy)``.
    """
    outputs, back = jax.vjp(lambda w: training.outputs(w, lane), w)
    p = softmax(outputs)
    one_hot = jax.nn.one_hot(lane.y, p.shape[1])
    of_label = (p * one_hot).sum(1, keepdims=True)
    cotangent = of_label * (one_hot - p) / len(p)
    members = jax.nn.one_hot(groups, p.shape[1]).T  # (10, n)
    weight = members @ (1 - of_label) / len(p)  # w_c, (10, 1)
    sums = jax.vmap(lambda member: back(member[:, None] * cotangent)[0])(members)
    # sums are w_c g_c: over √w_c they are √w_c g_c, and G_class = Σ_c w_c g_c g_cᵀ
    return sums / jnp.sqrt(jnp.where(weight > 0, weight, 1.0))


def _split(key: kit.Key, count: int) -> kit.Key:
    return jax.random.split(key, count)
