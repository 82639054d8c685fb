"""The experiments of factorization-landscape: critical points, descents, and the time to leave a saddle."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import descend
from steepest.kit.points import Arrays, equal
from steepest.landscapes import factorization_risk

PATIENCE = 200_000  # steps after which such a descent is given up
DIMENSION = 12  # n, of these descents


def critical_points(
    matrix: np.ndarray, columns: int, starts: np.ndarray, rounds: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Search for critical points of ¼‖XXᵀ − M‖², of any kind, by damped Gauss–Newton steps on ½‖∇f‖².

    Args:
        matrix: M, shape ``(n, n)``.
        columns: r.
        starts: shape ``(starts, n r)``.
        rounds: steps of each.

    Returns:
        ``(value, gradient, lowest)`` at the ends, shape ``(starts,)`` each: f, ‖∇f‖ and the lowest curvature.
    """
    n = len(matrix)
    eye = np.eye(n)
    columns_eye = np.eye(columns)

    def gradient(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        residual = x @ np.swapaxes(x, 1, 2) - matrix  # ∇f = (XXᵀ − M)X
        return residual, (residual @ x).reshape(len(x), -1)

    def curvature(x: np.ndarray, residual: np.ndarray) -> np.ndarray:
        # H[(i, a), (j, b)] = X_ib X_ja + δ_ij (XᵀX)_ab + (XXᵀ − M)_ij δ_ab, see factorization_risk
        return (
            np.einsum("sib,sja->siajb", x, x)
            + np.einsum("ij,sab->siajb", eye, np.swapaxes(x, 1, 2) @ x)
            + np.einsum("sij,ab->siajb", residual, columns_eye)
        ).reshape(len(x), n * columns, n * columns)

    x = starts.reshape(-1, n, columns).copy()
    damping = np.ones(len(x))
    residual, slope = gradient(x)
    for _ in range(rounds):
        hessian = curvature(x, residual)
        # ∇f has the Jacobian H: damped Gauss–Newton steps solve (H² + μI) δ = H∇f
        normal = hessian @ hessian + damping[:, None, None] * np.eye(n * columns)
        move = np.linalg.solve(normal, np.einsum("sij,sj->si", hessian, slope)[..., None])
        tried = x - move.reshape(x.shape)
        residual_tried, slope_tried = gradient(tried)
        better = np.linalg.norm(slope_tried, axis=1) < np.linalg.norm(slope, axis=1)
        x[better] = tried[better]
        residual[better] = residual_tried[better]
        slope[better] = slope_tried[better]
        damping = np.clip(np.where(better, damping / 3, damping * 4), 1e-8, 1e6)
    lowest = np.linalg.eigvalsh(curvature(x, residual))[:, 0]
    return (residual**2).sum((1, 2)) / 4, np.linalg.norm(slope, axis=1), lowest


def final_risks(matrices: kit.Values, starts: kit.Values, steps: int) -> jax.Array:
    """Return ¼‖XXᵀ − M‖² after descents with step size ½/λ_1, for each matrix and start.

    Half of the step that is stable at the minimum, where the largest curvature is 2λ_1.

    Args:
        matrices: M, shape ``(matrices, n, n)``.
        starts: X_0, shape ``(matrices, starts, n, r)``.
        steps: of each descent.
    """

    def one(matrix: jax.Array, start: jax.Array) -> jax.Array:
        rate = 0.5 / jnp.linalg.norm(matrix, 2)
        return descend(
            factorization_risk(matrix), start, optax.sgd(rate), steps, record=steps
        ).risk[-1]

    over_starts = jax.vmap(one, in_axes=(None, 0))
    return jax.vmap(over_starts)(jnp.asarray(matrices), jnp.asarray(starts))


def escape(
    direction: jax.Array, gap: jax.Array | float, radius: jax.Array | float, pace: float = 0.01
) -> tuple[jax.Array, jax.Array]:
    """Leave the saddle at the second eigenvector of M = diag(1 + gap, 1, 0, …), r = 1, by descent.

    Args:
        direction: a unit vector, shape ``(n,)``: the start is e_2 + radius · direction.
        gap: λ_1 − λ_2.
        radius: distance of the start from the saddle.
        pace: η times the larger eigenvalue.

    Returns:
        the time η t until the first coordinate is as large as the second, and the same in the logarithm of the ratio
        at the start, ``log(x_2/x_1)``.
    """
    levels = jnp.zeros(DIMENSION).at[0].set(1.0 + gap).at[1].set(1.0)
    lr = pace / (1 + gap)
    # The square of the matrix's distance needs no matrix: ∇f = ‖x‖² x − M x.
    move = lambda x: x - lr * ((x @ x) * x - levels * x)
    # by the flow x_i' = (λ_i − ‖x‖²) x_i it falls at the rate λ_1 − λ_2, without ‖x‖²
    ratio = lambda x: jnp.log(jnp.abs(x[1] / x[0]))
    start = jnp.zeros(DIMENSION).at[1].set(1.0) + radius * direction

    def body(state: tuple) -> tuple:
        x, steps, _ = state
        return move(x), steps + 1, ratio(x)

    going = lambda state: (ratio(state[0]) > 0) & (state[1] < PATIENCE)
    x, steps, before = jax.lax.while_loop(going, body, (start, 0, jnp.inf))
    after = ratio(x)
    # within the last step the logarithm falls evenly, to first order
    late = jnp.where(after > 0, jnp.nan, after / (before - after))
    return lr * (steps + late), ratio(start)


@dataclass(frozen=True)
class FactorizationPointOfDiagram(kit.Point):
    """The time to leave the saddle at the second eigenvector, over the gap and the distance of the start from it."""

    gaps: kit.Positive
    radii: kit.Positive
    escapes: kit.Seeds
    pace: kit.Positive

    batched = ("gaps", "radii")
    diagram = {"gaps": "log:0.05:2:14", "radii": "log:1e-8:0.1:14"}
    labels = {"log_time": "log₁₀ of the time to leave", "escape_time": "time / predicted time"}
    diagram_remarks = (
        "The dashed lines are where log(1/radius)/gap is 3, 10, 30 and 100: near a saddle that is flat, or very near "
        "to any, descent waits.",
    )

    def predict(self, setting):
        return kit.Prediction(rate=self.gaps, time=np.log(1 / self.radii) / self.gaps)

    def observe(self, setting, key):
        leave = lambda seed: escape(unit(seed), self.gaps, self.radii, self.pace)
        time, ahead = jax.vmap(leave)(kit.keys(key, self.escapes))
        return {"time": time, "ahead": ahead}

    def judge(self, predicted, observed):
        yield equal(
            "escape_time",
            observed["ahead"] / float(predicted["rate"]),
            observed["time"],
            # descent is late by half of ηgap, below pace/2
            0.006,
            label="time to leave the saddle, relative to log(x₂/x₁)/gap",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"log_time": float(np.log10(observed["time"]).mean())}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"gaps", "radii"}:
            return ()
        radii = np.geomspace(1e-8, 0.1, 60)
        curves = []
        for time in (3.0, 10.0, 30.0, 100.0):
            gaps = np.log(1 / radii) / time
            ends = (gaps, radii) if x == "gaps" else (radii, gaps)
            curves.append(kit.predicted_curve(*ends, f"time {time:g}"))
        return tuple(curves)


def unit(key: kit.Key) -> jax.Array:
    """Draw a unit vector, shape ``(DIMENSION,)``."""
    noise = jax.random.normal(key, (DIMENSION,))
    return noise / jnp.linalg.norm(noise)
