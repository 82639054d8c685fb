"""Weights that grow but never turn reach the best margin of their first directions; half of γ₁ takes 1/P(d) on average.

Neurons v_j relu⟨w_j, x⟩ whose w_j keep their directions u_j train the products c_j = v_j ‖w_j‖ only. Started off
balance these take either sign, and the flow tends to the largest ℓ1 margin over ±relu⟨u_j, ·⟩. Started balanced,
v_j = ±‖w_j‖, they keep their signs, and it tends to the largest margin with these. On XOR that is far from γ₁, the
margin over all directions: half of it needs one direction of half the best edge, whose probability P(d) falls
exponentially with d.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from steepest.claim import (
    Check,
    Claim,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    Values,
    Within,
    agreement,
    assume,
    bound,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.features.low_rotation_margin.experiment import (
    edges,
    follow,
    largest_margin,
    signed_features,
    units,
    width_needed,
)
from steepest.programs import hard_margin, parity_margins

DRAWS = 40_000  # directions that give P(d)
READINGS = 60  # of each flow, in the figure


class Setting(NamedTuple):
    """The first directions, their features with the labels' signs, and the signs of the output weights."""

    directions: Values  # (seeds, h, d)
    features: Values  # (seeds, 2^d, h)
    signs: Values  # (seeds, h)


@dataclass(frozen=True)
class LowRotationMargin(Claim):
    """XOR on the whole cube: flows of one width, and the widths that half of γ₁ takes."""

    dimension: Annotated[int, Within(2, 7)] = 4  # d of the flows [bits]
    width: Count = 64  # neurons h of the flows [neurons]
    start: Positive = 0.01  # scale of the products |v_j| ‖w_j‖ [1]
    # log Σ|v_j| ‖w_j‖ at the end of the flows [1]
    horizon: Annotated[float, Within(2, 18)] = 16.0
    # d at which widths are sought [bits]
    dimensions: tuple[Annotated[int, Within(3, 8)], ...] = (3, 4, 5, 6)
    widest: Annotated[int, Within(16, 8192)] = 2048  # largest of these widths [neurons]
    seeds: Seeds = 10  # sets of directions [1]

    kind = "limit"
    headline = ("either", "balanced", "needed")
    statement = (
        r"\frac{\min_iy_if(x_i)}{\sum_j|v_j|\lVert w_j\rVert}\to\gamma_{1,h}=\max_{\lVert c\rVert_1\le1}\min_iy_i"
        r"\sum_jc_j\,\mathrm{relu}\langle u_j,x_i\rangle,\qquad"
        r"\gamma_{1,h}\ge\tfrac12\gamma_1\;\Rightarrow\;\mathbb{E}h\ge\frac1{P(d)},\quad "
        r"P(d)=\Pr\big(|\mathbb{E}\,y\,\mathrm{relu}\langle u,x\rangle|\ge\tfrac12\gamma_1\big)"
    )
    source = "The talk [@telgarsky2024]: frozen inner directions, widths that are exponential"
    corrections = (
        "The talk starts balanced throughout. Without turns that costs margin: only neurons whose output weight has "
        "the right sign from the start can be used.",
    )
    remarks = (
        "The flow is exact: a_j² − b_j² is conserved, so that c_j = a_j b_j is a sine or an exponential of one "
        "integral, and as many unknowns are left as examples.",
        "The approach is slow, in log Σ|c_j|: on average 0.5 to 0.8 % is left at e¹⁶ (seeds 0 to 2). Descent whose "
        "steps shrink like 1/‖θ‖² adds a constant to Σ|c_j| a step, and would take millions of them.",
        "Under uniform weights of the points no combination has a larger margin than its largest edge: that is the "
        "bound by P(d). As d grows an edge of half the best takes u₁² + u₂² ≥ ρ² = 0.669, so that P(d) is at most "
        "of the order 0.58^d; from d = 3 to 6 it is halved each time.",
        "The widths found are 4 to 11 times the bound, since one direction of half the edge is not enough. Over d = 3 "
        "to 6 they grow 1.4 bits a dimension, which these sizes do not tell from the power d⁴ (shown, not judged).",
        "Networks whose neurons turn reach γ₁/2 in the norm of all weights with four neurons: see `xor-features`.",
    )
    full = {"seeds": 40, "dimensions": (3, 4, 5, 6, 7), "widest": 4096}
    tiny = {"seeds": 3, "dimensions": (3, 4), "widest": 512, "horizon": 12.0}
    out_of_scope = {"width": 3}

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)
        directions = np.stack([units(rng, self.width, self.dimension) for _ in range(self.seeds)])
        features = np.stack([signed_features(u) for u in directions])
        return Setting(directions, features, rng.choice([-1.0, 1.0], (self.seeds, self.width)))

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        pairs = zip(setting.features, setting.signs, strict=True)
        least = min(largest_margin(features, signs) for features, signs in pairs)
        # what the flow still gains once the data are fitted, where log Σ|c_j| is about zero
        growth = self.horizon - max(0.0, np.log(self.start))
        return [
            assume("least margin of the first directions", least, ">", 1e-6, "raise --width"),
            assume(
                "log of growth after the fit", growth, ">=", 12, "raise --horizon, or lower --start"
            ),
        ]

    def predict(self, setting: Setting) -> Prediction:
        pairs = list(zip(setting.features, setting.signs, strict=True))
        rng = np.random.default_rng(0)
        fallen = [edges(units(rng, DRAWS, d)) / parity_margins(d, 2).first for d in self.dimensions]
        return Prediction(
            either=("seed", [largest_margin(features) for features, _ in pairs]),
            balanced=("seed", [largest_margin(features, signs) for features, signs in pairs]),
            chance=("dimension", [(edge >= 0.5).mean() for edge in fallen]),
            # for the rival
            nearly=("dimension", [(edge >= 0.9).mean() for edge in fallen]),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        rng = numpy_generator(key)
        either = [
            _read(follow(features, None, self.start, self.horizon)) for features in setting.features
        ]
        balanced = [
            _read(follow(features, signs, self.start, self.horizon))
            for features, signs in zip(setting.features, setting.signs, strict=True)
        ]
        grid = self.grid
        needed = [
            [
                width_needed(units(rng, grid[-1], d), parity_margins(d, 2).first / 2, grid)
                for _ in range(self.seeds)
            ]
            for d in self.dimensions
        ]
        return Observation(
            either=("seed axis reading", either),
            balanced=("seed axis reading", balanced),
            needed=("dimension seed", needed),
        )

    @property
    def grid(self) -> np.ndarray:
        """Return the widths at which margins are computed, by factors of √2."""
        count = int(2 * np.log2(self.widest / 4)) + 1
        return np.unique(np.round(4 * 2 ** (np.arange(count) / 2)).astype(int))

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        ends = [observed[name][:, 0, -1].min() for name in ("either", "balanced")]
        missed = np.isinf(observed["needed"]).mean()
        return [
            assume(
                "least log Σ|c_j| at the end",
                min(ends),
                ">=",
                self.horizon,
                "lower --horizon, to 14 say",
            ),
            assume("share of widths above the widest", missed, "==", 0, "raise --widest"),
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        counts = observed["needed"] * predicted["chance"][:, None]
        least = counts[counts.mean(1).argmin()]
        return [
            *(
                agreement(
                    name,
                    np.abs(observed[name][:, 1, -1] / predicted[name] - 1),
                    0.03,  # what is left at this horizon is about 0.01
                    aggregate="mean",
                    label=f"margin of the {words} flow / of the program − 1",
                )
                for name, words in (("either", "unbalanced"), ("balanced", "balanced"))
            ),
            # a theorem with room: one such direction is needed, and more are used
            bound(
                "needed",
                least,
                at_least=1.0,
                label="mean width for half of γ₁, times P(d), least over d",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        lazy = [_euclidean(features) for features in setting.features]
        whole = np.full(self.seeds, parity_margins(self.dimension, 2).first)
        return [
            Rival(
                "same_limit",
                predicted.replace(balanced=("seed", predicted["either"])),
                "the balanced start is called a matter of convenience",
                label="the balanced flow reaches the margin of either sign",
            ),
            Rival(
                "signs_kept",
                predicted.replace(either=("seed", predicted["balanced"])),
                "output weights start with these signs",
                label="the unbalanced flow keeps its signs",
            ),
            Rival(
                "euclidean",
                predicted.replace(either=("seed", lazy)),
                "were the features' weights trained by themselves",
                label="the limit is the separator of least ℓ2 norm",
            ),
            Rival(
                "all_directions",
                predicted.replace(either=("seed", whole)),
                "the space of all neurons, as for widths without end",
                label=f"{self.width} directions have the margin γ₁",
            ),
            Rival(
                "one_good_neuron",
                predicted.replace(chance=("dimension", predicted["nearly"])),
                "so that it fits all points nearly as well as the four best",
                label="a direction of nine tenths of the best edge is needed",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        flows = []
        for name, title in (
            ("either", "Off balance: the margin over either sign"),
            ("balanced", "Balanced: the margin with the first signs"),
        ):
            log_size = observed[name][:, 0]
            ratios = observed[name][:, 1] / predicted[name][:, None]
            other = "balanced" if name == "either" else "either"
            line = np.array([0.0, self.horizon])
            level = (predicted[other] / predicted[name]).mean()
            grid = np.linspace(0, self.horizon, READINGS)
            curves = [np.interp(grid, x, y) for x, y in zip(log_size, ratios, strict=True)]
            flows.append(
                panel(
                    title,
                    "log Σ|v_j| ‖w_j‖",
                    "margin / that of the program",
                    observed_curve(grid, np.array(curves), "flow"),
                    predicted_curve(line, [1, 1], "program"),
                    rival_curve(line, [level, level], "the other program, on average"),
                    ylim=(0, 1.2 if name == "either" else 1.6),
                )
            )
        d = np.array(self.dimensions)
        return (
            *flows,
            panel(
                "Half of γ₁ takes many first directions",
                "d, bits of the input",
                "neurons",
                observed_curve(d, observed["needed"].T, "found"),
                predicted_curve(d, 1 / predicted["chance"], "at least 1/P(d) on average"),
                rival_curve(
                    d, 1 / np.maximum(predicted["nearly"], 1 / DRAWS), "0.9 of the best edge"
                ),
                log="y",
            ),
        )


def least_share() -> float:
    """Return ρ², what of a direction must lie in the two bits for half of the best edge, as d grows.

    With all of it along e₁ + e₂ the edge over the best is E(√2 ρ − σ|z|)_+ / √2, σ² = 1 − ρ², z ~ N(0, 1).
    """

    def above(share: float) -> float:
        top = np.sqrt(2 * share)
        spread = np.sqrt(1 - share)
        z = top / spread
        mean = top * (2 * norm.cdf(z) - 1) - spread * 2 * (norm.pdf(0) - norm.pdf(z))
        return mean / np.sqrt(2) - 0.5

    return float(np.asarray(brentq(above, 0.1, 0.99)))


def _read(path: np.ndarray) -> np.ndarray:
    """Return a path at a fixed number of readings, the last at its end, ``(2, readings)``."""
    at = np.linspace(0, path.shape[1] - 1, READINGS).round().astype(int)
    return path[:, at]


def _euclidean(features: np.ndarray) -> float:
    """Return the margin of the separator of least ℓ2 norm, over its ℓ1 norm; 0 where there is none."""
    program = hard_margin(features, np.ones(len(features)), "l2")
    size = np.abs(program.direction).sum()
    return float((features @ program.direction).min() / size) if size else 0.0
