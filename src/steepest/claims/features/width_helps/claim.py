"""On XOR in the plane descent reaches the largest margin just when its start has drawn all four kinds of neurons.

Every neuron keeps the sign of its output weight and its side of the diagonal of its class, and turns to one of four
directions. The best network of four neurons or more has one in each. With m neurons it is found as often as m draws
hold all of four equally likely coupons: a wider network has no larger margin, it finds it more often.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from steepest.claim import (
    Arrays,
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    agreement,
    assume,
    bound,
    compiled,
    equal,
    keys,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.features.width_helps.experiment import (
    KINDS,
    REACHED,
    Dimension,
    WidthPoint,
    balanced,
    coupons,
    kinds_drawn,
    largest_margin,
    reached_margin,
    start_of,
    waiting,
    xor,
)
from steepest.nn.networks import Neurons
from steepest.programs import neuron_margin


@dataclass(frozen=True)
class WidthHelps(Claim):
    """Networks of several widths, narrow ones the first neurons of wide ones, from many starts."""

    widths: tuple[Count, ...] = (3, 4, 6, 8, 12, 16)  # m [neurons]
    dimension: Dimension = 4  # d of the cube on which the law does not hold [1]
    scale: Positive = 0.3  # ε of the start [1]
    balance: Positive = 1.0  # |v|/‖w‖ of the start [1]
    starts: Count = 40  # a group [1]
    groups: Seeds = 15  # groups of starts, over which shares have an interval [1]
    steps: Count = 400  # of descent on log R [steps]
    room: Count = 16  # neurons that fit into a point of the diagram [neurons]

    kind = "empirical law"
    headline = ("per_start", "margin", "rate")
    statement = (
        r"\gamma_m=\tfrac12\gamma_1\,[\text{all four kinds drawn}],\qquad "
        r"P=1-4(\tfrac34)^m+6(\tfrac12)^m-4(\tfrac14)^m"
    )
    source = (
        "J. Lee's talk in the notes [@vodrahalli2019] and the lectures [@telgarsky2019], which say that width helps; "
        "XOR: the talk [@telgarsky2024]"
    )
    corrections = (
        "In Telgarsky's talk four neurons are the solution. Four neurons can represent it, but descent on four "
        "finds it from 9 % of starts; three cannot separate.",
    )
    remarks = (
        "The law was expected for every dimension. It fails on cubes from d = 3 on, at every scale of the start from "
        "10⁻⁶ to 1: there more starts succeed.",
        "A reason is neurons whose gates are one other coordinate, a sixth of all at d = 4: while all examples weigh "
        "alike they have no gradient at all. They wait until other kinds are learned, and turn to what is missing. "
        "If each of them fills one missing kind of its own output sign, the excess at d = 4 is 0.08 of the 0.11 that "
        "was seen first; which starts succeed is not told by that.",
        "In the plane the share is the same for ε = 0.01, 0.3 and 1. A margin counts as reached from 0.9 of the "
        "largest on; in the plane margins end above 0.99 of it or below 0.05.",
        "For |v| < ‖w‖ at the start output weights may change their sign, so that kinds are not kept.",
    )
    point = WidthPoint
    full = {"starts": 100, "groups": 20, "steps": 1000}
    tiny = {"widths": (3, 4, 6), "dimension": 3, "starts": 5, "groups": 3, "steps": 200, "room": 6}
    out_of_scope = {"balance": 0.2}

    def setting(self, key: Key) -> tuple[Neurons, Neurons]:
        """Draw the starts of the widest networks in the plane and on the cube, shape ``(groups · starts, m, d)``."""
        planar, cube = jax.random.split(key)
        draw = lambda key, dimension: jax.vmap(
            lambda one: start_of(one, dimension, max(self.widths), self.scale, self.balance)
        )(keys(key, self.groups * self.starts))
        starts = compiled(lambda planar, cube: (draw(planar, 2), draw(cube, self.dimension)))
        return jax.tree.map(np.asarray, starts(planar, cube))

    def hypotheses(self, setting: Any) -> list[Hypothesis]:
        complete = (self.kinds(setting[0]) == KINDS).any(1)[np.array(self.widths) >= KINDS]
        return [
            assume(
                "largest width", max(self.widths), ">=", KINDS, "fewer neurons cannot separate XOR"
            ),
            *balanced(self.balance),
            assume("scale ε of the start", self.scale, between=(1e-5, 1.6), note="try --scale 0.3"),
            assume(
                "steps of descent", self.steps, ">=", 200, "raise --steps: margins are not reached"
            ),
            assume(
                "whether at each width from four on some start holds all kinds",
                float(complete.all()),
                "==",
                1,
                "raise --starts",
            ),
        ]

    def kinds(self, start: Neurons) -> np.ndarray:
        """Return how many kinds each start holds at each width, shape ``(widths, starts)``."""
        return np.stack([kinds_drawn(start.w[:, :m], start.v[:, :m]).sum(-1) for m in self.widths])

    def predict(self, setting: Any) -> Prediction:
        drawn = self.kinds(setting[0])
        return Prediction(
            reached=("width start", drawn == KINDS),
            rate=("width", [coupons(m) for m in self.widths]),
            margin=neuron_margin(*xor(2)).margin / 2,
            cube_excess=0.05,
        )

    def observe(self, setting: Any, key: Key) -> Observation:
        def run(start: Neurons) -> jax.Array:
            one = lambda m: jax.vmap(lambda s: reached_margin(s, m, self.steps))(start)
            return jax.lax.map(one, np.array(self.widths))

        planar, cube = compiled(lambda starts: tuple(map(run, starts)))(setting)
        return Observation(
            margins=("width start", planar),
            cube_margins=("width start", cube),
            waiting=waiting(setting[1].w, setting[1].v).mean(),
        )

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        margin = float(predicted["margin"])
        widths = np.array(self.widths)
        reached = observed["margins"] > REACHED * largest_margin(2)
        enough = widths >= KINDS
        groups = reached.reshape(len(widths), self.groups, -1).mean(-1)  # (widths, groups)
        cube = self.cube_rates(observed)
        law = predicted["rate"][:, None]
        checks = [
            agreement(
                "per_start",
                (reached != predicted["reached"].astype(bool)).mean(),
                0.0,
                label="share of starts that disagree with their own draw",
            ),
            equal(
                "margin",
                margin,
                observed["margins"][enough].max(1).mean(),
                (0.995, 1.0001),  # descent approaches it from below, like 1/log(1/R)
                label="best margin of the starts, mean over m ≥ 4",
            ),
            equal(
                "rate",
                0.0,
                (groups - law)[enough].mean(0),
                0.05,  # the interval takes 0.02
                absolute=True,
                label="share of starts that reach it − the law of coupons, mean over m ≥ 4",
            ),
        ]
        if self.dimension > 2:
            checks.append(
                bound(
                    "cube_excess",
                    (cube - np.array([coupons(m) for m in widths])[:, None])[enough].mean(0),
                    # half of what was seen first; no theory gives it
                    at_least=float(predicted["cube_excess"]),
                    label=f"the same on the cube of d = {self.dimension}",
                )
            )
        if not enough.all():
            checks.append(
                equal(
                    "too_few",
                    float(predicted["rate"][~enough].mean()),
                    groups[~enough].mean(),
                    0.0,
                    absolute=True,
                    label="share of starts that reach it with fewer than four neurons",
                )
            )
        return checks

    def cube_rates(self, observed: Observation) -> np.ndarray:
        """Return shares of starts that reach the largest margin on the cube, shape ``(widths, groups)``."""
        reached = observed["cube_margins"] > REACHED * largest_margin(self.dimension)
        return reached.reshape(len(self.widths), self.groups, -1).mean(-1)

    def rivals(self, setting: Any, predicted: Prediction) -> list[Rival]:
        planar = setting[0]
        drawn = self.kinds(planar)

        def other(rate: Any, reached: np.ndarray) -> Arrays:
            return predicted.replace(
                rate=("width", [rate(m) for m in self.widths]), reached=("width start", reached)
            )

        signs = np.stack(
            [(planar.v[:, :m] > 0).any(1) & (planar.v[:, :m] < 0).any(1) for m in self.widths]
        )
        wide = np.array(self.widths)[:, None] >= KINDS
        return [
            Rival(
                "three_kinds",
                other(lambda m: coupons(m, wanted=3), drawn >= 3),
                "the fourth class could be served by a bent neuron",
                label="three of the four kinds suffice",
            ),
            Rival(
                "both_signs",
                other(lambda m: 1 - 2.0 ** (1 - m), signs),
                "both classes need a neuron, and neurons turn anywhere",
                label="both output signs suffice",
            ),
            Rival(
                "four_neurons",
                other(lambda m: float(m >= KINDS), np.broadcast_to(wide, drawn.shape)),
                "four neurons can represent it",
                label="four neurons suffice",
            ),
            Rival(
                "without_half",
                predicted.replace(margin=2 * predicted["margin"]),
                "it is the largest margin over all neurons, ‖a‖₁ ≤ 1",
                label="the margin γ₁ itself",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        if self.dimension == 2:
            return []
        # the plane's margins, in units of the cube's
        scaled = observed["margins"] * np.sqrt(2 / self.dimension)
        return [
            Control(
                "plane",
                observed.replace(cube_margins=("width start", scaled)),
                "no neuron waits there",
                label="the plane in place of the cube",
            )
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        widths = np.array(self.widths)
        reached = observed["margins"] > REACHED * largest_margin(2)
        fine = np.arange(2, max(self.widths) + 1)
        law = [coupons(int(m)) for m in fine]
        ratios = np.sort(observed["margins"] / float(predicted["margin"]), axis=1)
        share = np.arange(1, ratios.shape[1] + 1) / ratios.shape[1]
        curves = [
            observed_curve(
                ratio, share, f"m = {m}", kind="steps", shade=i / max(1, len(widths) - 1)
            )
            for i, (m, ratio) in enumerate(zip(widths, ratios, strict=True))
        ]
        return (
            panel(
                "In the plane the largest margin is found as often as coupons are collected",
                "width m",
                "share of starts",
                observed_curve(widths, reached.mean(1), "descent", kind="points"),
                predicted_curve(fine, law, "four coupons"),
                rival_curve(fine, [1 - 2.0 ** (1 - m) for m in fine], "both output signs"),
                rival_curve(fine, [coupons(int(m), wanted=3) for m in fine], "three of four"),
                ylim=(-0.02, 1.02),
            ),
            panel(
                "On cubes of more dimensions it is found more often",
                "width m",
                "share of starts",
                observed_curve(
                    widths,
                    self.cube_rates(observed).mean(1),
                    f"descent, d = {self.dimension}",
                    kind="points",
                ),
                rival_curve(fine, law, "four coupons"),
                ylim=(-0.02, 1.02),
            ),
            panel(
                "Wider networks reach the same margin",
                "margin / (γ₁/2)",
                "share of starts below",
                *curves,
            ),
        )
