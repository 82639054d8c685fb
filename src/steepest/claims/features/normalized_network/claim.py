"""Dividing input weights by their norm slows the rotation of small starts, and speeds it up once ab exceeds ‖v‖².

In f = Σ a_j b_j ReLU(⟨v_j, x⟩)/‖v_j‖ the norm of v_j is kept by gradient flow, and its direction u turns with
ab/‖v‖² times the pull that turns a plain neuron. On one example sin θ · exp((a² + b²)/(4‖v‖²)) is constant, where
the plain network keeps sin θ · ‖w‖, balanced or not.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
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
    UserError,
    Values,
    agreement,
    assume,
    bound,
    compiled,
    context_curve,
    equal,
    keys,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
    same_lengths,
)
from steepest.claims.features.normalized_network.experiment import (
    RISK,
    STEPS,
    NormalizedPoint,
    descend_normalized,
    descend_plain,
    follow_normalized,
    follow_plain,
)
from steepest.measurement.quantities import rotation

HORIZON = 9.0  # log(1 + t) at the end of the flows
READINGS = 40
DIRECTIONS = 3  # dimension of the one example


@dataclass(frozen=True)
class NormalizedNetwork(Claim):
    """One neuron on one example, by flow; and networks on XOR, by descent until one risk."""

    flow_norms: tuple[Positive, ...] = (1.0, 0.5, 1.0, 0.5)  # ‖v‖ of each flow [1]
    flow_ratios: tuple[Positive, ...] = (1.0, 1.0, 9.0, 0.25)  # a/b of each flow [1]
    start: Positive = 0.1  # √(ab) at the start of the flows [1]
    scales: tuple[Positive, ...] = (0.1, 0.3, 0.3, 1.0, 0.3, 1.0)  # ε of the starts on XOR [1]
    norms: tuple[Positive, ...] = (1.0, 1.0, 0.3, 1.0, 0.1, 0.3)  # ‖v‖ of the starts on XOR [1]
    dimension: Count = 6  # d of the cube [1]
    width: Count = 60  # neurons [neurons]
    seeds: Seeds = 6  # starts [1]

    kind = "empirical law"
    headline = ("normalized_invariant", "slower", "faster")
    statement = (
        r"\dot u=\frac{ab}{\lVert v\rVert^2}P_uG,\quad \lVert v\rVert^{\cdot}=0;\qquad"
        r"\sin\theta\,e^{(a^2+b^2)/4\lVert v\rVert^2}=\text{const},\quad"
        r"\text{plain: }\sin\theta\,\lVert w\rVert=\text{const}"
    )
    source = "Second part of the talk [@telgarsky2024]"
    corrections = (
        "The talk says that normalization significantly slows down the inner rotation. It multiplies it by ab/‖v‖²: on "
        "XOR networks from starts of a scale ε below ‖v‖ turn less than plain ones, those from above turn more.",
        "It was left open there what holds without balance a = b. The factor is the same, and on one example the "
        "invariant too, with a² + b² in place of 2ab.",
    )
    remarks = (
        "The invariants are exact for gradient flow on one example, or where the pull G keeps its direction. That XOR "
        "networks obey the order of ε and ‖v‖ is an observation: there G turns, and rotations are compared at one "
        f"risk, {RISK:g}, each neuron weighted by its output weight.",
        "Both networks start as the same function with the same neurons.",
        "At the first scale most normalized neurons hardly turn at all: a median of 1 or 2 degrees, where the plain "
        "ones turn by 60.",
        "Steps of descent are at right angles to v, so that ‖v‖² grows by the squares of its steps: that is no slip of "
        "the numerics.",
    )
    point = NormalizedPoint
    full = {"seeds": 20, "width": 120}
    tiny = {
        "flow_norms": (1.0, 0.5),
        "flow_ratios": (1.0, 4.0),
        "scales": (0.1, 0.3),
        "norms": (1.0, 0.1),
        "dimension": 3,
        "width": 8,
        "seeds": 3,
    }
    out_of_scope = {"start": 3.0}

    def check_fields(self) -> None:
        """Refuse lists of different lengths, and cubes without two coordinates or too large for memory."""
        same_lengths(self, "flow_norms", "flow_ratios")
        if len(self.scales) != 1 and len(self.norms) != 1:  # one goes with all
            same_lengths(self, "scales", "norms")
        if not 2 <= self.dimension <= 10:
            raise UserError(f"dimension must be from 2 to 10, got {self.dimension}; try 6")

    @property
    def cases(self) -> list[np.ndarray]:
        """Return ε and ‖v‖ of each case on XOR, shape ``(cases,)`` each."""
        return [np.array(one) for one in np.broadcast_arrays(self.scales, self.norms)]

    def setting(self, key: Key) -> Values:
        """Draw directions of single neurons that see the example e₁, shape ``(seeds, 3)``."""
        directions = numpy_generator(key).standard_normal((self.seeds, DIRECTIONS))
        directions[:, 0] = np.abs(directions[:, 0])
        return directions / np.linalg.norm(directions, axis=1, keepdims=True)

    def hypotheses(self, setting: Any) -> list[Hypothesis]:
        advice = "choose --start below 1: the risk is too small for anything to move"
        least = "below it sin θ leaves the numbers there are; raise --flow-norms"
        return [
            assume("√(ab) at the start of the flows", self.start, "<", 1, advice),
            assume("least ‖v‖ of the flows", min(self.flow_norms), ">=", 0.5, least),
            assume(
                "largest |log₂(a/b)| of the flows",
                float(np.abs(np.log2(self.flow_ratios)).max()),
                "<=",
                4,
                "choose --flow-ratios nearer to 1",
            ),
        ]

    def predict(self, setting: Any) -> Prediction:
        norms = np.array(self.flow_norms)
        return Prediction(
            # log sin θ + squares · (a² + b²) + product · ab + power · log(ab) is constant
            squares=("case", 1 / (4 * norms**2)),
            product=("case", 0 * norms),
            power=("case", 0 * norms),
            plain_power=1.0,  # log sin θ + power · log ‖w‖
            slower_sign=1.0,
            faster_sign=1.0,
            growth=1.0,  # of ‖v‖² by the squared steps of v
        )

    def observe(self, setting: Values, key: Key) -> Observation:
        times = np.linspace(0.0, HORIZON, READINGS)
        # the same starts at every scale, and for both networks
        single, plain, other = compiled(self.run)(setting, times, keys(key, self.seeds))
        single, plain, other = jax.tree.map(np.asarray, (single, plain, other))
        normalized, one_plain = single
        turned = _turned(plain)
        turned_other = _turned(other)
        steps = (np.diff(other.vectors, axis=2) ** 2).sum(-1)
        grown = np.diff((other.vectors**2).sum(-1), axis=2)
        plain_steps = (np.diff(plain.vectors, axis=2) ** 2).sum(-1)
        plain_grown = np.diff((plain.vectors**2).sum(-1), axis=2)
        return Observation(
            **{
                f"flow_{name}": ("case seed reading", part)
                for name, part in normalized._asdict().items()
            },
            **{
                f"plain_{name}": ("case seed reading", part)
                for name, part in one_plain._asdict().items()
            },
            rotation=("case seed neuron", turned_other["angle"]),
            weight=("case seed neuron", turned_other["weight"]),
            plain_rotation=("case seed neuron", turned["angle"]),
            plain_weight=("case seed neuron", turned["weight"]),
            reached=("network case", [turned_other["reached"].mean(1), turned["reached"].mean(1)]),
            steps=("case seed", steps.sum((2, 3))),
            grown=("case seed", grown.sum((2, 3))),
            control_steps=("case seed", plain_steps.sum((2, 3))),
            control_grown=("case seed", plain_grown.sum((2, 3))),
            risk=("case step", other.risk[:, 0]),
            plain_risk=("case step", plain.risk[:, 0]),
        )

    def run(self, directions: jax.Array, times: jax.Array, starts: Key) -> tuple:
        """Run all flows and descents: two :class:`Flows`, then two :class:`Descent`, ``(cases, seeds, …)``."""
        flow_norms = jnp.array(self.flow_norms)
        ratios = jnp.array(self.flow_ratios)
        start = jnp.array(self.start)

        def both(norm: jax.Array, ratio: jax.Array, direction: jax.Array) -> tuple:
            return (
                follow_normalized(direction, start, norm, ratio, times),
                follow_plain(direction, start, ratio, times),
            )

        over_seeds = jax.vmap(both, (None, None, 0))
        single = jax.vmap(over_seeds, (0, 0, None))(flow_norms, ratios, directions)
        plain = lambda key, scale: descend_plain(key, self.dimension, self.width, scale)
        other = lambda key, scale, norm: descend_normalized(
            key, self.dimension, self.width, scale, norm
        )
        scales, norms = self.cases
        plains = jax.vmap(jax.vmap(plain, (0, None)), (None, 0))(starts, scales)
        others = jax.vmap(jax.vmap(other, (0, None, None)), (None, 0, 0))(starts, scales, norms)
        return single, plains, others

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        advice = f"not in {STEPS} steps; choose larger --scales or --norms nearer to them"
        return [
            assume(
                "share of descents that reach the risk", observed["reached"].mean(), "==", 1, advice
            )
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        kept = np.log(observed["flow_sine"])
        kept = kept + predicted["squares"][:, None, None] * observed["flow_squares"]
        kept = kept + predicted["product"][:, None, None] * observed["flow_product"]
        kept = kept + predicted["power"][:, None, None] * np.log(observed["flow_product"])
        plain = np.log(observed["plain_sine"])
        plain = plain + float(predicted["plain_power"]) * np.log(observed["plain_norm"])
        drifts = [np.ptp(observed[f"flow_{name}"], axis=-1).max() for name in ("norm", "imbalance")]
        checks = [
            agreement(
                "normalized_invariant",
                np.ptp(kept, axis=-1).max(),
                1e-6,
                label="spread of log sin θ + (a² + b²)/(4‖v‖²) along the flows",
            ),
            agreement(
                "plain_invariant",
                np.ptp(plain, axis=-1).max(),
                1e-6,
                label="spread of log sin θ + log ‖w‖ along the plain flows",
            ),
            agreement(
                "conserved",
                max(drifts),
                1e-6,
                label="drift of ‖v‖ and of a² − b² along the flows",
            ),
            equal(
                "growth",
                float(predicted["growth"]),
                (observed["grown"] / observed["steps"]).ravel(),
                1e-6,
                label="growth of ‖v‖² in descent / sum of squared steps",
                aggregate="all",
            ),
        ]
        ours = _mean_angle(observed["rotation"], observed["weight"])  # (cases, seeds)
        theirs = _mean_angle(observed["plain_rotation"], observed["plain_weight"])
        ratio = np.divide(*self.cases)
        for name, cases, sign, words in (
            ("slower", ratio < 0.5, float(predicted["slower_sign"]), "ε < ‖v‖: turned less by"),
            ("faster", ratio > 2, float(predicted["faster_sign"]), "ε > ‖v‖: turned more by"),
        ):
            if cases.any():
                pairs = {"normalized": ours[cases], "plain": theirs[cases]}
                first, second = (
                    ("normalized", "plain") if name == "slower" else ("plain", "normalized")
                )
                gaps = (pairs[second] - pairs[first]) / pairs["plain"]
                checks.append(
                    bound(
                        name,
                        sign * gaps.min(0),
                        at_least=0.1,  # no theory says how much: a third of what was seen first
                        label=f"XOR, {words}, least of the cases",
                    )
                )
        return checks

    def rivals(self, setting: Any, predicted: Prediction) -> list[Rival]:
        norms = np.array(self.flow_norms)
        nothing = ("case", 0 * norms)
        ratio = np.divide(*self.cases)
        others = [
            Rival(
                "commutes",
                predicted.replace(squares=nothing, power=("case", 0 * norms + 0.5)),
                "by homogeneity the division can be taken into the output weight",
                label="sin θ √(ab) is constant, as in the plain network",
            ),
            Rival(
                "first_power",
                predicted.replace(squares=("case", 1 / (4 * norms))),
                "the factor ab/‖v‖ of v' in place of that of u'",
                label="u turns with ab/‖v‖",
            ),
            Rival(
                "balanced",
                predicted.replace(squares=nothing, product=("case", 1 / (2 * norms**2))),
                "the same where a = b",
                label="exp(ab/(2‖v‖²)) without balance too",
            ),
            Rival(
                "root",
                predicted.replace(plain_power=0.5),
                "√r with r = ‖w‖ in place of ‖w‖²",
                label="sin θ √‖w‖ is constant in the plain network",
            ),
        ]
        if (ratio > 2).any():
            others.append(
                Rival(
                    "always_slower",
                    predicted.replace(faster_sign=-1.0),
                    "what the talk says",
                    label="normalization slows rotation whatever the norm",
                )
            )
        if (ratio < 0.5).any():
            others.append(
                Rival(
                    "never_slower",
                    predicted.replace(slower_sign=-1.0),
                    "a small norm ‖v‖ makes directions light",
                    label="normalization speeds rotation up whatever the norm",
                )
            )
        return others

    def controls(self, observed: Observation) -> list[Control]:
        dims = "case seed neuron"
        return [
            Control(
                "plain_twice",
                observed.replace(
                    rotation=(dims, observed["plain_rotation"]),
                    weight=(dims, observed["plain_weight"]),
                ),
                "a network does not differ from itself",
                label="the plain network in place of the normalized one",
            ),
            Control(
                "plain_steps",
                observed.replace(
                    grown=("case seed", observed["control_grown"]),
                    steps=("case seed", observed["control_steps"]),
                ),
                "its weights grow along themselves",
                label="the plain network's steps",
            ),
            Control(
                "plain_norms",
                observed.replace(flow_norm=("case seed reading", observed["plain_norm"])),
                "the norm of w grows",
                label="the plain network's norms",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        product = observed["flow_product"][:2, 0]
        sine = observed["flow_sine"][:2, 0]
        flows = []
        for i, (r, s) in enumerate(zip(product, sine, strict=True)):
            law = s[0] * np.exp(-(r - r[0]) / (2 * self.flow_norms[i] ** 2))
            label = f"‖v‖ = {self.flow_norms[i]:g}"
            if self.flow_ratios[i] == 1:
                flows.append(observed_curve(r, s, label, shade=i / 2, kind="points"))
                flows.append(predicted_curve(r, law, "" if i else "exp(−ab/(2‖v‖²))"))
        plain_r = observed["plain_product"][0, 0]
        plain_s = observed["plain_sine"][0, 0]
        ours = np.degrees(_mean_angle(observed["rotation"], observed["weight"]))
        theirs = np.degrees(_mean_angle(observed["plain_rotation"], observed["plain_weight"]))
        ratio = np.divide(*self.cases)
        by_ratio = np.argsort(ratio)
        first = np.sort(np.degrees(observed["rotation"][0].ravel()))
        first_plain = np.sort(np.degrees(observed["plain_rotation"][0].ravel()))
        share = np.arange(1, first.size + 1) / first.size
        return (
            panel(
                "One example: normalized neurons turn late",
                "output weight",
                "sin θ",
                *flows,
                context_curve(plain_r, plain_s, "plain"),
                rival_curve(plain_r, plain_s[0] * np.sqrt(plain_r[0] / plain_r), "1/√r"),
                log="xy",
                ylim=(1e-4, 1.5),
            ),
            panel(
                "XOR: slower if ε < ‖v‖, else faster",
                "ε / ‖v‖",
                "rotation, normalized / plain",
                observed_curve(
                    ratio[by_ratio], (ours / theirs)[by_ratio].T, "starts", kind="points"
                ),
                predicted_curve((1, 1), (0.4, 1.6), "ε = ‖v‖"),
                context_curve((ratio.min(), ratio.max()), (1, 1), "equal", kind="dashed"),
                log="x",
            ),
            panel(
                f"XOR, ε/‖v‖ = {self.scales[0] / self.norms[0]:g}: most hardly turn",
                "rotation [degrees]",
                "share of neurons below",
                observed_curve(first, share, "normalized", kind="steps"),
                context_curve(first_plain, share, "plain", kind="steps"),
            ),
        )


def _mean_angle(angle: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the mean over neurons, weighted."""
    return (angle * weight).sum(-1) / weight.sum(-1)


def _turned(path: Any) -> dict[str, np.ndarray]:
    """Return angles and weights of all neurons where the risk is first below the one compared at."""
    below = path.risk < RISK  # (cases, seeds, steps)
    reached = below.any(-1)
    first = below.argmax(-1)
    case, seed = np.indices(first.shape)
    vectors = path.vectors[case, seed, first]
    return {
        "angle": rotation(vectors, path.vectors[:, :, 0]),
        "weight": path.weight[case, seed, first],
        "reached": reached,
    }
