"""Growing factorizations and networks of neurons, descents at fixed width, and a point of the diagram."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import Fit, Growth, Trajectory, descend, grow
from steepest.kit.points import Arrays, equal
from steepest.programs import matrix_polar, polar, squared_neurons

SETTLED = 1e-12  # change of the factors, relative, at which alternating least squares stops
MOST = 20_000  # of its rounds


def planted(
    rng: np.random.Generator, rows: int, columns: int, rank: int, strength: float, noise: float
) -> np.ndarray:
    """Return ``rank`` singular pairs of one strength in random directions, plus Gaussian noise."""
    left = np.linalg.qr(rng.normal(size=(rows, rank)))[0]
    right = np.linalg.qr(rng.normal(size=(columns, rank)))[0]
    return strength * left @ right.T + noise * rng.normal(size=(rows, columns))


def grow_factors(y: np.ndarray, penalty: float) -> Growth:
    """Grow the columns of U and V in ½‖Y − UVᵀ‖² + (λ/2)(‖U‖² + ‖V‖²) one pair at a time.

    The fit is alternating ridge regression, each half of which is the minimum over one factor.
    """

    def fit(units: list[Any]) -> Fit:
        if not units:
            return Fit(float((y**2).sum() / 2), y, [])
        u = np.stack([left for (left, _), _ in units], 1)
        v = np.stack([right for (_, right), _ in units], 1)
        ridge = penalty * np.eye(u.shape[1])
        for _ in range(MOST):
            before = u
            v = np.linalg.solve(u.T @ u + ridge, u.T @ y).T  # ∂/∂V = 0: V = YᵀU(UᵀU + λ)⁻¹
            u = np.linalg.solve(v.T @ v + ridge, v.T @ y.T).T
            if np.abs(u - before).max() <= SETTLED * np.abs(u).max():
                break
        residual = y - u @ v.T
        value = ((residual**2).sum() + penalty * ((u**2).sum() + (v**2).sum())) / 2
        kept = [((u[:, j], v[:, j]), 1.0) for j in range(u.shape[1])]
        return Fit(float(value), residual, kept)

    return grow(fit, matrix_polar, penalty, rounds=min(y.shape) + 1)


def grow_neurons(x: np.ndarray, y: np.ndarray, penalty: float) -> Growth:
    """Grow a ReLU network on inputs in the plane; each fit is over the arcs on which its neurons lie."""

    def fit(units: list[Any]) -> Fit:
        directions = np.array([direction for direction, _ in units]).reshape(-1, 2)
        best = squared_neurons(x, y, penalty, directions=directions)
        pairs = list(zip(best.weights, best.signs, strict=True))
        return Fit(best.value, y - best.outputs, pairs)

    # the solver gives residuals to about 1e-7
    return grow(fit, lambda residual: polar(residual, x), penalty, tolerance=1e-6)


def descend_from(
    start: jax.Array, y: jax.Array, penalty: jax.Array | float, steps: int
) -> Trajectory:
    """Descend on the penalized risk from U over V, stacked in an array ``(rows + columns, k)``, with momentum."""
    rows = len(y)

    def risk(factors: tuple[jax.Array, jax.Array]) -> jax.Array:
        u, v = factors
        size = (u**2).sum() + (v**2).sum()
        return (((y - u @ v.T) ** 2).sum() + penalty * size) / 2

    rule = optax.sgd(0.2 / jnp.linalg.norm(y, 2), momentum=0.9)
    return descend(risk, (start[:rows], start[rows:]), rule, steps, record=steps)


def descend_factors(
    y: np.ndarray, penalty: float, widths: np.ndarray, starts: int, steps: int, key: kit.Key
) -> tuple[np.ndarray, np.ndarray]:
    """Descend from random starts at several numbers of columns.

    All have the shape of the widest, and columns of zeros, which no step changes, in place of those that they lack.

    Returns:
        ``(values, polars)``: the penalized risk at the end and the polar there over λ, both ``(widths, starts)``.
    """
    rows, columns = y.shape
    most = int(max(widths))

    def one(width: jax.Array, start: jax.Array) -> tuple[jax.Array, jax.Array]:
        path = descend_from(start * (jnp.arange(most) < width), jnp.asarray(y), penalty, steps)
        u, v = path.params
        return path.risk[-1], jnp.linalg.norm(y - u @ v.T, 2) / penalty

    @kit.compiled
    def every(key: kit.Key) -> tuple[jax.Array, jax.Array]:
        # U and V have norms near √(rows + columns) times this, and their product that of Y: steps are stable there
        size = jnp.sqrt(jnp.linalg.norm(y, 2) / (rows + columns))
        noise = size * jax.random.normal(key, (starts, rows + columns, most))
        of_width = jax.vmap(one, (None, 0))
        return jax.lax.map(lambda width: of_width(width, noise), jnp.asarray(widths))

    values, polars = every(key)
    return np.asarray(values), np.asarray(polars)


@dataclass(frozen=True)
class CertificatePoint(kit.Point):
    """How many columns a descent on all of them keeps, over the penalty and the noise around a matrix of rank two."""

    penalty: kit.Positive
    noise: kit.NonNegative
    rank: kit.Count
    strength: kit.NonNegative
    rows: kit.Count
    columns: kit.Count
    steps: kit.Count

    batched = ("penalty", "noise")
    diagram = {"penalty": "linear:0.5:8:16", "noise": "linear:0:2:9"}
    labels = {"polar": "polar at the end / λ"}
    diagram_remarks = (
        "Descents start with all columns, at random. They keep as many as there are singular values above λ, and end "
        "at a polar of λ. Above the noise's largest singular value, about 5 times its size, and below the strength, "
        "6, that is the planted rank, 2.",
        "Where a singular value is within 2 % of λ descent is slow, and the point out of range; so is a point where "
        "none is above λ.",
    )

    def setting(self, key):
        """Return Y."""
        rng = kit.numpy_generator(key)
        return planted(rng, self.rows, self.columns, self.rank, self.strength, self.noise)

    def predict(self, setting):
        # ‖U‖² + ‖V‖² is at least twice the nuclear norm of UVᵀ: singular values fall by λ
        spectrum = np.linalg.svd(setting, compute_uv=False)
        return kit.Prediction(columns=float((spectrum > self.penalty).sum()))

    def observe(self, setting, key):
        y = jnp.asarray(setting)
        most = min(self.rows, self.columns)
        start = jax.random.normal(key, (self.rows + self.columns, most))
        u, v = descend_from(start, y, self.penalty, self.steps).params
        return {
            "kept": jnp.linalg.svd(u @ v.T, compute_uv=False) / self.penalty,
            "spectrum": jnp.linalg.svd(y, compute_uv=False) / self.penalty,
            "polar": jnp.linalg.norm(y - u @ v.T, 2) / self.penalty,
        }

    def run_conditions(self, observed):
        spectrum = observed["spectrum"]
        nearest = np.abs(spectrum - 1).min()
        yield kit.assume("largest singular value / λ", spectrum[0], ">", 1, "lower --penalty")
        yield kit.assume("distance of a singular value to λ, relative", nearest, ">", 0.02)

    def judge(self, predicted, observed):
        yield equal(
            "columns",
            float(predicted["columns"]),
            float(_kept(observed)),
            0.1,
            absolute=True,
            label="columns kept",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"polar": float(observed["polar"])}


def _kept(observed: Arrays) -> int:
    """Return the rank of a descent's end: singular values above a thousandth of λ."""
    return int((observed["kept"] > 1e-3).sum())
