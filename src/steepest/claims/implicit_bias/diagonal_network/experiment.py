"""One point of the diagonal network: where the flow ends, from one scale of its start."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from steepest import kit
from steepest.dynamics import flow
from steepest.kit.points import agreement, equal
from steepest.measurement.quantities import relative_distance
from steepest.nn.data import sparse_regression
from steepest.nn.losses import mean_risk, squared
from steepest.nn.networks import diagonal, diagonal_weights
from steepest.programs import hypentropy_interpolation, min_norm_interpolation

# the distance to which the flow is compared with the program; below it all distances are one
RESOLVED = 1e-4
ENDS = {"sparse": "ℓ1", "weighted": "weighted ℓ2"}


class Setting(NamedTuple):
    """Regression problems and shapes of the start, one a seed."""

    x: kit.Values  # (seeds, n, d)
    y: kit.Values  # (seeds, n)
    shape: kit.Values  # θ_0, (seeds, d)


@dataclass(frozen=True)
class DiagonalPoint(kit.Point):
    """Distances of the flow's end to the ℓ1 and to the weighted ℓ2 solution, over α and the number of nonzeros."""

    alphas: kit.Positive
    n: kit.Count
    dimension: kit.Count
    nonzero: kit.Count
    noise: kit.NonNegative
    shape_spread: kit.NonNegative
    seeds: kit.Seeds
    horizon: kit.Positive

    batched = ("alphas", "nonzero")
    diagram = {"alphas": "log:1e-3:1e2:16", "nonzero": "1,2,3,4,6,8,10"}
    base = {"alphas": (0.1,)}
    contours = {"log_ratio_predicted": (0.0, "as far from ℓ1 as from weighted ℓ2")}
    diagram_remarks = (
        "Distances are relative; those below 10⁻⁴, to which flow and program are compared, count as 10⁻⁴.",
        "The line is where the program's solution is as far from the ℓ1 as from the weighted ℓ2 solution, in the "
        "geometric mean over the regression problems.",
    )

    def setting(self, key):
        return jax.jit(self.draw)(key)

    def draw(self, key: kit.Key) -> Setting:
        """Draw the regression problems and the shapes of the start."""
        for_data, for_shape = jax.random.split(key)
        one = lambda k: sparse_regression(k, self.n, self.dimension, self.nonzero, self.noise)
        x, y = jax.vmap(lambda k: (one(k).x, one(k).y))(kit.keys(for_data, self.seeds))
        normal = jax.random.normal(for_shape, (self.seeds, self.dimension))
        return Setting(x, y, jnp.exp(self.shape_spread * normal))

    def predict(self, setting):
        return predict_ends(setting, (self.alphas,))

    def observe(self, setting, key):
        beta, risk, _ = self.ends(setting, key, jnp.array([self.alphas]))
        return {"beta": beta, "risk": risk, "rank": jax.vmap(jnp.linalg.matrix_rank)(setting.x)}

    def ends(
        self, setting: Setting, key: kit.Key, alphas: Float[kit.Values, " alphas"]
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return where the flow ends, ``(seeds, alphas, d)``, the risk there, and the solver's steps."""
        times = np.linspace(self.horizon / 20, self.horizon, 20)

        def follow(x: jax.Array, y: jax.Array, shape: jax.Array, alpha: jax.Array) -> tuple:
            # What is integrated is the displacement from the start: the solver's relative tolerance is then relative to
            # what moves, and not to θ ≈ α, which at large α would hold the flow up above the floor.
            net = diagonal(self.dimension, alpha, shape)
            start = net.init(key)
            moved_by = lambda moved: jax.tree.map(jnp.add, start, moved)
            risk = mean_risk(squared, lambda moved, x: net.apply(moved_by(moved), x), x, y)
            still = jax.tree.map(jnp.zeros_like, start)
            # Weights off the support shrink far below α, and their logarithms are the dual variables.
            settings = {
                "clock": "log",
                "solver": "stiff",
                "rtol": 1e-6,
                "atol": jnp.minimum(1e-10, 1e-5 * alpha),
                "floor": 1e-16,
            }
            path = flow(risk, still, times, max_steps=20_000, **settings)
            return diagonal_weights(moved_by(path.params)), path.steps

        @jax.jit
        def run(setting: Setting, alphas: jax.Array) -> tuple:
            over_alphas = jax.vmap(follow, (None, None, None, 0))
            beta, steps = jax.vmap(over_alphas, (0, 0, 0, None))(*setting, alphas)
            residual = jnp.einsum("snd,sad->san", setting.x, beta) - setting.y[:, None]
            return beta, 0.5 * (residual**2).mean(-1), steps

        return run(setting, alphas)

    def run_conditions(self, observed):
        yield enough_unknowns(observed["rank"].min(), self.n)
        yield flow_has_ended(observed["risk"])

    def judge(self, predicted, observed):
        beta = observed["beta"][:, 0]
        program = predicted["beta"][:, 0]
        distance = relative_distance(beta, program)
        checks = [
            agreement("program_distance", distance, RESOLVED, label="distance to the program")
        ]
        logs = {
            end: [log_distance(point, predicted[end]) for point in (program, beta)] for end in ENDS
        }
        for end, norm in ENDS.items():
            checks.append(paired(f"log_{end}_distance", f"log₁₀ distance to {norm}", *logs[end]))
        label = "log₁₀ of distance to ℓ1 / distance to weighted ℓ2"
        ratio = np.subtract(logs["sparse"], logs["weighted"])
        yield from checks
        yield paired("log_ratio", label, *ratio)


def enough_unknowns(rank: float, n: int) -> kit.Hypothesis:
    """Check that all equations can be met: more of them than unknowns have no interpolant, unless by accident."""
    return kit.assume("smallest rank of X", rank, ">=", n, "choose --n at most --dimension")


def flow_has_ended(risk: np.ndarray) -> kit.Hypothesis:
    """Check that every flow has reached an interpolant."""
    return kit.assume("largest risk at the end", risk.max(), "<=", 1e-12, "raise --horizon")


def predict_ends(setting: Setting, alphas: tuple[float, ...]) -> kit.Prediction:
    """Return the program's interpolant at every scale, and those of the two limits."""
    problems = list(zip(*map(np.asarray, setting), strict=True))
    interpolants = [
        # the flow from θ₊ = θ₋ = αθ₀ minimizes the hypentropy of scale α²θ₀²
        [hypentropy_interpolation(x, y, (alpha * shape) ** 2).beta for alpha in alphas]
        for x, y, shape in problems
    ]
    sparse, weighted = zip(*(limits(*problem) for problem in problems), strict=True)
    room = [
        room_of_norm(first[0], ends, shape, alphas[0])
        for first, ends, (_, _, shape) in zip(interpolants, sparse, problems, strict=True)
    ]
    return kit.Prediction(
        room=("seed", room),
        beta=("seed alpha unknown", interpolants),
        sparse=("seed unknown", np.array(sparse)),
        weighted=("seed unknown", np.array(weighted)),
    )


def room_of_norm(
    beta: Float[np.ndarray, " d"],
    sparse: Float[np.ndarray, " d"],
    shape: Float[np.ndarray, " d"],
    alpha: float,
) -> float:
    """Return by how much, relatively, the program's ℓ1 norm may exceed the least one.

    Where every |β_i| ≫ α²θ₀², Q = L‖β‖₁ + E(β) with L = log 1/α² and E = Σ |β|(log |β|/θ₀² − 1). Since Q is least at
    the program's β, its norm exceeds that of the sparse one by (E(sparse) − E(β))/L at most. Nothing is said from α = 1
    on, where L is not positive.
    """
    if alpha >= 1:
        return float("inf")
    # |β| log|β| is zero at zero
    size = lambda end: np.maximum(np.abs(end), 1e-300)
    entropy = lambda end: float((np.abs(end) * (np.log(size(end) / shape**2) - 1)).sum())
    return (entropy(sparse) - entropy(beta)) / (np.log(alpha**-2.0) * np.abs(sparse).sum())


def limits(
    x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"], shape: Float[np.ndarray, " d"]
) -> tuple[np.ndarray, np.ndarray]:
    """The interpolants of least ℓ1 norm and of least ℓ2 norm with weights 1/θ₀², kept: no α changes them."""
    return _limits(x.tobytes(), y.tobytes(), shape.tobytes(), str(x.dtype), len(y))


@lru_cache(4096)
def _limits(
    x: bytes, y: bytes, shape: bytes, dtype: str, rows: int
) -> tuple[np.ndarray, np.ndarray]:
    inputs, targets, start = (np.frombuffer(part, dtype) for part in (x, y, shape))
    inputs = inputs.reshape(rows, -1)
    # the limits of the hypentropy: ‖β‖₁ at small α and ‖β/θ₀‖² at large ones
    interpolants = [
        min_norm_interpolation(inputs, targets, norm).beta for norm in ("l1", start**-2.0)
    ]
    for beta in interpolants:
        beta.setflags(write=False)
    return interpolants[0], interpolants[1]


def log_distance(
    beta: Float[np.ndarray, "seeds d"], end: Float[np.ndarray, "seeds d"]
) -> np.ndarray:
    """The logarithm (base ten) of the relative distance, shape ``(seeds,)``."""
    return np.log10(np.maximum(relative_distance(beta, end), RESOLVED))


def paired(
    id: str,
    label: str,
    predicted: Float[np.ndarray, " seeds"],
    measured: Float[np.ndarray, " seeds"],
) -> kit.Check:
    """Equal means to 0.05, of problems that are the same on both sides: their scatter is none of the disagreement."""
    centre = predicted.mean()
    return equal(id, centre, centre + (measured - predicted), 0.05, absolute=True, label=label)
