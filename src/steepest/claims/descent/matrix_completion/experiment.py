"""Descent from small starts on the known entries of matrices of rank one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steepest import kit
from steepest.claims.descent.matrix_completion.theory import chance_connected, expected_entries
from steepest.kit.points import equal

LR = 0.5
"""Step of descent, by the largest sum of known absolute entries in a row."""
DONE = 1e-2
"""Relative error of the whole matrix up to which it counts as completed."""
SETTLED = 1e-6
"""Relative length of a step from which descent has nothing left to do."""


class Problems(NamedTuple):
    """Matrices uuᵀ of one size, one a draw, the orders in which their entries become known, and starts of size one."""

    u: kit.Values  # of length one, (draws, n)
    place: kit.Values  # of each entry in a random order, symmetric, (draws, n, n)
    row_last: kit.Values  # the same where the entries of the last row become known after all others
    start: kit.Values  # (draws, n)


def draw_problems(
    rng: np.random.Generator, draws: int, size: int, contrast: float, spike: float = 0.0
) -> Problems:
    """Draw matrices whose rows have random signs and sizes that differ by a factor, and their orders and starts."""
    u = rng.choice([-1.0, 1.0], (draws, size)) * contrast ** rng.uniform(-0.5, 0.5, (draws, size))
    u[:, 0] += spike * np.sign(u[:, 0])
    rows, columns = np.triu_indices(size)
    at_random = rng.permuted(np.tile(np.arange(rows.size), (draws, 1)), axis=1)
    start = rng.normal(size=(draws, size)) / np.sqrt(size)
    place = np.stack([_mirrored(order, size) for order in at_random])
    delayed = at_random + rows.size * (columns == size - 1)
    ranks = delayed.argsort(1).argsort(1)
    row_last = np.stack([_mirrored(order, size) for order in ranks])
    return Problems(u / np.linalg.norm(u, axis=1, keepdims=True), place, row_last, start)


def _mirrored(order: NDArray, size: int) -> NDArray:
    """Return places in an order of the entries on and above the diagonal, and of their mirror images."""
    place = np.zeros((size, size))
    rows, columns = np.triu_indices(size)
    place[rows, columns] = order
    place[columns, rows] = order
    return place


def completes(
    u: jax.Array, place: jax.Array, start: jax.Array, known: jax.Array | int, steps: jax.Array | int
) -> jax.Array:
    """Descend on ``¼‖P(xxᵀ − uuᵀ)‖²``, P the known entries, and return whether all entries are met at the end.

    It ends with its steps, when x stands still, or when all entries are met: hidden ones decide only how long we watch.

    Args:
        u: of length one, ``(n,)``.
        place: of each entry in the order in which they become known.
        start: x at the beginning.
        known: how many entries on and above the diagonal are known.
        steps: of descent, at most.
    """
    mask = (place < known).astype(u.dtype)
    shown = mask * jnp.outer(u, u)
    lr = LR / jnp.abs(shown).sum(1).max()

    def going(state: tuple) -> jax.Array:
        _, step, error, moved = state
        # NaN stops too
        return (step < steps) & (error > DONE) & (moved > SETTLED)

    def move(state: tuple) -> tuple:
        x, step, _, _ = state
        # −∇: Σ_j P_ij (u_iu_j − x_ix_j) x_j, without the matrix xxᵀ
        change = lr * (shown @ x - x * (mask @ (x * x)))
        x = x + change
        # ‖xxᵀ − uuᵀ‖², as ‖u‖ = 1
        square = (x @ x) ** 2 - 2 * (x @ u) ** 2 + 1
        moved = jnp.abs(change).max() / jnp.abs(x).max()
        return x, step + 1, jnp.sqrt(jnp.maximum(square, 0)), moved

    far = jnp.asarray(jnp.inf, u.dtype)
    _, _, error, _ = jax.lax.while_loop(going, move, (start, 0, far, far))
    return error <= DONE


def complete_all(
    problems: Sequence[Problems], densities: Sequence[float], scale: float, steps: int
) -> kit.Observation:
    """Descend on every matrix with every number of known entries: also from large starts, and with one row last."""
    names = ("completes", "completes_from_large", "completes_row_last")
    by_size = [
        np.asarray(kit.compiled(_complete_size)(of_size, np.array(densities), scale, steps))
        for of_size in problems
    ]
    worlds = np.moveaxis(np.stack(by_size), (0, 1, 2, 3), (2, 0, 1, 3))
    dims = "draw size density"
    return kit.seen(**{name: (dims, world) for name, world in zip(names, worlds, strict=True)})


def _complete_size(
    problems: Problems, densities: jax.Array, scale: jax.Array, steps: jax.Array
) -> jax.Array:
    """Return which matrices of one size are completed, ``(worlds, draws, densities)``."""
    size = problems.u.shape[-1]
    counts = jnp.round(densities * size)

    def one(case: tuple) -> jax.Array:
        u, place, start = case
        return jax.lax.map(lambda known: completes(u, place, start, known, steps), counts)

    every = lambda place, start: jax.lax.map(one, (problems.u, place, start))
    return jnp.stack(
        [
            every(problems.place, scale * problems.start),
            every(problems.place, problems.start),
            every(problems.row_last, scale * problems.start),
        ]
    )


@dataclass(frozen=True)
class CompletionPoint(kit.Point):
    """The share of matrices of rank one that descent completes, over their size and the number of known entries."""

    sizes: kit.Count
    densities: kit.Positive
    contrast: kit.Positive
    start: kit.Positive
    draws: kit.Seeds
    steps: kit.Count

    precision = "float32"
    batched = ("densities",)
    diagram = {"densities": "linear:0.5:4.5:17", "sizes": "12,20,32,48,80"}
    base = {"draws": 40}
    labels = {"success": "share of matrices completed"}
    diagram_remarks = (
        "The line is ½(log n + γ), the mean number that connects n rows, by n. The share that is predicted at each "
        "point is Gumbel's law exp(−e^(log n − 2m/n)), so that points on the line are judged as well.",
    )

    def setting(self, key):
        """Draw matrices, orders and starts."""
        rng = kit.numpy_generator(key)
        return draw_problems(rng, self.draws, self.sizes, self.contrast)

    def predict(self, setting):
        entries = np.round(self.densities * self.sizes)
        return kit.Prediction(success=float(chance_connected(entries, self.sizes)))

    def observe(self, setting, key):
        entries = jnp.round(self.densities * self.sizes)

        def one(case: tuple) -> jax.Array:
            u, place, start = case
            return completes(u, place, self.start * start, entries, self.steps)

        cases = (setting.u, setting.place, setting.start)
        return {"completes": jax.lax.map(one, tuple(jnp.asarray(part) for part in cases))}

    def judge(self, predicted, observed):
        yield equal(
            "success",
            predicted["success"],
            np.asarray(observed["completes"], float),
            0.25,
            absolute=True,
            label="share of matrices completed",
        )

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"sizes", "densities"}:
            return ()
        sizes = np.geomspace(12, 80, 30)
        line = expected_entries(sizes) / sizes
        ends = (sizes, line) if x == "sizes" else (line, sizes)
        return (kit.predicted_curve(*ends, "½(log n + γ)"),)
