"""Distances of the inputs from the decision boundary: linearized, from above by an attack, from below by Lipschitz."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement._chain import activation_of, chain, compose, lipschitz_bound
from steepest.measurement._context import Context
from steepest.measurement._examples import margins_of, median
from steepest.measurement._report import Reading
from steepest.measurement._sample import sample
from steepest.measurement.adapters import Dense, Subject

EXAMPLES = 200
RIVALS = 9  # other classes that are looked at, those with the largest outputs at the example
STEPS = 30  # of the attack
OVERSHOOT = 0.02  # of every step, past the linearized boundary
HALVINGS = 30  # of the segment between an example and the attacked point
NEIGHBOURS = 2  # nearest examples with another output that the second attack starts from
ROUNDS = 6  # of that attack
COARSE = 12  # halvings in each of these
DAMPING = 0.3  # share of the way to the linearized boundary that each round goes
REACH = 1.2  # the new ray is followed this much further


class Distances(NamedTuple):
    """Distances of each example, in the Euclidean norm of the inputs; zero where it is misclassified."""

    linearized: Float[ndarray, " m"]
    """``min_j (f_y − f_j) / ‖∇(f_y − f_j)‖₂``: the distance if the network were linear."""
    reached: Float[ndarray, " m"]
    """Distance of a point that is misclassified; infinite where none was found."""
    lower: Float[ndarray, " m"] | None
    """Within this distance no point is misclassified; None where no Lipschitz constant is known."""


def measure_input_margins(context: Context) -> list[Reading]:
    """Measure distances of a sample of the examples from the decision boundary, in the inputs' own units.

    Raises:
        UserError: no classifier, or inputs that are whole numbers.

    An attack that starts at the example finds nothing where gradients vanish towards the nearest boundary, as between
    the clusters of a network with powers of ReLU. So a second one starts where the output changes on the way to the
    nearest examples with another output, and slides along the boundary; the nearer of both counts.

    Source: Moosavi-Dezfooli, Fawzi and Frossard 2016 (the attack); Brendel, Rauber and Bethge 2018 (starts across the
    boundary); Tsuzuku, Sato and Sugiyama 2018 (the lower bound).
    """
    if context.classes < 2:
        raise UserError("input margins need at least two classes")
    drawn = sample(context, EXAMPLES)
    x = drawn.subject.inputs()
    labels = drawn.subject.outputs()[1]
    if not np.issubdtype(x.dtype, np.floating):
        raise UserError(
            f"input margins need real inputs, to which a little can be added; these are {x.dtype}"
        )
    margins = distances(context.subject, x, labels)
    m = len(x)
    missed = int(np.isinf(margins.reached).sum())
    wrong = int((margins.reached == 0).sum())
    remark = f"; {wrong} of {m} are misclassified and count as 0" if wrong else ""
    rivals = f", over the {RIVALS} nearest rivals" if context.classes - 1 > RIVALS else ""
    attack = f"median over {drawn.how} of the distance at which the label does flip{remark}"
    return [
        median(
            "linearized input margin",
            margins.linearized,
            interpretation=f"median over {drawn.how}{rivals}{remark}",
        ),
        median(
            "robust radius, at most",
            margins.reached,
            interpretation=attack + (f"; {missed} of {m} could not be flipped" if missed else ""),
        ),
        _lower(margins, drawn.how),
    ]


def _lower(margins: Distances, how: str) -> Reading:
    name = "robust radius, at least"
    if margins.lower is None:
        return Reading(
            name,
            np.nan,
            interpretation="known only for chains of dense layers and activations, and this is none",
        )
    return median(
        name,
        margins.lower,
        theory="margin over √2 times the product of spectral norms",
        interpretation=f"median over {how}; within it no input has another label (usually far from tight)",
        assumes=(("the activations' slopes are bounded", True),),
    )


def distances(subject: Subject, x: NDArray, labels: NDArray) -> Distances:
    """Return the distances of examples ``(m, …)`` with class numbers ``(m,)``."""
    boundary = _Boundary.of(subject, x, labels)
    margin = margins_of(boundary.outputs(boundary.clean), labels)
    gaps, slopes = boundary.linearized(boundary.clean)
    with np.errstate(divide="ignore", invalid="ignore"):
        linear = gaps / np.linalg.norm(slopes, axis=2)
    linear = np.where(np.isfinite(linear), linear, np.inf).min(0)
    layers = chain(subject)
    lower = None if layers is None else _lipschitz_radius(layers, x, labels)
    zeroed = lambda radii: np.where(margin <= 0, 0.0, radii)
    return Distances(
        zeroed(linear),
        zeroed(np.minimum(_attack(boundary), _slide(boundary))),
        None if lower is None else zeroed(lower),
    )


@dataclass(frozen=True)
class _Boundary:
    """Outputs and their differences near some examples, as functions of points ``(m, d)`` in float64."""

    subject: Subject
    shape: tuple[int, ...]  # of the inputs, (m, …)
    clean: Float[ndarray, "m d"]
    labels: NDArray
    rivals: NDArray  # the other classes that are looked at, (r, m)

    @classmethod
    def of(cls, subject: Subject, x: NDArray, labels: NDArray) -> "_Boundary":
        others = np.array(subject.evaluate(x), float)
        others[np.arange(len(labels)), labels] = -np.inf
        count = min(RIVALS, others.shape[1] - 1)
        rivals = np.argsort(-others, axis=1, kind="stable").T[:count]
        return cls(subject, x.shape, np.asarray(x, float).reshape(len(x), -1), labels, rivals)

    def part(self, rows: NDArray) -> "_Boundary":
        """Return the same near some of the examples."""
        return _Boundary(
            self.subject,
            (len(rows), *self.shape[1:]),
            self.clean[rows],
            self.labels[rows],
            self.rivals[:, rows],
        )

    def outputs(self, points: Float[ndarray, "m d"]) -> Float[ndarray, "m k"]:
        return np.asarray(self.subject.evaluate(self.given(points)), float)

    def given(self, points: Float[ndarray, "m d"]) -> NDArray:
        """Return the points as the model sees them, in its precision."""
        return points.astype(self.subject.dtype).reshape(self.shape)

    def linearized(self, points: Float[ndarray, "m d"]) -> tuple[NDArray, NDArray]:
        """Return ``f_y − f_j`` of each rival, ``(r, m)``, and its gradient, ``(r, m, d)``."""
        outputs = self.outputs(points)
        rows = np.arange(len(points))
        gaps = []
        slopes = []
        for rival in self.rivals:
            cotangent = np.zeros(outputs.shape)
            cotangent[rows, self.labels], cotangent[rows, rival] = 1.0, -1.0
            gaps.append(outputs[rows, self.labels] - outputs[rows, rival])
            slopes.append(self.subject.pull(self.given(points), cotangent).reshape(points.shape))
        return np.stack(gaps), np.stack(slopes).astype(float)

    def crossed(self, points: Float[ndarray, "m d"]) -> NDArray:
        """Tell where another output is larger than that of the label, by more than rounding."""
        outputs = self.outputs(points)
        rounding = 100 * np.finfo(self.subject.dtype).eps * np.abs(outputs).max(1)
        return margins_of(outputs, self.labels) < -rounding


def _attack(boundary: _Boundary) -> Float[ndarray, " m"]:
    """Find misclassified points: steps to the nearest linearized boundary, then bisection; return their distances."""
    at = boundary.clean.copy()
    m = len(boundary.clean)
    crossed = boundary.crossed(at)
    for _ in range(STEPS):
        left = np.flatnonzero(~crossed)
        if not len(left):
            break
        sizes = [size for size in (m // 16, m // 4) if size >= len(left)]
        # of few sizes, as JAX compiles each anew; some come twice
        rows = np.resize(left, sizes[0] if sizes else m)
        part = boundary.part(rows)
        at[rows] = _step(part, at[rows])
        crossed[rows] = part.crossed(at[rows])
    return _bisected(boundary, at, crossed, HALVINGS)[1]


def _slide(boundary: _Boundary) -> Float[ndarray, " m"]:
    """Find misclassified points from the nearest examples with another output; return their distances.

    Each round goes a part of the way to the point of the linearized boundary that is nearest to the example, and looks
    for the change of the output on the ray to it; what is not nearer is not kept.
    """
    clean = boundary.clean
    m = len(clean)
    predicted = boundary.outputs(clean).argmax(1)
    squares = (clean**2).sum(1)
    apart = squares[:, None] + squares - 2 * clean @ clean.T
    apart[predicted[None, :] == boundary.labels[:, None]] = np.inf
    nearest = np.argsort(apart, axis=1, kind="stable")[:, :NEIGHBOURS]
    best = np.full(m, np.inf)
    for neighbour in nearest.T:
        usable = np.isfinite(apart[np.arange(m), neighbour])
        if not usable.any():
            break
        far = np.where(usable[:, None], clean[neighbour], clean)
        at, radius = _bisected(boundary, far, usable & boundary.crossed(far), COARSE)
        for turn in range(ROUNDS):
            ray = clean + REACH * _nearer(boundary, at)
            halvings = HALVINGS if turn == ROUNDS - 1 else COARSE
            points, lengths = _bisected(boundary, ray, boundary.crossed(ray), halvings)
            kept = lengths < radius
            at = np.where(kept[:, None], points, at)
            radius = np.where(kept, lengths, radius)
        best = np.minimum(best, radius)
    return best


def _nearer(boundary: _Boundary, at: Float[ndarray, "m d"]) -> Float[ndarray, "m d"]:
    """Return displacements of the examples, turned towards the nearest points of the boundary linearized at ``at``."""
    gaps, slopes = boundary.linearized(at)
    rows = np.arange(len(at))
    sizes = (slopes**2).sum(2)
    with np.errstate(divide="ignore", invalid="ignore"):
        which = np.where(sizes > 0, np.abs(gaps) / np.sqrt(sizes), np.inf).argmin(0)
    gap = gaps[which, rows]
    slope = slopes[which, rows]
    size = sizes[which, rows]
    delta = at - boundary.clean
    along = ((slope * delta).sum(1) - gap) / np.where(size > 0, size, 1.0)
    turned = (1 - DAMPING) * delta + DAMPING * along[:, None] * slope
    return np.where((size > 0)[:, None], turned, delta)


def _step(boundary: _Boundary, at: Float[ndarray, "m d"]) -> Float[ndarray, "m d"]:
    """Step a little beyond the nearest of the linearized boundaries; nowhere if there is none."""
    (gaps, slopes) = boundary.linearized(at)
    rows = np.arange(len(at))
    squares = (slopes**2).sum(2)
    gaps = np.abs(gaps) + np.finfo(boundary.subject.dtype).eps * np.abs(gaps).max(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        nearest = np.where(squares > 0, gaps / np.sqrt(squares), np.inf).argmin(0)
        length = (gaps / squares)[nearest, rows]
    length = np.where(np.isfinite(length), length, 0.0)
    return at - (1 + OVERSHOOT) * length[:, None] * slopes[nearest, rows]


def _bisected(
    boundary: _Boundary, far: Float[ndarray, "m d"], crossed: NDArray, halvings: int
) -> tuple[Float[ndarray, "m d"], Float[ndarray, " m"]]:
    """Bisect each segment for its nearest misclassified point; return it and its distance, infinite where none is."""
    low = np.zeros(len(far))
    high = np.ones(len(far))
    point = lambda t: far - (1 - t)[:, None] * (far - boundary.clean)  # exactly the far end at 1
    for _ in range(halvings):
        middle = (low + high) / 2
        over = boundary.crossed(point(middle))
        low = np.where(over, low, middle)
        high = np.where(over, middle, high)
    ends = boundary.given(point(high)).reshape(far.shape).astype(float)  # as they were evaluated
    reached = np.where(
        crossed & boundary.crossed(ends), np.linalg.norm(ends - boundary.clean, axis=1), np.inf
    )
    return ends, reached


def _lipschitz_radius(
    layers: list[Dense], x: NDArray, labels: NDArray
) -> Float[ndarray, " m"] | None:
    """Return ``(f_y − max f_j) / (√2 Lip f)``: a difference of two outputs changes by at most √2 Lip f a unit."""
    bound = lipschitz_bound(layers)
    if bound is None:
        return None
    margin = margins_of(activation_of(layers[-1])(compose(layers, x)[-1]), labels)
    return np.maximum(margin, 0.0) / (np.sqrt(2) * bound) if bound else np.full(len(labels), np.inf)
