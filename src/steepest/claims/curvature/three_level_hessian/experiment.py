"""Eigenvalues of the Gauss–Newton matrix of trained networks, whole and without some of its parts."""

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
from steepest.measurement.quantities import Levels, Parts, level_forms, level_products, three_levels

REMOVED = {"class and cross-class": ("classes", "cross"), "within": ("within",)}
CLASS_PART = ("classes",)  # which the notes remove: drawn, and not judged
LEVELS = ("classes", "cross", "within")
PROBES = 16  # random vectors for the traces


class Measured(NamedTuple):
    """What is compiled into one program of one network.

    Attributes:
        levels: factors of the class and cross-class parts.
        start: a random vector from which eigenvalues are sought, shape ``(p,)``.
        deviation: of the sum of the parts from G along random vectors, relative, shape ``(probes,)``.
        trace: of the three levels, estimated, shape ``(3,)``.
    """

    levels: Levels
    start: Float[Array, " p"]
    deviation: Float[Array, " probes"]
    trace: Float[Array, " levels"]


def split(setting: Setting, key: kit.Key, classes: int, steps: int) -> dict[str, np.ndarray]:
    """Train every network, and find the spectra of G and of what is left of it: with its classes and random groups.

    Returns:
        Arrays whose first axis are the networks, by name; those with random groups begin with ``random_``.
    """
    training, all_lanes = setting
    weights, _, error = training(all_lanes, np.array([steps]))
    count = len(all_lanes.y)

    def both(weights: jax.Array, lanes: Lanes, again: kit.Key) -> tuple[Measured, jax.Array]:
        """Measure every network with its classes and with random groups of its images; return the groups too."""
        groups = jax.vmap(jax.random.permutation)(again, lanes.y)
        measure_all = jax.vmap(partial(measure, training))
        grouped = lambda y: measure_all(weights, lanes._replace(y=y), again)
        return jax.lax.map(grouped, jnp.stack([lanes.y, groups])), groups

    measured, groups = kit.compiled(both)(weights[:, 0], all_lanes, kit.keys(key, count))
    lanes = all_lanes._replace(keys=None)  # the keys have done their work
    networks = (
        weights[:, 0],
        lanes,
        lanes._replace(y=groups),
        *(jax.tree.map(lambda a, i=i: a[i], measured) for i in (0, 1)),
    )
    networks = jax.tree.map(np.asarray, networks)
    product = jax.jit(partial(products, training))  # hundreds of calls: worth optimizing
    of_network = [jax.tree.map(lambda a, i=i: a[i], networks) for i in range(count)]
    solved = [spectra(classes, product, *network) for network in of_network]
    stacked = {name: np.stack([network[name] for network in solved]) for name in solved[0]}
    return {"error": np.asarray(error[:, 0]), **stacked}


def spectra(
    classes: int,
    product: Callable,
    w: np.ndarray,
    lane: Lanes,
    random_lane: Lanes,
    of_classes: Measured,
    of_groups: Measured,
) -> dict[str, Any]:
    """Return spectra of G and of what is left of it, for one network."""
    solved = []

    def top(lane: Lanes, levels: Levels, parts: tuple[str, ...], count: int) -> Any:
        """Eigenpairs of G less some of its parts."""
        # coefficients of Parts, whose first is G: one for it, minus one for each part taken away
        sign = np.eye(len(Parts._fields))[0] - np.isin(Parts._fields, parts)
        pairs = top_eigenpairs(
            row_by_row(lambda v: product(w, lane, levels, v, sign)),
            np.asarray(of_classes.start),
            count,
            tolerance=TOLERANCE,
            missed=None,
        )
        solved.append(pairs)
        return pairs

    spectrum = top(lane, of_classes.levels, (), 2 * classes + 1)
    levels_of_network = {
        "eigenvalues": spectrum.values,
        "left_of_class_part": top(lane, of_classes.levels, CLASS_PART, classes + 2).values,
        "deviation": of_classes.deviation,
    }
    for prefix, grouped, levels in (("", lane, of_classes), ("random_", random_lane, of_groups)):
        along = lambda factor: ((spectrum.vectors @ factor.T) ** 2).sum(1)  # v · A v
        class_part = along(levels.levels.classes)
        both_parts = class_part + along(levels.levels.cross)
        levels_of_network |= {
            f"{prefix}carried": class_part / spectrum.values,
            f"{prefix}class_share": (class_part / both_parts)[: classes - 1],
            f"{prefix}left": np.stack(
                [
                    top(grouped, levels.levels, parts, classes + 2).values
                    for parts in REMOVED.values()
                ]
            ),
            f"{prefix}trace": levels.trace,
        }
    residual = max(pairs.residuals.max() for pairs in solved)
    return {**levels_of_network, "residual": residual / spectrum.values[0]}


def measure(training: Training, w: jax.Array, lane: Lanes, key: kit.Key) -> Measured:
    """Return factors, traces and the deviation of the parts from G, of one network."""
    levels = _levels(training, w, lane)
    # entries ±1: E v·Av = tr A (Hutchinson)
    vectors = jax.random.rademacher(key, (PROBES, w.size), w.dtype)
    return Measured(levels, vectors[0], *_forms(training, w, lane, levels, vectors))


def _levels(training: Training, w: jax.Array, lane: Lanes) -> Levels:
    """Class and cross-class factors of one network."""
    outputs, back = jax.vjp(lambda w: training.outputs(w, lane), w)
    return three_levels(lambda u: back(u)[0], outputs, lane.y)


def products(
    training: Training, w: jax.Array, lane: Lanes, rows: Levels, v: jax.Array, sign: jax.Array
) -> jax.Array:
    """A sum of the parts, in the order of ``Parts``, times a vector."""
    # J along v, and from the same linearization Jᵀ
    outputs, ahead = jax.linearize(lambda w: training.outputs(w, lane), w)
    back = jax.linear_transpose(ahead, w)
    parts = level_products(rows, ahead, lambda u: back(u)[0], outputs, lane.y)
    return sign @ jnp.stack([product(v) for product in parts])


def _forms(
    training: Training, w: jax.Array, lane: Lanes, rows: Levels, vectors: jax.Array
) -> tuple[jax.Array, ...]:
    """How far the parts, each by its definition, are from G along random vectors; traces of the three levels."""

    def along(v: jax.Array) -> tuple[jax.Array, jax.Array]:
        outputs, moved = jax.jvp(lambda w: training.outputs(w, lane), (w,), (v,))
        forms = level_forms(moved, outputs, lane.y)
        whole = v @ products(training, w, lane, rows, v, jnp.eye(len(Parts._fields))[0])
        factors = ((rows.classes @ v) ** 2).sum() + ((rows.cross @ v) ** 2).sum()
        off = jnp.stack([sum(forms.values()) - whole, forms["classes"] + forms["cross"] - factors])
        return jnp.abs(off).max() / whole, jnp.stack([forms[name] for name in LEVELS])

    deviation, forms = jax.lax.map(along, vectors)
    # means over random signs estimate the traces
    return deviation, forms.mean(0)
