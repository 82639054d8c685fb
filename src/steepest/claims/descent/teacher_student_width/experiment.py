"""Descents of a student on the exact risk, and what splitting a neuron does where they got stuck."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest import kit
from steepest.claims.descent._shares import share_at_most
from steepest.kernels import teacher_risk
from steepest.kit.points import Arrays

STUCK = (
    1e-2  # risk above which a run counts as stuck; the lowest level at which one was seen is 0.014
)
MOMENTUM = 0.9
PUSH = 1e-4  # by how much the halves of a split neuron are moved apart


def descend_student(
    start: Float[Array, "m d"], teacher: Float[kit.Values, "k d"], lr: float | Array, steps: int
) -> tuple[Float[Array, "m d"], Float[Array, ""], Float[Array, ""]]:
    """Descend with momentum on the risk of a teacher; return weights, risk and ‖∇R‖ at the end."""

    def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        weights, speed = state
        speed = MOMENTUM * speed - lr * teacher_risk(weights, teacher)[1]
        return (weights + speed, speed), None

    (weights, _), _ = jax.lax.scan(step, (start, jnp.zeros_like(start)), None, length=steps)
    risk, slope = teacher_risk(weights, teacher)
    return weights, risk, jnp.linalg.norm(slope)


def draw_start(
    key: kit.Key, shape: tuple[int, int], width: int | Array, inputs: int | Array
) -> Array:
    """Draw weights N(0, 1/m) of m neurons on the first inputs, in an array that may be larger; the rest is zero.

    No step moves what is zero, so that students of several widths, and teachers of several sizes, share one program.
    """
    rows = jnp.arange(shape[0])[:, None] < width
    columns = jnp.arange(shape[1]) < inputs
    return jnp.where(rows & columns, jax.random.normal(key, shape), 0.0) / jnp.sqrt(width)


def draw_teacher(size: int | Array, inputs: int) -> Float[Array, "inputs inputs"]:
    """Return the teacher I_k, in an array that may be larger."""
    return jnp.diag(jnp.where(jnp.arange(inputs) < size, 1.0, 0.0))


def split_direction(
    weights: Float[np.ndarray, "m d"], neuron: int
) -> tuple[float, Float[np.ndarray, " d"]]:
    r"""Return the direction in which halves of a neuron gain most when they part, and its form uᵀMu.

    Where w splits into w/2 ± s u the output changes by ``2 s² (u·x)² δ(w·x)`` to leading order, so that the risk
    changes by ``2 s² uᵀMu`` with ``M = E[(f − y)(x) x xᵀ δ(w·x)]``. On the hyperplane of w every other neuron v of
    student and teacher (I_k here) gives ``±(a/2π‖w‖)(P + ââᵀ)``, a its projection on it.
    """
    dimension = weights.shape[1]
    length = np.linalg.norm(weights[neuron])
    unit = weights[neuron] / length
    plane = np.eye(dimension) - np.outer(unit, unit)
    form = np.zeros((dimension, dimension))
    # δ(w·x) has mass 1/(√(2π)‖w‖); on the plane E relu(v·x) xxᵀ = (a/√(2π))(P + ââᵀ),
    # and the neuron w itself outputs zero
    for sign, others in ((1.0, np.delete(weights, neuron, 0)), (-1.0, np.eye(dimension))):
        inside = others @ plane
        sizes = np.linalg.norm(inside, axis=1)
        units = inside / np.where(sizes > 0, sizes, 1.0)[:, None]
        form += sign * (sizes.sum() * plane + (sizes * units.T) @ units)  # Σ_v a(P + ââᵀ)
    basis = np.linalg.svd(plane)[0][:, : dimension - 1]
    values, vectors = np.linalg.eigh(basis.T @ form @ basis / (2 * np.pi * length))
    return float(values[0]), basis @ vectors[:, 0]


def split(
    weights: Float[np.ndarray, "m d"], neuron: int, direction: Float[np.ndarray, " d"], push: float
) -> Float[np.ndarray, "m+1 d"]:
    """Return the student with this neuron in two halves, pushed apart along a direction."""
    half = weights[neuron] / 2
    halves = np.stack([half + push * direction, half - push * direction])
    return np.vstack([np.delete(weights, neuron, 0), halves])


@dataclass(frozen=True)
class WidthPoint(kit.Point):
    """The share of students that get stuck, over the teacher's width k and the ratio m/k."""

    teacher: kit.Count
    ratio: kit.Positive
    lr: kit.Positive
    steps: kit.Count
    seeds: kit.Seeds

    batched = ("lr",)
    diagram = {"teacher": "4,5,6,7,8,10,12,15,18", "ratio": "1,1.15,1.3,1.5,2"}
    base = {"seeds": 24}
    labels = {"mean_risk": "mean risk at the end"}
    contours = {"stuck_measured": (0.15, "15 % stuck")}
    diagram_remarks = (
        "Widths are m/k times k, rounded: at k = 15 the ratio 1.15 is 17 neurons. A point holds where at most 15 % of "
        "the students are stuck above 0.01, by the 95 % interval of the share.",
        "The dashed lines are k = 6, from where on minima that are not global are proved to exist for m = k (to k = "
        "20, Safran and Shamir 2018), and m = 2k, the width of the talks.",
    )

    def predict(self, setting):
        return kit.Prediction(most=0.15)

    def observe(self, setting, key):
        width = round(self.ratio * self.teacher)
        teacher = draw_teacher(self.teacher, self.teacher)

        def one(key: kit.Key) -> Array:
            start = draw_start(key, (width, self.teacher), width, self.teacher)
            return descend_student(start, teacher, self.lr, self.steps)[1]

        return {"risk": jax.vmap(one)(kit.keys(key, self.seeds))}

    def run_conditions(self, observed):
        return []

    def judge(self, predicted, observed):
        yield share_at_most(
            "stuck",
            observed["risk"] > STUCK,
            float(predicted["most"]),
            label="share of students that are stuck",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"mean_risk": float(observed["risk"].mean())}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"teacher", "ratio"}:
            return ()
        lines = (
            (np.full(2, 6.0), np.array([0.9, 2.2]), "k = 6"),
            (np.array([3.0, 20.0]), np.full(2, 2.0), "m = 2k"),
        )
        return tuple(
            kit.predicted_curve(*((k, r) if x == "teacher" else (r, k)), label)
            for k, r, label in lines
        )
