"""Rotational equilibrium of a reader's own training: by how much weights behind a normalization turn a step."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest import kit
from steepest.claims.training.rotational_equilibrium import theory
from steepest.claims.training.rotational_equilibrium.claim import RotationalEquilibrium
from steepest.core.errors import UserError
from steepest.kit.subjects import Cost, Networks, OnSubject, Plainly
from steepest.measurement import Built
from steepest.measurement.adapters import Subject, Weight, normalizing_layers
from steepest.measurement.adapters import subject as attach

LONGEST = 20_000  # steps after which a training that does not end is stopped, unless the reader says how many
WITHOUT_LENGTH = 1e-2  # cosine of a weight and its gradient; the ε of a normalization leaves some
LATE = 0.75  # of the training, before the angles count
RELAXED = 4.0  # times in which squared lengths relax, that must have passed before
LOOKS = 60


class Recipe(NamedTuple):
    """How the weights whose length does not matter are trained.

    Attributes:
        adamw: whether by AdamW, else by descent with the decay in the gradient.
        lr: η.
        decay: λ.
        beta: of the momentum, or β₁.
        beta2: β₂ of AdamW, else 0.
    """

    adamw: bool
    lr: float
    decay: float
    beta: float
    beta2: float

    @property
    def angle(self) -> float:
        """Return the angle at balance, in radians."""
        balance = theory.adamw if self.adamw else theory.momentum
        return float(balance(np.array(self.lr * self.decay), self.beta).angle)

    @property
    def memory(self) -> float:
        """Return in how many steps squared lengths relax, and second moments forget."""
        # ‖w‖² relaxes by 2ηλ a step to a gain that stays, by 4ηλ where the gain is ∝ 1/‖w‖²
        shrinking = (2 if self.adamw else 4) * self.lr * self.decay
        slowest = 1 / shrinking if shrinking else np.inf
        return max(slowest, 1 / (1 - self.beta2)) if self.adamw else slowest


class Turning(NamedTuple):
    """What one training showed.

    Attributes:
        angle: root mean square of late angles a step, over weights whose length does not matter.
        others: the same of all other matrices.
        course: the first at some steps, ``(looks,)``; NaN where the training had ended.
        lr: smallest and largest late step size over that of the recipe.
        steps: how many were taken.
    """

    angle: float
    others: float
    course: NDArray
    lr: tuple[float, float]
    steps: int


@dataclass(frozen=True)
class TurnsOnSubject(OnSubject, RotationalEquilibrium):
    """Your own training with its decay: angles between successive weights, from three quarters of it on."""

    seeds: kit.Seeds = kit.param(3, "networks, if your function takes a seed")
    steps: Annotated[int, kit.Within(0)] = kit.param(
        0, f"steps of your training; 0 takes all of it, {LONGEST} at most", unit="steps"
    )

    says = (
        "Weights of your network whose length does not matter turn by the angle a step that η, λ and momentum say, "
        "whatever their gradients."
    )
    headline = ("angle",)
    settable = ("seeds", "steps")
    needs = {
        "train": "as weights turn in training",
        "optimizer": "as the angle is made of its step size, decay and momentum",
    }
    left_out = {
        "square": "how long weights become depends on your gradients under SGD",
        "digits": "it is of networks of ours",
    }
    unchecked = ("gradients of successive steps are nearly independent",)
    notes = (
        "Your training runs as it is. Found are arrays of two axes and more whose gradient stands at right angles to "
        "each row, or to the whole array, with the statistics of batches where your network normalizes by them.",
        "Angles are root mean squares over rows and over the last quarter of your training. The law is of balance, "
        "which takes about 1/2ηλ steps under AdamW and 1/4ηλ under SGD: a training that is shorter is out of range, "
        "and has hardly felt its decay there.",
        "The same judge must refuse the angles of your other matrices, whose lengths matter.",
    )

    plainly = {"angle": Plainly("the angle by which weights turn in a step, in radians")}

    def setting(self, key):
        built = [self.build(place) for place in range(self.count)]
        with self.theirs():
            subjects = [attached_as_trained(network) for network in built]
        free = without_length(subjects[0])
        recipe = recipe_of(built[0], free) if free else None
        return Networks(built, subjects, {"free": free, "recipe": recipe})

    def hypotheses(self, setting):
        free = setting.facts["free"]
        any_free = kit.assume(
            "matrices whose length does not matter",
            len(free),
            ">=",
            1,
            "no rows and no matrix stand at right angles to their gradient: nothing normalizes them",
        )
        recipe = setting.facts["recipe"]
        if recipe is None:
            return [any_free]
        passed = LATE * self.most(setting.built[0]) / recipe.memory
        longer = f"about {RELAXED * recipe.memory / LATE:.2g} steps would do"
        return [
            any_free,
            kit.assume(
                "weight decay λ of these", recipe.decay, ">", 0, "without it nothing balances"
            ),
            kit.assume(
                "three quarters of your steps, in units of the time in which lengths relax",
                passed,
                ">=",
                RELAXED,
                f"your training has hardly felt its decay in these weights: {longer}, or a larger ηλ",
            ),
            kit.assume("ηλ", recipe.lr * recipe.decay, "<=", 0.03, "the law is of small steps"),
        ]

    def most(self, built: Built) -> int:
        """Return how many steps of a training are taken at most."""
        return min(self.steps or LONGEST, built.length or LONGEST)

    def cost(self, networks):
        return Cost(steps=len(networks) * self.most(networks.built[0]), gradients=1)

    def axes(self):
        return {}

    def predict(self, setting):
        recipe = setting.facts["recipe"]
        return kit.law(angle=("seed", self.stacked([recipe.angle] * self.count)))

    def observe(self, setting, key):
        recipe = setting.facts["recipe"]
        turns = [
            self.turning(built, subject, setting.facts["free"], recipe.lr)
            for built, subject in zip(setting.built, setting.subjects, strict=True)
        ]
        return kit.seen(
            angle=("seed", self.stacked([turn.angle for turn in turns])),
            others=("seed", self.stacked([turn.others for turn in turns])),
            course=("seed look", self.stacked([turn.course for turn in turns])),
            late_steps=("seed end", self.stacked([turn.lr for turn in turns])),
            taken=("seed", self.stacked([turn.steps for turn in turns])),
        )

    def turning(self, built: Built, subject: Subject, free: dict[str, bool], lr: float) -> Turning:
        """Train one network and follow its matrices."""
        most = self.most(built)
        marks = set(np.linspace(1, most, LOOKS).astype(int).tolist())
        shared = [weight for weight in subject.weights if len(weight.shape) > 1]
        late: list[tuple[float, float]] = []
        course: list[float] = []
        rates: list[float] = []
        before: dict[str, NDArray] = {}
        taken = 0
        for taken, model in self.path(built, most):
            counts = taken > LATE * most
            near = taken in marks or taken + 1 in marks
            if not counts and not near:
                before = {}
                continue
            now = directions(subject.now(model), shared, free)
            if before:
                angles = mean_squares(before, now, free)
                if counts:
                    late.append(angles)
                    rates += step_sizes(built, free)
                if taken in marks:
                    course.append(angles[0] ** 0.5)
            before = now
        if not late:
            return Turning(np.nan, np.nan, np.full(LOOKS, np.nan), (np.nan, np.nan), taken)
        angle, others = np.sqrt(np.mean(late, axis=0))
        padded = np.pad(course, (0, LOOKS - len(course)), constant_values=np.nan)
        ends = min(rates) / lr, max(rates) / lr
        return Turning(float(angle), float(others), padded, ends, taken)

    def run_conditions(self, observed):
        slowest = observed["late_steps"].min(0)[0]
        fastest = observed["late_steps"].max(0)[1]
        yield kit.assume(
            "smallest late step size over the optimizer's step size",
            slowest,
            ">=",
            0.99,
            "a schedule that lowers it has no balance: hold it in the last half",
        )
        yield kit.assume(
            "largest late step size over the optimizer's step size", fastest, "<=", 1.01
        )

    def judge(self, law, seen):
        yield kit.follows(
            "angle",
            law.angle,
            seen.angle,
            0.15,  # as on digits: gradients of successive steps agree in part
            label="late angle that weights without a length turn by in a step",
        )

    def rivals(self, setting, law):
        recipe = setting.facts["recipe"]
        beta = recipe.beta
        rivals = [
            kit.rival(
                "√(ηλ) for √(2ηλ)",
                "the square of the norm shrinks by ηλ",
                id="half",
                angle=law.angle * 2**-0.5,
            )
        ]
        if beta:
            # the law is √(2ηλ(1 − β)/(1 + β)) of AdamW, and √(2ηλ/(1 + β)) of descent
            factor = ((1 + beta) / (1 - beta)) ** 0.5 if recipe.adamw else (1 + beta) ** 0.5
            rivals.append(
                kit.rival(
                    "√(2ηλ) whatever the momentum",
                    "momentum is a larger step size",
                    id="no_momentum",
                    angle=law.angle * factor,
                )
            )
        return rivals

    def controls(self, seen):
        yield kit.control(
            "your matrices whose lengths matter",
            "their gradients have a part along them",
            angle=seen.others,
        )

    def figure(self, law, seen, rivals):
        steps = np.linspace(0, 1, LOOKS)
        yield kit.panel(
            "How much weights without a length turn a step",
            "share of the training",
            "angle a step [radians]",
            kit.observed_curve(steps, seen.course.values, "your weights"),
            kit.predicted_curve(steps, np.full(LOOKS, float(law.angle[0])), "at balance"),
            log="y",
        )


def attached_as_trained(built: Built) -> Subject:
    """Attach to a network with the statistics of batches, as it is trained."""
    return attach(
        built.model,
        built.loss,
        built.data,
        features=built.features,
        check=False,
        normalizing=normalizing_layers(built.model),
        batch=built.batch,
    )


def without_length(subject: Subject) -> dict[str, bool]:
    """Find the matrices whose length does not matter, and whether that is so of each of their rows.

    A loss that does not change when w is stretched has a gradient at right angles to w (Euler).

    Returns:
        For each such array by name, whether the length of each row alone does not matter.
    """
    values = subject.values().astype(float)
    slope = np.asarray(subject.gradient(), float)
    by_row = {}
    for weight in subject.weights:
        if len(weight.shape) < 2:
            continue
        w = values[weight.place].reshape(weight.shape[0], -1)
        g = slope[weight.place].reshape(weight.shape[0], -1)
        if not (g != 0).any():
            continue
        sizes = np.linalg.norm(w, axis=1) * np.linalg.norm(g, axis=1)
        along = np.abs((w * g).sum(1))
        if (along <= WITHOUT_LENGTH * sizes).all():
            by_row[weight.name] = True
        elif abs((w * g).sum()) <= WITHOUT_LENGTH * np.linalg.norm(w) * np.linalg.norm(g):
            by_row[weight.name] = False
    return by_row


def recipe_of(built: Built, free: dict[str, bool]) -> Recipe:
    """Read how these arrays are trained.

    Raises:
        UserError: an optimizer of which no law is known here; arrays that are trained in several ways.
    """
    kind = type(built.optimizer).__name__
    if kind not in ("SGD", "Adam", "AdamW"):
        raise UserError(
            f"rotational-equilibrium is of torch's SGD and AdamW, got {kind}: give your optimizer among the parts"
        )
    recipes = {_recipe(kind, group) for group in groups_of(built, free)}
    if len(recipes) != 1:
        raise UserError(
            f"the {len(free)} arrays whose length does not matter are trained in {len(recipes)} ways; the law is asked "
            "of one: give them one step size, decay and momentum"
        )
    return recipes.pop()


def _recipe(kind: str, group: dict[str, Any]) -> Recipe:
    """Return the recipe of one group of weights."""
    lr = float(group.get("initial_lr", group["lr"]))
    decay = float(group["weight_decay"])
    if kind == "SGD":
        if group["nesterov"] or group["dampening"]:
            raise UserError(
                "rotational-equilibrium knows plain momentum: without nesterov and without dampening"
            )
        return Recipe(False, lr, decay, float(group["momentum"]), 0.0)
    if kind == "Adam" and not group.get("decoupled_weight_decay"):
        raise UserError(
            "Adam divides its decay by the size of gradients, for which no law is known here; use AdamW"
        )
    beta, beta2 = map(float, group["betas"])
    return Recipe(True, lr, decay, beta, beta2)


def step_sizes(built: Built, free: dict[str, bool]) -> Iterator[float]:
    """Yield the step sizes of now of the groups that these arrays are in."""
    for group in groups_of(built, free):
        yield float(group["lr"])


def groups_of(built: Built, free: dict[str, bool]) -> list[dict[str, Any]]:
    """Return the optimizer's groups of weights that hold some of these arrays."""
    named = dict(built.model.named_parameters())
    wanted = {id(named[name]) for name in free}
    return [
        group
        for group in built.optimizer.param_groups
        if any(id(parameter) in wanted for parameter in group["params"])
    ]


def directions(subject: Subject, shared: list[Weight], free: dict[str, bool]) -> dict[str, NDArray]:
    """Return every matrix with rows of length one, or with length one itself where only that does not matter."""
    values = subject.values().astype(float)
    rows_of = {}
    for weight in shared:
        rows = values[weight.place].reshape(weight.shape[0], -1)
        if not free.get(weight.name, True):
            rows = rows.reshape(1, -1)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows_of[weight.name] = rows / np.where(lengths > 0, lengths, 1.0)
    return rows_of


def mean_squares(
    before: dict[str, NDArray], now: dict[str, NDArray], free: dict[str, bool]
) -> tuple[float, float]:
    """Return the mean squares of the angles of rows without a length, and of all others; NaN where there are none."""
    squares: dict[bool, list[NDArray]] = {True: [], False: []}
    for name, rows in now.items():
        # angles from chords keep their digits where they are small
        chords = np.linalg.norm(rows - before[name], axis=1)
        squares[name in free].append((2 * np.arcsin(np.minimum(chords / 2, 1))) ** 2)
    mean = lambda kept: float(np.concatenate(kept).mean()) if kept else np.nan
    return mean(squares[True]), mean(squares[False])
