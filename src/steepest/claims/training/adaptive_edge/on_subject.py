"""Edges of momentum, Nesterov's rule and Adam on a reader's own network: full-batch descents from its weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from steepest import kit
from steepest.claims._descents_of_subjects import (
    OFTEN,
    ROOM,
    SMALL,
    ByAdam,
    Path,
    Pilot,
    Rule,
    WithMomentum,
    descend,
    look_at,
    marks_of,
    small_steps,
    steps_until_fitted,
    still_learning,
)
from steepest.claims.descent.edge_of_stability.experiment import had_time
from steepest.claims.training.adaptive_edge.claim import (
    BEYOND,
    LOOKS,
    MOMENTUM,
    AdaptiveEdge,
    rules_of_momentum,
)
from steepest.claims.training.adaptive_edge.experiment import BETA2, EPSILON
from steepest.kit.subjects import Cost, Networks, OnSubject, Plainly, retitled
from steepest.measurement import is_cross_entropy
from steepest.measurement.adapters import Subject
from steepest.optimizers import Adam

RECORDS = 20  # looks along each descent besides that at its start; the last are those of the claim
SOON = 0.5  # of the steps, in which the slowest descent is to come to its edge
FEWEST = 100  # steps until examples of cross-entropy are fitted: as many as Adam's squares are averaged over


class Descent(NamedTuple):
    """One kind of descent.

    Attributes:
        name: as the figure calls it.
        rule: makes one that has seen no gradient.
        lr: η.
        pace: time of the flow that a step takes.
        turn: product of curvature and η at the edge.
    """

    name: str
    rule: Callable[[], Rule]
    lr: float
    pace: float
    turn: float


@dataclass(frozen=True)
class AdaptiveEdgeOnSubject(OnSubject, AdaptiveEdge):
    """Momentum, Nesterov's rule and Adam from your initial weights, on at most n of your examples at once."""

    edge: kit.NonNegative = kit.param(
        0.0, "curvature at which momentum and Nesterov are to stop; 0 takes one from small steps"
    )
    adam_edge: kit.NonNegative = kit.param(
        0.0, "curvature, as Adam sees it, at which Adam is to stop; 0 takes one from small steps"
    )
    steps: kit.Count = kit.param(900, "steps of each descent at most", unit="steps")
    n: kit.Count = kit.param(500, "examples of yours at most, drawn by class")
    seeds: kit.Seeds = kit.param(3, "initial networks, if your function takes a seed")
    products: kit.Count = kit.param(30, "Hessian products for each curvature at most")

    says = (
        "Momentum, Nesterov's rule and Adam raise the curvature of your network to (2+2β)/η, (2+2β)/((1+2β)η) and, "
        "as Adam sees it, (2+2β₁)/((1−β₁)η), and stay near it."
    )
    settable = ("betas", "edge", "adam_betas", "adam_edge", "steps", "n", "seeds", "products")
    notes = (
        "Descents are ours, on all examples at once: no decay, β₂ = 0.99, ε = 10⁻⁸, your loss, in evaluation mode. "
        "Batch normalization keeps the statistics that your function left, and dropout is off. Your own optimizer is "
        "not used.",
        "Step sizes are chosen so that each rule's edge lies between the curvature at the start and what small steps "
        "reach: two descents of the first network find that out, a plain one and one of Adam, whose steps move a "
        "weight by a hundredth of the weights' root mean square at most. Both must pass 1.15 of the edge.",
        "As Adam sees it the curvature is that of D^(−½)HD^(−½), with the D by which its next step is divided. After "
        "one gradient this is hardly an average: the start is the lowest curvature before the largest rise.",
        "With cross-entropy the sharpness falls again once the examples are fitted (Cohen et al. 2021). So each "
        "descent ends before, which costs a second one: the first finds out when.",
        "This version was tried on four networks while it was written. One condition came after failures there: that "
        "each descent by cross-entropy has a hundred steps until the examples are fitted. With 20 to 40 of them "
        "curvature jumps past the edge and back.",
    )

    plainly = {
        "momentum": Plainly("the step size times the sharpness, late in training with momentum"),
        "adam": Plainly(
            "the step size times the sharpness in Adam's own coordinates, late in training"
        ),
    }

    @property
    def descents(self) -> list[Descent]:
        """Return momentum and Nesterov's rule at each β, then Adam at each β₁."""
        rules = []
        for name, law in zip(MOMENTUM, rules_of_momentum(np.array(self.betas)), strict=True):
            for beta, turn in zip(self.betas, np.asarray(law.turn), strict=True):
                make = partial(WithMomentum, beta, name == "nesterov")
                lr = float(f"{turn / self.edge:.3g}")
                rules.append(Descent(f"{name}, β = {beta:g}", make, lr, lr / (1 - beta), turn))
        for beta in self.adam_betas:
            law = Adam(beta)
            make = partial(ByAdam, beta, BETA2, EPSILON)
            lr = float(f"{law.largest_step(self.adam_edge):.3g}")
            rules.append(Descent(f"Adam, β₁ = {beta:g}", make, lr, lr, float(law.turn)))
        return rules

    @property
    def of_momentum(self) -> int:
        """Return how many of them are by momentum or Nesterov's rule."""
        return len(MOMENTUM) * len(self.betas)

    def setting(self, key):
        return self.build_all(most=self.n)

    def prepare(self, networks, key):
        rng = kit.numpy_generator(key)
        start = [look_at(subject, rng, None, self.products) for subject in networks.subjects]
        facts: dict[str, Any] = {"start": np.array([look.curvature for look in start])}
        if min(facts["start"]) > 0:
            first = networks.subjects[0]
            facts["flow"] = small_steps(first, rng, self.steps, self.products)
            facts["adam"] = self.small_steps_of_adam(first, rng)
        return Networks(networks.built, networks.subjects, facts)

    def small_steps_of_adam(self, subject: Subject, rng: np.random.Generator) -> Pilot:
        """Follow Adam by small steps."""
        beta = self.adam_betas[-1]
        typical = float(np.sqrt(np.mean(np.square(subject.values(), dtype=float))))
        return small_steps(
            subject,
            rng,
            self.steps,
            self.products,
            rule=ByAdam(beta, BETA2, EPSILON),
            turn=float(Adam(beta).turn),
            longest=SMALL * typical,
        )

    def read(self, networks):
        """Put both edges between the curvature at the start and what small steps reach."""
        facts = networks.facts
        if "flow" not in facts:
            return {}
        betas = np.array(self.betas)
        speeds = np.array([law.turn / (1 - betas) for law in rules_of_momentum(betas)])
        of_adam = np.asarray(Adam(np.array(self.adam_betas)).turn)
        edge = max(self.between(facts["flow"], speeds), ROOM * float(facts["start"].max()))
        adam_edge = self.between(facts["adam"], of_adam)
        return {
            "edge": self.edge or float(f"{edge:.3g}"),
            "adam_edge": self.adam_edge or float(f"{adam_edge:.3g}"),
        }

    def between(self, pilot: Pilot, speeds: kit.Values) -> float:
        """Choose an edge between the ends of a pilot's rise for descents of some times a step, over 1/edge."""
        slow = SOON * self.steps * float(speeds.min())
        fast = 1.05 * FEWEST * float(speeds.max())  # some more, as numbers are rounded
        return pilot.edge(soon=slow, fewest=fast, beyond=BEYOND)

    def hypotheses(self, setting):
        facts = setting.facts
        smallest = kit.assume(
            "smallest sharpness at the start",
            float(np.min(facts["start"])),
            ">",
            0,
            "there is nothing to descend: is the network dead?",
        )
        if "flow" not in facts:
            return [smallest]
        below = kit.assume(
            "largest sharpness at the start / edge",
            float(np.max(facts["start"])) / self.edge,
            "<",
            1,
            "choose a larger --edge",
        )
        return [
            smallest,
            below,
            *rises_beyond("sharpness", facts["flow"], self.edge, "--edge"),
            *rises_beyond(
                "curvature as Adam sees it", facts["adam"], self.adam_edge, "--adam-edge"
            ),
            *self.long_enough(facts),
        ]

    def long_enough(self, facts: Mapping[str, Any]) -> list[kit.Hypothesis]:
        """Check, of cross-entropy, that every descent has steps enough until the examples are fitted."""
        if not np.isfinite(facts["flow"].end):
            return []
        lengths = {descent.name: self.expected(descent, facts) for descent in self.descents}
        shortest = min(lengths, key=lambda name: lengths[name])
        field = "--adam-edge" if shortest.startswith("Adam") else "--edge"
        return [
            kit.assume(
                "fewest steps of a descent until the examples are fitted",
                lengths[shortest],
                ">=",
                min(FEWEST, self.steps),
                f"nothing settles in so few by {shortest}: choose a larger --n or {field}",
            )
        ]

    def expected(self, descent: Descent, facts: Mapping[str, Any]) -> int:
        """Return how many steps a descent is expected to take until the examples of cross-entropy are fitted."""
        pilot = facts["adam"] if descent.name.startswith("Adam") else facts["flow"]
        return int(min(self.steps, pilot.end / descent.pace))

    def cost(self, networks):
        kinds = len(MOMENTUM) * len(self.betas) + len(self.adam_betas)
        runs = len(networks) * kinds
        looks = runs * (RECORDS + 1) + len(networks) * len(self.adam_betas) * len(LOOKS)
        pilots = 2 * self.steps / OFTEN
        # Lanczos starts from the vector found last, which spares it half of the products
        twice = 2 if is_cross_entropy(networks.subjects[0]) else 1  # once until they are fitted
        return Cost(
            gradients=(twice * runs + 2) * self.steps, products=(looks + pilots) * self.products / 2
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        descents = self.descents
        logistic = is_cross_entropy(setting.subjects[0])
        late = len(LOOKS)
        marks = []
        paths = []
        for subject in setting.subjects:
            lengths = [self.length(subject, descent, logistic) for descent in descents]
            marks.append([marks_of(length, RECORDS) for length in lengths])
            paths.append(
                [
                    descend(subject, descent.rule(), descent.lr, at, self.products, rng, late)
                    for descent, at in zip(descents, marks[-1], strict=True)
                ]
            )
        readings = Path(*(self.stacked(values) for values in zip_paths(paths)))
        etas = np.array([descent.lr for descent in descents])[:, None]
        products = readings.curvature * etas
        by_momentum = products[:, : self.of_momentum, -late:]
        shape = (len(products), len(MOMENTUM), len(self.betas), late)
        return kit.seen(
            momentum=("seed rule beta look", by_momentum.reshape(shape)),
            adam=("seed beta1 look", products[:, self.of_momentum :, -late:]),
            raw=("seed beta1 look", (readings.plain * etas)[:, self.of_momentum :, -late:]),
            course=("seed descent mark", products),
            risk=("seed descent mark", readings.risk),
            residual=("seed descent mark", readings.residual),
            step=("seed descent mark", self.stacked(marks), "steps"),
            cross_entropy=float(logistic),
        )

    def length(self, subject: Subject, descent: Descent, logistic: bool) -> int:
        """Return how many steps a descent takes: of cross-entropy only those until the examples are fitted."""
        if not logistic:
            return max(RECORDS, self.steps)
        return steps_until_fitted(subject, descent.rule(), descent.lr, self.steps, RECORDS)

    def run_conditions(self, observed):
        course = observed["course"]
        turns = np.array([descent.turn for descent in self.descents])
        lost = ~np.isfinite(course).all(-1)
        conditions = [
            kit.assume(
                "share of descents that diverged",
                float(lost.mean()),
                "==",
                0,
                "they met the edge too fast to stop there: choose a larger --edge",
            ),
            kit.assume(
                "largest relative residual of a curvature",
                float(np.nanmax(observed["residual"])),
                "<=",
                0.2,
                "raise --products",
            ),
            *self.had_time_to_come(course / turns[:, None], observed["step"][..., -1]),
        ]
        if not observed["cross_entropy"]:
            return conditions
        return [*conditions, still_learning(observed["risk"], observed["step"], self.steps)]

    def had_time_to_come(self, in_units: kit.Values, lengths: kit.Values) -> list[kit.Hypothesis]:
        """Check that no descent ended while its curvature still rose below its edge, for want of steps or as it fitted.

        Args:
            in_units: curvature along each descent in units of its edge, ``(seeds, descents, marks)``.
            lengths: how many steps they took, ``(seeds, descents)``.
        """
        cut = lengths < self.steps
        checks = []
        if not cut.all():
            whole = had_time(in_units[~cut], self.steps)
            checks.append(replace(whole, name="descents that ended before they came to their edge"))
        if cut.any():
            fitted = replace(
                had_time(in_units[cut], self.steps),
                name="descents that fitted their examples before they came to their edge",
                note="choose a larger --n, or a smaller --edge or --adam-edge",
            )
            checks.append(fitted)
        return checks

    def figure(self, law, seen, rivals):
        late = retitled(
            super().figure(law, seen, rivals),
            "Momentum and Nesterov: late curvature × η",
            "Adam, in its own coordinates: late curvature × η",
        )
        share = np.linspace(0, 1, RECORDS + 1)
        curves = [
            kit.observed_curve(share, seen.course.values[0, place] / descent.turn, descent.name)
            for place, descent in enumerate(self.descents)
        ]
        along = kit.panel(
            "Along the descents of the first network",
            "share of the descent",
            "curvature / edge",
            *curves,
            kit.predicted_curve((0, 1), (1, 1), "edge"),
        )
        return (*late, along)


def zip_paths(paths: list[list[Path]]) -> list[list[list[kit.Values]]]:
    """Return each field of the paths by itself, ``(fields, networks, descents, marks)``."""
    return [
        [[path[place] for path in of_network] for of_network in paths]
        for place in range(len(Path._fields))
    ]


def rises_beyond(what: str, pilot: Pilot, edge: float, field: str) -> list[kit.Hypothesis]:
    """Check that small steps start below an edge and pass it, so that nothing else stops a descent."""
    low, high = pilot.ends
    return [
        kit.assume(
            f"{what} from which small steps rise / edge",
            low / edge,
            "<",
            1,
            f"choose a larger {field}",
        ),
        kit.assume(
            f"largest {what} that small steps reach / edge",
            high / edge,
            ">",
            BEYOND,
            f"by itself it rises from {low:.3g} to {high:.3g}: choose {field} between, or more --steps",
        ),
    ]
