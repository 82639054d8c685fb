"""Two linear layers with several outputs, trained on data that they can separate."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.implicit_bias._tails import TAIL_FALL, margin_flow
from steepest.nn.types import Values

DATA = ("entries", "labels", "classes")
FIRST = 1.0  # fall of log R at the first reading
READINGS = 8  # from there to a tenth of the last one
LAST = 10.0  # last reading over the one before, between which powers are read
TOLERANCE = 1e-4
STEPS = 3000  # of the integrator; flows of drafts took up to 540


class Sets(NamedTuple):
    """Measurements A of the matrix W that the network makes, whose margins are ⟨A, W⟩, and starts.

    Attributes:
        a: measurements of Frobenius norm about one, ``(seeds, data, K(K − 1), K, d)``.
        conditioning: of the inputs behind labels and classes, least singular value over the largest, ``(seeds, 2)``.
        starts: U over V, ``(seeds, data, K + d, hidden)``.
    """

    a: Values
    conditioning: Values
    starts: Values


class Ends(NamedTuple):
    """What is read of trained networks.

    Attributes:
        margin: least ⟨A, W⟩ over the nuclear norm, ``(worlds, seeds, data, readings)``.
        power: of singular values of W in the fall, from a tenth of it on, ``(worlds, seeds, data, min(K, d))``.
        arrived: whether the flow reached the last reading, ``(worlds, seeds, data)``.
    """

    margin: Values
    power: Values
    arrived: Values


def draw(
    rng: np.random.Generator, outputs: int, inputs: int, hidden: int, scale: float
) -> tuple[Values, ...]:
    """Draw one set of each kind, as the arrays of ``Sets`` without seeds."""
    count = outputs * (outputs - 1)
    unit = np.eye(outputs)
    entries = np.zeros((count, outputs * inputs))
    places = rng.choice(outputs * inputs, count, replace=False)
    entries[np.arange(count), places] = rng.choice([-1.0, 1.0], count)
    for_labels = rng.standard_normal((outputs - 1, inputs)) / np.sqrt(inputs)
    signs = rng.choice([-1.0, 1.0], (outputs - 1, outputs))
    # s_nj e_j x_nᵀ: ⟨A, W⟩ is the margin of label j of input n
    labels = np.einsum("nj,jo,ni->njoi", signs, unit, for_labels)
    for_classes = rng.standard_normal((outputs, inputs)) / np.sqrt(inputs)
    label = rng.integers(0, outputs, outputs)
    # ⟨(e_c − e_j)x_nᵀ, W⟩ is the margin of class c against class j; √2 for Frobenius norm one
    against = [np.delete(unit[c] - unit, c, axis=0) / np.sqrt(2) for c in label]
    classes = np.einsum("njo,ni->njoi", against, for_classes)
    shape = (count, outputs, inputs)
    starts = rng.standard_normal((len(DATA), outputs + inputs, hidden))
    return (
        np.stack([part.reshape(shape) for part in (entries, labels, classes)]),
        np.array([_conditioning(for_labels), _conditioning(for_classes)]),
        starts * scale / np.sqrt(hidden),
    )


def _conditioning(x: Values) -> float:
    """Return the least singular value of the inputs over the largest, zero if they are more than dimensions."""
    values = np.linalg.svd(x, compute_uv=False)
    return float(values[-1] / values[0]) if len(values) == len(x) else 0.0


def readings(last: float) -> Values:
    """Return at which falls of log R a network is read.

    >>> readings(1e4)[[0, -2, -1]].tolist()
    [1.0, 1000.0, 10000.0]
    """
    return np.append(np.geomspace(FIRST, last / LAST, READINGS), last)


def follow_all(sets: Sets, horizon: float) -> Ends:
    """Follow the flow of all networks in three worlds: as they are, as one layer, and on 1/(1 + u)."""
    outputs, inputs = sets.a.shape[-2:]
    falls = np.stack([readings(last) for last in (horizon, horizon, TAIL_FALL)])
    one_layer = np.array([False, True, False])
    power = np.array([False, False, True])

    def train(
        a: jax.Array, start: jax.Array, falls: jax.Array, one_layer: jax.Array, power: jax.Array
    ) -> tuple:
        def product(z: jax.Array) -> jax.Array:
            # U over V in z: W = UVᵀ
            return jnp.where(one_layer, z[:outputs, :inputs], z[:outputs] @ z[outputs:].T)

        path = margin_flow(
            lambda z: jnp.tensordot(a, product(z), 2),
            start,
            falls,
            power,
            {"weights": product},
            rtol=TOLERANCE,
            atol=1e-2 * TOLERANCE,
            max_steps=STEPS,
        )
        return path.observed["weights"], path.ok

    over_sets = jax.vmap(jax.vmap(train, (0, 0, *[None] * 3)), (0, 0, *[None] * 3))

    # one world after the other: the slowest lane decides
    @kit.compiled
    def run(a: jax.Array, starts: jax.Array, worlds: tuple) -> tuple:
        return jax.lax.map(lambda world: over_sets(a, starts, *world), worlds)

    weights, arrived = map(np.asarray, run(sets.a, sets.starts, (falls, one_layer, power)))
    sizes = np.linalg.svd(weights, compute_uv=False)
    margins = np.einsum("snmoi,wsnroi->wsnrm", sets.a, weights)
    late = np.log(sizes[..., [-2, -1], :])
    # slope of log σ in the logarithm of the fall, between readings LAST apart
    power = (late[..., 1, :] - late[..., 0, :]) / np.log(LAST)
    return Ends(margins.min(-1) / sizes.sum(-1), power, arrived)
