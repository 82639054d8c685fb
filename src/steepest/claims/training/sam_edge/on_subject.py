"""The edge of sharpness-aware minimization on a reader's own network: full-batch steps from its initial weights."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest import kit
from steepest.claims._descents_of_subjects import (
    OFTEN,
    ROOM,
    Ahead,
    look_at,
    marks_of,
    small_steps,
    steps_until_fitted,
    still_learning,
    walk,
)
from steepest.claims.training.sam_edge.claim import EDGE, MOMENTUM, SamEdge
from steepest.kit.subjects import Cost, Networks, OnSubject, Plainly, kept_rivals
from steepest.measurement import is_cross_entropy
from steepest.measurement.adapters import Subject

PAIRS = 20  # of successive steps that are looked at along a training
LATE = 9  # of these are judged: from three fifths of a training on, as in the claim
SHARES = (0.5, 1.0)  # of the larger step size
AT_MIDDLE = (
    1.0  # ηλ of the larger step size at the curvature between the start and what small steps reach
)


@dataclass
class BySam:
    """Steps along the gradient at w + ρ∇L/‖∇L‖, with momentum v ← βv + ∇L or without.

    Attributes:
        radius: ρ.
        beta: β.
        velocity: v, ``(p,)``.
    """

    radius: float
    beta: float = 0.0
    velocity: NDArray | float = 0.0
    scale: None = None

    def along(self, slope: NDArray, ahead: Ahead) -> NDArray:
        size = float(np.linalg.norm(slope)) or 1.0
        self.velocity = self.beta * self.velocity + ahead(self.radius * slope / size)
        return self.velocity


class Reading(NamedTuple):
    """What is seen at one step of a training.

    Attributes:
        plain: ηλ.
        ahead: ηρλ²/‖∇L‖.
        risk: over the examples.
        residual: relative error of λ.
        direction: of the gradient, of length one, ``(p,)``.
    """

    plain: float
    ahead: float
    risk: float
    residual: float
    direction: NDArray

    @classmethod
    def nothing(cls) -> "Reading":
        """Return what is seen of a training that has diverged."""
        return cls(np.nan, np.nan, np.nan, 0.0, np.full(1, np.nan))


class Training(NamedTuple):
    """What was seen along a training at pairs of successive steps; NaN once it has diverged.

    Attributes:
        plain: ηλ, ``(pairs, 2)``.
        ahead: ηρλ²/‖∇L‖, ``(pairs, 2)``.
        cosine: of the two gradients, ``(pairs,)``.
        residual: the larger relative error of the two λ, ``(pairs,)``.
        risk: at the start and at each second step, ``(pairs + 1,)``.
        step: zero and the numbers of these, ``(pairs + 1,)``.
    """

    plain: NDArray
    ahead: NDArray
    cosine: NDArray
    residual: NDArray
    risk: NDArray
    step: NDArray


@dataclass(frozen=True)
class SamEdgeOnSubject(OnSubject, SamEdge):
    """Sharpness-aware steps from your initial weights, on at most n of your examples at once."""

    lr: kit.NonNegative = kit.param(
        0.0,
        "η, the larger of two step sizes, of which the other is half; 0 takes one from small steps",
        unit="1/sharpness",
    )
    radii: tuple[kit.Positive, ...] = kit.param(
        (0.003, 0.009), "ρ over the length of all initial weights together"
    )
    steps: kit.Count = kit.param(900, "steps of each training at most", unit="steps")
    n: kit.Count = kit.param(500, "examples of yours at most, drawn by class")
    seeds: kit.Seeds = kit.param(3, "initial networks, if your function takes a seed")
    products: kit.Count = kit.param(30, "Hessian products for each curvature at most")

    says = "Sharpness-aware steps on your network come to ηλ(1 + ρλ/‖∇L‖) = 2."
    headline = ("edge",)
    settable = ("lr", "radii", "steps", "n", "seeds", "products")
    left_out = {
        "gradient": "that it is so at any λ < 2/η is asked in a valley of ours, where λ is given",
        "fall": "how fast λ falls is asked in that valley, whose floor has no slope; yours acts against the force",
    }
    notes = (
        "Steps are ours, on all examples at once: no momentum, no decay, your loss, in evaluation mode. Batch "
        "normalization keeps the statistics that your function left, and dropout is off. Your own optimizer is not "
        "used.",
        "ρ is given relative to the weights: 0.003 and 0.009 of their length, about what the claim has on its own "
        "network. The larger η has ηλ = 1 in the geometric middle between the sharpness at the start and the largest "
        "that small steps reach, which one descent of the first network finds out.",
        "Curvature and gradient are read at the same weights, at nine pairs of successive steps in the last two "
        "fifths. Trainings whose successive gradients agree by then still go downhill, and are out of range.",
        "With cross-entropy the sharpness vanishes once the examples are fitted. So each training ends before, which "
        "costs a second one: the first finds out when.",
    )

    plainly = {"edge": Plainly("ηλ(1 + ρλ/‖∇L‖) late in training")}

    def setting(self, key):
        return self.build_all(most=self.n)

    def prepare(self, networks, key):
        rng = kit.numpy_generator(key)
        start = [look_at(subject, rng, None, self.products) for subject in networks.subjects]
        facts: dict[str, Any] = {"start": np.array([look.curvature for look in start])}
        if min(facts["start"]) > 0:
            facts["flow"] = small_steps(networks.subjects[0], rng, self.steps, self.products)
        return Networks(networks.built, networks.subjects, facts)

    def read(self, networks):
        """Choose step sizes by the sharpness at the start and by what small steps reach."""
        facts = networks.facts
        if "flow" not in facts:
            return {}
        sharpest = float(facts["start"].max())
        middle = max((sharpest * facts["flow"].peak) ** 0.5, ROOM * sharpest)
        lr = self.lr or float(f"{AT_MIDDLE / middle:.3g}")
        return {"lr": lr, "lrs": tuple(share * lr for share in SHARES)}

    def hypotheses(self, setting):
        start = setting.facts["start"]
        yield kit.assume(
            "smallest sharpness at the start",
            float(np.min(start)),
            ">",
            0,
            "there is nothing to descend: is the network dead?",
        )
        yield kit.assume(
            "largest ηλ at the start",
            self.lr * float(np.max(start)),
            "<",
            2,
            "plain descent would leave it from 2 on: choose a smaller --lr",
        )

    def cost(self, networks):
        runs = len(networks) * (len(SHARES) * len(self.radii) + 1)
        twice = 2 if is_cross_entropy(networks.subjects[0]) else 1  # once until they are fitted
        looks = 2 * PAIRS * runs + self.steps / OFTEN
        # Lanczos starts from the vector found last, which spares it half of the products
        return Cost(
            gradients=(2 * twice * runs + 1) * self.steps, products=looks * self.products / 2
        )

    def predict(self, setting):
        return kit.law(turn=2.0, of_gradient=1.0, of_ahead=1.0)

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        trainings = [self.trainings(subject, rng) for subject in setting.subjects]
        readings = Training(
            *(
                self.stacked([[training[place] for training in kinds] for kinds in trainings])
                for place in range(len(Training._fields))
            )
        )
        shape = (len(readings.plain), len(self.lrs), len(self.radii), LATE, 2)
        reading = "seed lr radius look step"

        def everywhere(values: kit.Values) -> kit.Values:
            """Put the training with momentum at each η and ρ."""
            return np.broadcast_to(values[:, -1, None, None, -LATE:], shape)

        return kit.seen(
            plain=(reading, readings.plain[:, :-1, -LATE:].reshape(shape)),
            ahead=(reading, readings.ahead[:, :-1, -LATE:].reshape(shape)),
            plain_with_momentum=(reading, everywhere(readings.plain)),
            ahead_with_momentum=(reading, everywhere(readings.ahead)),
            cosine=("seed lr radius look", readings.cosine[:, :-1, -LATE:].reshape(shape[:-1])),
            course=("seed training pair step", readings.plain + readings.ahead),
            course_of_plain=("seed training pair step", readings.plain),
            residual=("seed training pair", readings.residual),
            risk=("seed training mark", readings.risk),
            taken=("seed training mark", readings.step, "steps"),
            cross_entropy=float(is_cross_entropy(setting.subjects[0])),
        )

    def trainings(self, subject: Subject, rng: np.random.Generator) -> list[Training]:
        """Train one network by each η and ρ, then with momentum by the last η and the first ρ."""
        length = float(np.linalg.norm(subject.values().astype(float)))
        radii = [share * length for share in self.radii]
        kinds = [(lr, radius, 0.0) for lr in self.lrs for radius in radii]
        kinds.append((self.lrs[-1], radii[0], MOMENTUM))
        return [self.training(subject, lr, BySam(radius, beta), rng) for lr, radius, beta in kinds]

    def training(
        self, subject: Subject, lr: float, rule: BySam, rng: np.random.Generator
    ) -> Training:
        """Train by one η and ρ, until the examples of cross-entropy are fitted, and look at pairs of steps."""
        least = 2 * PAIRS
        steps = max(least, self.steps)
        if is_cross_entropy(subject):
            steps = steps_until_fitted(subject, replace(rule), lr, steps, least)
        marks = marks_of(steps, PAIRS)
        ends = set(marks[1:].tolist())
        vector: NDArray | None = None
        before: Reading | None = None
        pairs: list[tuple[Reading, Reading]] = []
        for step, now, slope in walk(subject, rule, lr, steps):
            if step not in ends and step + 1 not in ends:
                continue
            look = look_at(now, rng, vector, self.products)
            vector = look.vector
            size = float(np.linalg.norm(slope)) or np.nan
            plain = lr * look.curvature
            ahead = plain * rule.radius * look.curvature / size
            reading = Reading(plain, ahead, look.risk, look.residual, slope / size)
            if step in ends and before is not None:
                pairs.append((before, reading))
            before = reading
        return training_of(pairs, subject.risk(), marks)

    def run_conditions(self, observed):
        lost = ~np.isfinite(observed["course"]).all((-2, -1))
        (downhill,) = super().run_conditions(observed)
        worst = int(np.argmax(observed["cosine"].mean(-1)))
        if observed["taken"][:, :-1, -1].ravel()[worst] < self.steps:
            why = "the examples are fitted while steps still go downhill: choose larger --radii, or more examples"
            downhill = replace(downhill, note=why)
        conditions = [
            kit.assume(
                "share of trainings that diverged",
                float(lost.mean()),
                "==",
                0,
                "choose a smaller --lr or smaller --radii",
            ),
            kit.assume(
                "largest relative residual of a curvature",
                float(np.nanmax(observed["residual"])),
                "<=",
                0.2,
                "raise --products",
            ),
            downhill,
        ]
        if not observed["cross_entropy"]:
            return conditions
        return [*conditions, still_learning(observed["risk"], observed["taken"], self.steps)]

    def judge(self, law, seen):
        yield kit.follows(
            "edge", law.turn, seen.terms, EDGE, over="lr radius", label="late ηλ(1 + ρλ/‖∇L‖)"
        )

    def rivals(self, setting, law):
        return kept_rivals(super().rivals(None, law), "plain", "small_gradients")

    def controls(self, seen):
        yield kit.control(
            "momentum of one half",
            "each step keeps half of the one before, of the other sign",
            id="with_momentum",
            plain=seen.plain_with_momentum,
            ahead=seen.ahead_with_momentum,
        )

    def figure(self, law, seen, rivals):
        share = np.arange(1, PAIRS + 1) / PAIRS
        kinds = [f"η = {lr:.3g}, ρ = {radius:g} ‖w‖" for lr in self.lrs for radius in self.radii]
        both = seen.course.mean("step", skipna=False).values[0]
        alone = seen.course_of_plain.mean("step", skipna=False).values[0]
        of_both = [kit.observed_curve(share, both[i], name) for i, name in enumerate(kinds)]
        of_plain = [kit.observed_curve(share, alone[i], name) for i, name in enumerate(kinds)]
        yield kit.panel(
            "Along the trainings of the first network",
            "share of the training",
            "ηλ(1 + ρλ/‖∇L‖)",
            *of_both,
            kit.predicted_curve((0, 1), (2, 2), "edge"),
            log="y",
        )
        yield kit.panel(
            "Only the first term",
            "share of the training",
            "ηλ",
            *of_plain,
            kit.rival_curve((0, 1), (2, 2), "2, plain descent"),
            log="y",
        )


def training_of(pairs: list[tuple[Reading, Reading]], risk: float, marks: NDArray) -> Training:
    """Return the readings of a training as arrays, with NaN at marks that it did not come to.

    Args:
        pairs: readings at successive steps.
        risk: at the start.
        marks: zero, and the numbers of the second steps.
    """
    missing = [(Reading.nothing(), Reading.nothing())] * (len(marks) - 1 - len(pairs))
    pairs = [*pairs, *missing]
    return Training(
        plain=np.array([[first.plain, second.plain] for first, second in pairs]),
        ahead=np.array([[first.ahead, second.ahead] for first, second in pairs]),
        cosine=np.array([float(first.direction @ second.direction) for first, second in pairs]),
        residual=np.array([max(first.residual, second.residual) for first, second in pairs]),
        risk=np.array([risk, *(second.risk for _, second in pairs)]),
        step=marks.astype(float),
    )
