"""Products UVᵀ of two layers: starts and targets, the flow on ½‖Y − UVᵀ‖², and the imbalance UᵀU − VᵀV."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.dynamics import FlowPath, flow
from steepest.nn.data import digits
from steepest.nn.networks import imbalance
from steepest.nn.types import Values

SHAPES = (3, 2)  # outputs n, for m = 2 inputs
ROWS = max(SHAPES)  # of all U: smaller problems are filled with zeros, which no step changes
INPUTS = 2
NOISE = 0.3  # entries of small starts
TRIPLES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (1, 7, 9))  # classes of digits
LINEAR, TANH, RELU = range(3)  # activations of the hidden layer
LEAST = ROWS + INPUTS  # hidden neurons
HIDDEN = kit.between(LEAST, 12, "fewer leave no room off the rows of V")
EXCESSES = ((0.0, 1.0, 2.0, 4.0), (0.0, 1.2, 3.0), (0.0, 1.0, 4.0))


class Lanes(NamedTuple):
    """Starts and targets of several runs, U and Y filled up to three rows."""

    U: Values  # (…, 3, hidden)
    V: Values  # (…, 2, hidden)
    Y: Values  # (…, 3, 2)


class Starts(NamedTuple):
    """Groups of starts; the first half of the starts on random targets has three outputs, the second half two."""

    small: Lanes  # (starts, excesses)
    near: Lanes  # with a margin, (starts, first two excesses)
    against: Lanes  # against the target, (starts,)
    digits: Lanes  # (triples, excesses)


def drawn(rng: np.random.Generator, hidden: int, excesses: tuple[float, ...], seeds: int) -> Starts:
    """Draw starts with orthonormal rows times each excess added to U off the rows of V, and so many of each shape."""
    small = []
    near = []
    against = []
    for n in np.repeat(SHAPES, seeds):
        target = rng.normal(size=(n, INPUTS))
        U, V, off = start(rng, n, hidden)
        small.append(lanes([(U + s * off, V, target) for s in excesses]))
        even, close, V, off = _near(rng, n, hidden, 0.75)
        near.append(lanes([(close + s * off, V, even) for s in excesses[:2]]))
        even, far, V, _ = _near(rng, n, hidden, -0.3)
        against.append((far, V, even))
    of_digits = []
    for classes in TRIPLES:
        target = whitened(classes)
        U, V, off = start(rng, ROWS, hidden)
        of_digits.append(lanes([(U + s * off, V, target) for s in excesses]))
    stacked = lambda rows: Lanes(*map(np.stack, zip(*rows, strict=True)))
    return Starts(stacked(small), stacked(near), lanes(against), stacked(of_digits))


def start(rng: np.random.Generator, n: int, hidden: int) -> tuple[Values, Values, Values]:
    """Draw a small start, and n orthonormal rows off the rows of V."""
    U = NOISE * rng.normal(size=(n, hidden))
    V = NOISE * rng.normal(size=(INPUTS, hidden))
    return U, V, _off(rng, V, n)


def _near(rng: np.random.Generator, n: int, hidden: int, share: float) -> tuple[Values, ...]:
    """Draw a target of nearly equal singular values, a balanced start at a share of it, and rows off the rows of V.

    The share may be negative: such a start must go through zero.
    """
    left = np.linalg.qr(rng.normal(size=(n, INPUTS)))[0]
    right = np.linalg.qr(rng.normal(size=(INPUTS, INPUTS)))[0]
    frame = np.linalg.qr(rng.normal(size=(hidden, INPUTS)))[0].T
    levels = rng.uniform(1, 1.2, INPUTS)
    # but for noise UVᵀ is the share of the target, and UᵀU = VᵀV
    root = np.sqrt(abs(share) * levels)[:, None] * frame
    U = left @ root + 0.02 * rng.normal(size=(n, hidden))
    V = np.sign(share) * right @ root + 0.02 * rng.normal(size=(INPUTS, hidden))
    return left * levels @ right.T, U, V, _off(rng, V, n)


def _off(rng: np.random.Generator, V: Values, n: int) -> Values:
    """Return n orthonormal rows that are orthogonal to the rows of V, as far as there is room."""
    hidden = V.shape[1]
    frame = np.linalg.qr(np.concatenate([V, rng.normal(size=(hidden - len(V), hidden))]).T)[0]
    rows = np.zeros((n, hidden))
    room = frame[:, len(V) : len(V) + n].T
    rows[: len(room)] = room
    return rows


def lanes(rows: list[tuple[Values, Values, Values]]) -> Lanes:
    """Return starts and targets along one axis, with rows of zeros below, three rows in all."""
    filled = lambda part: np.concatenate([part, np.zeros((ROWS - len(part), part.shape[1]))])
    U, V, Y = zip(*rows, strict=True)
    return Lanes(np.stack(list(map(filled, U))), np.stack(V), np.stack(list(map(filled, Y))))


def whitened(classes: tuple[int, ...]) -> Values:
    """Return the regression of three classes of digits on two whitened principal components, ``(3, 2)``."""
    data = digits(classes)
    x = np.asarray(data.x) - np.asarray(data.x).mean(0)
    left = np.linalg.svd(x, full_matrices=False)[0][:, :INPUTS]
    inputs = np.sqrt(len(x)) * left  # XᵀX/n = I
    return np.asarray(data.y).T @ inputs / len(x)


def imbalances(U: Values, V: Values) -> Values:
    """Return D = UᵀU − VᵀV of each."""
    return imbalance(({"w": V.mT}, {"w": U}))[0]


def follow(
    start: tuple[kit.Values, kit.Values],
    target: kit.Values,
    readings: kit.Values,
    kind: jax.Array | int = LINEAR,
) -> FlowPath:
    """Follow the flow on ½‖Y − U σ(Vᵀ)‖², with readings of log R_0/R.

    The inputs are the unit vectors, as whitening makes them. The kind of σ is a number, so that one program serves all.
    """

    def risk(params: tuple[jax.Array, jax.Array]) -> jax.Array:
        u, v = params
        bent = jnp.where(kind == TANH, jnp.tanh(v), jnp.maximum(v, 0))
        hidden = jnp.where(kind == LINEAR, v, bent)
        return jnp.sum((target - u @ hidden.T) ** 2) / 2

    return flow(
        risk,
        start,
        readings,
        "log-risk",
        observe={"params": lambda params: params},
        rtol=1e-10,
        atol=1e-14,
        max_steps=20_000,
    )


def readings(fall: float) -> Values:
    """Return falls of log R at which flows are read."""
    return np.concatenate([[0.25, 0.5], np.linspace(1, fall, 36)])


def flows(groups: list[Lanes], kinds: list[int], at: Values) -> tuple[Values, Values, Values]:
    """Follow the flows of all groups in one program, with an activation for each group.

    Return times of the readings, what D has changed by then, and whether the flow arrived, of all flows in a row.
    """
    counts = [int(np.prod(group.U.shape[:-2])) for group in groups]
    flat = lambda part: part.reshape(-1, *part.shape[-2:])
    U, V, Y = (np.concatenate(list(map(flat, parts))) for parts in zip(*groups, strict=True))
    lane = lambda lane: follow((lane[0], lane[1]), lane[2], at, lane[3])
    every = kit.compiled(lambda *lanes: jax.lax.map(lane, lanes))
    paths = every(U, V, Y, np.repeat(kinds, counts))
    change = imbalances(*map(np.asarray, paths.observed["params"])) - imbalances(U, V)[:, None]
    return np.expm1(np.asarray(paths.log_time)), change, np.asarray(paths.ok)
