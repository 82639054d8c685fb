"""The experiments of imbalance-conserved: flows and descents on ½‖Y − UVᵀ‖²."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.dynamics import FlowPath, flow
from steepest.kit.points import equal

LINEAR, TANH, RELU = range(3)  # activations of the hidden layer


def follow(
    start: tuple[kit.Values, kit.Values],
    target: kit.Values,
    readings: kit.Values,
    kind: jax.Array | int = LINEAR,
) -> FlowPath:
    """Follow the flow on ½‖Y − U σ(Vᵀ)‖² on the log-risk clock, so that readings are falls of log R.

    Args:
        start: U and V, shapes ``(n, h)`` and ``(m, h)``.
        target: Y, ``(n, m)``; the inputs are the unit vectors, as whitening makes them.
        readings: of log R_0/R.
        kind: σ: LINEAR, TANH or RELU, a number so that one program serves all.
    """

    def risk(params: tuple[jax.Array, jax.Array]) -> jax.Array:
        u, v = params
        hidden = jnp.where(
            kind == LINEAR, v, jnp.where(kind == TANH, jnp.tanh(v), jnp.maximum(v, 0))
        )
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


def descend_with(
    U: np.ndarray, V: np.ndarray, Y: np.ndarray, lr: float, time: float
) -> tuple[np.ndarray, np.ndarray]:
    """Descend with a fixed step for a time, and return how D = UᵀU − VᵀV moves, as measured and as summed up.

    Args:
        U: starts, ``(lanes, n, h)``.
        V: starts, ``(lanes, m, h)``.
        Y: targets, ``(lanes, n, m)``.
        lr: η.
        time: η times the number of steps.

    Returns:
        ``(moved, summed)``: D at the end minus D at the start, and η² Σ (G_UᵀG_U − G_VᵀG_V) over the gradients of all
        steps, shape ``(lanes, h, h)`` each.
    """
    start = _gram(U) - _gram(V)
    summed = np.zeros_like(start)
    for _ in range(round(time / lr)):
        error = Y - U @ _transposed(V)
        up = error @ V  # −∂R/∂U
        down = _transposed(error) @ U  # −∂R/∂V
        # the terms of order η, UᵀEV + VᵀEᵀU, are the same in UᵀU and VᵀV and leave D
        summed += lr**2 * (_gram(up) - _gram(down))
        U = U + lr * up
        V = V + lr * down
    return _gram(U) - _gram(V) - start, summed


def descend_adaptively(
    U: np.ndarray, V: np.ndarray, Y: np.ndarray, steps: int, floor: float
) -> tuple[np.ndarray, np.ndarray]:
    """Descend with steps η = 1/2L, L = σ_max²(U) + σ_max²(V) + 2‖E‖_F, until R is at the floor.

    Args:
        U: starts, ``(lanes, n, h)``.
        V: starts, ``(lanes, m, h)``.
        Y: targets, ``(lanes, n, m)``.
        steps: at most so many.
        floor: of R; below it rounding decides.

    Returns:
        ``(least, taken)``: the least of (1 − R_{t+1}/R_t)/(η_t c_t) over the steps, with c = σ_n²(U) + σ_m²(V), and the
        number of steps to the floor; ``(lanes,)`` each.
    """
    least = np.full(len(U), np.inf)
    taken = np.full(len(U), steps)
    for step in range(steps):
        error = Y - U @ _transposed(V)
        risk = (error**2).sum((1, 2)) / 2
        going = risk > floor
        taken = np.where(going, taken, np.minimum(taken, step))
        if not going.any():
            break
        levels_u = np.linalg.svd(U, compute_uv=False)
        levels_v = np.linalg.svd(V, compute_uv=False)
        # ‖E‖_F = √(2R)
        steepest = levels_u[:, 0] ** 2 + levels_v[:, 0] ** 2 + 2 * np.sqrt(2 * risk)
        lr = 1 / (2 * steepest)[:, None, None]
        slowest = levels_u[:, -1] ** 2 + levels_v[:, -1] ** 2
        U, V = U + lr * error @ V, V + lr * _transposed(error) @ U
        after = ((Y - U @ _transposed(V)) ** 2).sum((1, 2)) / 2
        ratio = (1 - after / np.maximum(risk, 1e-300)) / (lr[:, 0, 0] * slowest)
        least = np.where(going, np.minimum(least, ratio), least)
    return least, taken


def descend_scalars(
    imbalances: kit.Values, product: float, target: float, rates: kit.Values, steps: float
) -> kit.Values:
    """Descend on (y − uv)²/2 with fixed steps, and return the share of δ = u² − v² that is lost.

    Args:
        imbalances: δ at the start, positive.
        product: uv at the start.
        target: y.
        rates: η.
        steps: so many, of each η.

    Returns:
        1 − δ/δ_0, shape ``(imbalances, rates)``.
    """
    delta = np.asarray(imbalances)[:, None] + 0 * rates
    # u² − v² = δ and uv = p: u² + v² = √(δ² + 4p²)
    u = np.sqrt((np.hypot(delta, 2 * product) + delta) / 2)
    v = product / u
    for _ in range(round(steps)):
        move = rates * (target - u * v)
        ahead = u + move * v
        v = v + move * u
        u = ahead
    return 1 - (u**2 - v**2) / delta


def scalar_start(imbalance: jax.Array | float, product: jax.Array | float) -> tuple:
    """Return the positive u and v with u² − v² = δ and uv = p, δ ≥ 0."""
    size = jnp.hypot(imbalance, 2 * product)  # u² + v²
    u = jnp.sqrt((size + imbalance) / 2)
    return u, product / u


@dataclass(frozen=True)
class ScalarPoint(kit.Point):
    """The rate at the end of the flow of one product u v to y, over imbalance and target."""

    imbalances: kit.NonNegative
    targets: kit.Positive
    product: kit.Positive
    fall: kit.Positive

    batched = ("imbalances", "targets")
    diagram = {"imbalances": "linear:0:5:11", "targets": "linear:0.2:3:11"}
    labels = {"late_rate": "rate of y − uv at the end"}
    diagram_remarks = (
        "The lines are where √(δ² + 4y²) is 1, 2, …, 6. From the same product at the start, δ = u² − v² alone makes "
        "the flow faster.",
    )

    def predict(self, setting):
        # (y − uv)' = −(u² + v²)(y − uv), and u² + v² = √(δ² + 4y²) at the end
        return kit.Prediction(rate=np.hypot(self.imbalances, 2 * self.targets))

    def observe(self, setting, key):
        u, v = scalar_start(self.imbalances, self.product)
        readings = jnp.array([0.8, 1.0]) * self.fall
        path = follow(
            (jnp.reshape(u, (1, 1)), jnp.reshape(v, (1, 1))),
            jnp.reshape(jnp.asarray(self.targets), (1, 1)),
            readings,
        )
        # R is the square of the residual: log R falls twice as fast
        rate = (readings[1] - readings[0]) / 2 / (path.time[1] - path.time[0])
        return {"rate": rate, "arrived": path.ok}

    def run_conditions(self, observed):
        yield kit.assume("the flow arrived", float(observed["arrived"]), "==", 1)
        yield kit.assume("|log y/p|", abs(np.log(self.targets / self.product)), ">", 0)

    def judge(self, predicted, observed):
        yield equal(
            "late_rate",
            predicted["rate"],
            observed["rate"],
            1e-4,
            label="rate of y − uv at the end",
        )

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"imbalances", "targets"}:
            return ()
        curves = []
        for rate in range(1, 7):
            imbalances = np.linspace(0, min(rate, 5), 60)
            targets = np.sqrt(np.maximum(rate**2 - imbalances**2, 0)) / 2
            inside = (targets >= 0.2) & (targets <= 3)
            if x == "imbalances":
                curve = kit.predicted_curve(imbalances[inside], targets[inside], f"rate {rate}")
            else:
                curve = kit.predicted_curve(targets[inside], imbalances[inside], f"rate {rate}")
            curves.append(curve)
        return tuple(curves)


def _transposed(matrices: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrices, -1, -2)


def _gram(matrices: np.ndarray) -> np.ndarray:
    """Return ``AᵀA`` of each."""
    return _transposed(matrices) @ matrices
