"""The experiment of matrix-completion: descent on the observed entries of a low-rank matrix, from random starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Arrays,
    Check,
    Count,
    Curve,
    Hypothesis,
    Key,
    Point,
    Positive,
    Prediction,
    Seeds,
    Values,
    Within,
    assume,
    equal,
    numpy_generator,
    predicted_curve,
)
from steepest.landscapes import nearest_root

WIDEST = (
    4  # columns of X that there is room for; those beyond the rank start at zero and stay there
)
LR = 0.2  # of momentum descent, for matrices of norm one
MOMENTUM = 0.95
DONE = 1e-2  # relative error from which a matrix counts as completed
FITTED = 1e-5  # relative error on the observed entries from which descent has nothing left to do


class Problems(NamedTuple):
    """Matrices, the order in which their entries are observed, and starts; one a lane."""

    matrix: Values  # M, of norm one, (lanes, n, n)
    place: Values  # of each entry in that order, symmetric, (lanes, n, n)
    start: Values  # X_0, (lanes, n, WIDEST)


def complete(
    matrix: jax.Array,
    place: jax.Array,
    start: jax.Array,
    observed: jax.Array | int,
    steps: jax.Array | int,
) -> tuple:
    """Descend with momentum on ``¼‖P_Ω(XXᵀ − M)‖²/p``, p the share of entries observed in the row with most.

    It ends with its steps, when the observed entries are fitted to FITTED, or when all are met to half of DONE: the
    hidden entries decide only how long we watch.

    Args:
        matrix: M, ``(n, n)``.
        place: of each entry in the order of observation.
        start: X_0, ``(n, columns)``.
        observed: how many entries on and above the diagonal are observed.
        steps: of descent, at most.

    Returns:
        relative error of XXᵀ on all entries and on the observed ones, and X.
    """
    mask = (place < observed).astype(matrix.dtype)
    degrees = mask.sum(1)
    # Few entries are spread unevenly: the step is that of the row which is met most.
    share = degrees.max() / degrees.size

    observed_size = jnp.linalg.norm(mask * matrix)
    size = jnp.linalg.norm(matrix)

    def going(state: tuple) -> jax.Array:
        _, _, step, fit, error = state
        # NaN stops too
        return (step < steps) & (fit > FITTED) & (error > DONE / 2)

    def move(state: tuple) -> tuple:
        x, speed, step, _, _ = state
        residual = x @ x.T - matrix
        shown = mask * residual
        speed = MOMENTUM * speed - LR * shown @ x / share
        fit = jnp.linalg.norm(shown) / observed_size
        return x + speed, speed, step + 1, fit, jnp.linalg.norm(residual) / size

    far = jnp.asarray(jnp.inf)
    begun = (start, jnp.zeros_like(start), 0, far, far)
    x, _, _, fit, _ = jax.lax.while_loop(going, move, begun)
    return jnp.linalg.norm(x @ x.T - matrix) / size, fit, x


class Improvement(NamedTuple):
    """What Ge's argument needs at each X, with Δ to the nearest root of M."""

    ratio: np.ndarray  # ‖ΔΔᵀ‖_Ω²/‖XXᵀ − M‖_Ω²; 3 and less suffice
    direction: np.ndarray  # min(−⟨∇f, Δ⟩, ∇²f[Δ, Δ])/‖ΔΔᵀ‖_Ω²; negative where ±Δ leads down


def improvement(x: np.ndarray, matrix: np.ndarray, mask: np.ndarray) -> Improvement:
    """Return whether the way to the nearest root improves ``f = ¼‖P_Ω(XXᵀ − M)‖²``, for X ``(points, n, r)``.

    ``∇²f[Δ, Δ] = ½‖XΔᵀ + ΔXᵀ‖_Ω² + ⟨XXᵀ − M, ΔΔᵀ⟩_Ω``, which Ge's identity turns into
    ``½‖ΔΔᵀ‖_Ω² − (3/2)‖XXᵀ − M‖_Ω² + 4⟨∇f, Δ⟩``.
    """
    levels, vectors = np.linalg.eigh(matrix)
    rank = x.shape[-1]
    root = vectors[:, -rank:] * np.sqrt(np.maximum(levels[-rank:], 0))
    delta = x - nearest_root(x, np.broadcast_to(root, x.shape))
    outer = delta @ np.swapaxes(delta, -1, -2)
    cross = x @ np.swapaxes(delta, -1, -2)
    residual = mask * (x @ np.swapaxes(x, -1, -2) - matrix)
    size = np.maximum((mask * outer**2).sum((-2, -1)), 1e-300)
    # ⟨∇f, Δ⟩ = ⟨XXᵀ − M, XΔᵀ⟩_Ω, as Ω is symmetric
    along = (residual * cross).sum((-2, -1))
    both = mask * (cross + np.swapaxes(cross, -1, -2)) ** 2
    bend = both.sum((-2, -1)) / 2 + (residual * outer).sum((-2, -1))
    ratio = size / np.maximum((residual**2).sum((-2, -1)), 1e-300)
    return Improvement(ratio, np.minimum(-along, bend) / size)


def draw(rng: np.random.Generator, size: int, rank: int, spike: float) -> np.ndarray:
    """Return UUᵀ of norm one, U Gaussian; a spike is added to one entry of U."""
    factor = rng.normal(size=(size, rank)) / np.sqrt(size)
    factor[0, 0] += spike
    matrix = factor @ factor.T
    return matrix / np.linalg.norm(matrix, 2)


def begin(rng: np.random.Generator, size: int, rank: int) -> np.ndarray:
    """Return a random start with zeros in the columns beyond the rank, ``(n, WIDEST)``."""
    start = np.zeros((size, WIDEST))
    start[:, :rank] = rng.normal(size=(size, rank)) / np.sqrt(size)
    return start


def draw_orders(rng: np.random.Generator, count: int, size: int) -> np.ndarray:
    """Return random orders of the entries on and above the diagonal as places, ``(count, n, n)``."""
    rows, cols = np.triu_indices(size)
    order = rng.permuted(np.tile(np.arange(rows.size), (count, 1)), axis=1)
    places = np.zeros((count, size, size))
    places[:, rows, cols] = order
    places[:, cols, rows] = order
    return places


def threshold(rank: Any, size: float) -> Any:
    """Return r + ½ log n, the observations by n from which descent completes one matrix of two."""
    return rank + np.log(size) / 2


@dataclass(frozen=True)
class CompletionPoint(Point):
    """The share of matrices that descent completes, over the rank and the number of observed entries."""

    ranks: Annotated[int, Within(1, WIDEST)]
    density: Positive
    size: Count
    sets: Seeds
    steps: Count

    batched = ("ranks", "density")
    diagram = {"ranks": "linear:1:4:4", "density": "linear:1:12:23"}
    base = {"sets": 10, "steps": 600}
    labels = {"success": "share of matrices completed"}
    diagram_remarks = (
        "The upper line is r + ½ log n, the lower one the degrees of freedom. From a distance of two to the upper line "
        "theory is judged: all or none. nr⁶ entries are n at rank one, and more than there are from rank two on.",
    )

    def setting(self, key: Key) -> Problems:
        """Draw factors of four columns, of which the experiment takes the first, orders and starts."""
        rng = numpy_generator(key)
        factors = rng.normal(size=(self.sets, self.size, WIDEST)) / np.sqrt(self.size)
        orders = draw_orders(rng, self.sets, self.size)
        starts = np.stack([begin(rng, self.size, WIDEST) for _ in range(self.sets)])
        return Problems(factors, orders, starts)

    def predict(self, setting: Problems) -> Prediction:
        enough = self.density > threshold(self.ranks, self.size)
        return Prediction(success=float(enough))

    def observe(self, setting: Problems, key: Key) -> Mapping[str, jax.Array]:
        used = jnp.arange(WIDEST) < self.ranks
        count = jnp.round(self.density * self.size)

        def one(factor: jax.Array, place: jax.Array, start: jax.Array) -> jax.Array:
            matrix = jnp.where(used, factor, 0.0) @ factor.T
            # of norm about one, as (1 + √(r/n))² is the largest eigenvalue
            matrix = matrix / (1 + jnp.sqrt(self.ranks / self.size)) ** 2
            return complete(matrix, place, jnp.where(used, start, 0.0), count, self.steps)[0]

        return {"error": jax.vmap(one)(*(jnp.asarray(part) for part in setting))}

    def run_conditions(self, observed: Arrays) -> list[Hypothesis]:
        distance = abs(self.density - threshold(self.ranks, self.size))
        return [assume("distance from r + ½ log n", distance, ">=", 2, "it is a crossover")]

    def judge(self, predicted: Prediction, observed: Arrays) -> list[Check]:
        done = (observed["error"] < DONE).astype(float)
        return [
            equal(
                "success",
                predicted["success"],
                done,
                0.25,
                absolute=True,
                label="share of matrices completed",
            )
        ]

    def boundaries(self, x: str, y: str) -> tuple[Curve, ...]:
        if {x, y} != {"ranks", "density"}:
            return ()
        ranks = np.array([1.0, 4.0])
        curves = []
        for total, label in (
            (threshold(ranks, self.size), "r + ½ log n"),
            (ranks - ranks * (ranks - 1) / (2 * self.size), "degrees of freedom"),
        ):
            ends = (ranks, total) if x == "ranks" else (total, ranks)
            curves.append(predicted_curve(*ends, label))
        return tuple(curves)
