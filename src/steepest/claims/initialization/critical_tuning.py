"""Variance and angle of signals survive depth only where χ∥ = χ⊥ = 1.

For every activation the infinite-width recursion of the covariance K has a critical initialization (C_b, C_W, K*), or
provably none. There, finite networks hold variance and covariance over many layers as the recursion says; away from
it, perturbations along the signal grow or shrink like χ∥ a layer, and perturbations across it like χ⊥.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Count,
    Hypothesis,
    Key,
    NonNegative,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    Values,
    assume,
    compiled,
    equal,
    keys,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.kernels import (
    Criticality,
    criticality,
    depth_scales,
    first_layer,
    planar_inputs,
    propagate,
)
from steepest.nn.activations import Activation, activation
from steepest.nn.networks import sample_grams

GROUPS = 10  # networks are averaged in groups before a logarithm is taken


class Case(NamedTuple):
    """One activation at one initialization, with the inputs that are sent through it, shape ``(m, 2)``."""

    activation: Activation
    c_w: float
    c_b: float
    inputs: Values


class Setting(NamedTuple):
    """The critical cases with their criticality, and the case off criticality."""

    criticality: list[Criticality]
    critical: list[Case]
    off: Case


@dataclass(frozen=True)
class CriticalTuning(Claim):
    """Pairs of inputs through random networks at their critical initialization and away from it."""

    # activations at their critical initialization [name]
    activations: tuple[str, ...] = ("relu", "tanh", "gelu")
    width: Count = 3000  # width n of every layer [neurons]
    depth: Count = 64  # layers after the first [layers]
    networks: Seeds = 400  # random networks for each activation [1]
    off_activation: str = "tanh"  # activation away from criticality [name]
    off_c_w: Positive = 1.5  # its C_W [1]
    off_c_b: NonNegative = 0.05  # its C_b [1]
    perturbation: Positive = 0.02  # relative change of length, and angle, of its inputs [1]
    layers: Count = 8  # layers over which growth is fitted there [layers]

    kind = "theorem"
    statement = (
        r"K^*=C_b+C_W\,\mathbb{E}\,\sigma^2,\quad \chi_\parallel=\frac{C_W}{2}\,\mathbb{E}\,(\sigma^2)''=1,"
        r"\quad \chi_\perp=C_W\,\mathbb{E}\,\sigma'^2=1"
    )
    source = "ORF 543, lectures 9/14 and 9/19; Roberts, Yaida and Hanin 2022"
    corrections = (
        "The notes label their first example tanh and print K^(l+1) = C_W² K; it is the linear network, and "
        "K^(l) = C_W^l K.",
    )
    remarks = (
        "The margin is 5 % of the recursion, averaged over layers: the recursion is the limit of infinite width, and "
        "corrections are of order depth/width (2 % here).",
        "GELU's critical variance K* = 3.56 attracts only from above; just below lies a second fixed point, 3.04, that "
        "attracts slowly, so ordinary inputs with K near 2 never reach the tabulated K*.",
        "Networks are drawn layer by layer from their exact conditional law (rows of Gaussian weights applied to known "
        "activations are Gaussian), which needs no weight matrices.",
        "For your own activation print steepest.kernels.recommended_initialization(activation); phase_diagram and "
        "predict_signal tell what other choices do.",
    )
    tiny = {"activations": ("relu", "tanh"), "width": 64, "depth": 4, "networks": 20, "layers": 3}
    out_of_scope = {"activations": ("sigmoid",)}
    full = {
        "activations": ("linear", "relu", "leaky_relu(0.2)", "tanh", "sin", "erf", "gelu", "silu"),
        "networks": 2000,
    }

    def setting(self, key: Key) -> Setting:
        chosen = [activation(name) for name in self.activations]
        solved = [criticality(sigma) for sigma in chosen]
        critical = []
        for sigma, c in zip(chosen, solved, strict=True):
            if c.exists:  # two inputs of correlation one half; variance K* where that is positive, one elsewhere
                pair = planar_inputs(
                    c.k_star if c.k_star > 0 else 1.0, c.c_w, c.c_b, (1, 0), (1, np.pi / 3)
                )
                critical.append(Case(sigma, c.c_w, c.c_b, pair))
        sigma = activation(self.off_activation)
        c_w = self.off_c_w
        c_b = self.off_c_b
        small = self.perturbation
        resting = depth_scales(sigma, c_w, c_b).k_star
        trio = planar_inputs(resting, c_w, c_b, (1, 0), (1 + small, 0), (1, small))
        return Setting(solved, critical, Case(sigma, c_w, c_b, trio))

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        exist = [
            assume(f"{name} has a critical initialization", c.exists, "==", True, c.reason)
            for name, c in zip(self.activations, setting.criticality, strict=True)
        ]
        return [
            *exist,
            assume(
                "depth/width", self.depth / self.width, "<=", 0.1, "the recursion is for n ≫ depth"
            ),
        ]

    def predict(self, setting: Setting) -> Prediction:
        starts = [first_layer(c.inputs, c.c_w, c.c_b) for c in setting.critical]
        cases = zip(setting.critical, starts, strict=True)
        scales = depth_scales(setting.off.activation, self.off_c_w, self.off_c_b)
        return Prediction(
            moments=(
                "activation layer moment",
                [propagate(*case[:3], start, self.depth) for case, start in cases],
            ),
            critical=("activation value", [(c.c_b, c.c_w, c.k_star) for c in setting.criticality]),
            growth=("direction", np.log([scales.chi_parallel, scales.chi_perpendicular])),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        def covariances(key: Key) -> tuple[jax.Array, jax.Array]:
            """Return variances and covariance of each critical case, and the covariances off criticality."""
            *seeds, for_off = keys(key, len(setting.critical) + 1)
            # single precision is enough, and twice as fast, where nothing small is a difference of large numbers
            cases = [
                case._replace(inputs=case.inputs.astype(np.float32)) for case in setting.critical
            ]
            grams = [self.sample(k, case, self.depth) for k, case in zip(seeds, cases, strict=True)]
            pairs = jnp.stack(grams)[..., (0, 1, 0), (0, 1, 1)]  # K_αα, K_ββ, K_αβ
            return pairs, self.sample(for_off, setting.off, self.layers)

        moments, off = compiled(covariances)(key)
        off = np.asarray(off)
        off = off[: len(off) // GROUPS * GROUPS].reshape(GROUPS, -1, *off.shape[1:]).mean(1)
        # the longer input: difference of variances
        along = np.abs(off[..., 1, 1] - off[..., 0, 0])
        # the turned input: squared distance
        across = off[..., 0, 0] + off[..., 2, 2] - 2 * off[..., 0, 2]
        return Observation(
            moments=("activation network layer moment", moments),
            perturbation=("direction group layer", np.stack([along, across])),
        )

    def sample(self, key: Key, case: Case, depth: int) -> jax.Array:
        """Return covariances of the inputs in many networks, shape ``(networks, depth + 1, m, m)``."""
        return sample_grams(key, self.networks, *case[:3], self.width, depth, case.inputs)

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        ratio = (observed["moments"] / predicted["moments"][:, None]).mean(
            2
        )  # (activation, network, moment)
        slopes = [
            np.polyfit(np.arange(self.layers + 1), np.log(path).T, 1)[0]
            for path in observed["perturbation"]
        ]
        named = [
            (f"{what}_{i}", f"{name}: {what} / recursion", ratio[i, :, moment])
            for i, name in enumerate(self.activations)
            for moment, what in ((0, "variance"), (2, "covariance"))
        ]
        return [
            *(equal(id, 1.0, values, 0.05, label=label) for id, label, values in named),
            equal(
                "growth_along",
                predicted["growth"][0],
                slopes[0],
                0.05,
                absolute=True,
                label="off criticality: growth along, log χ∥",
            ),
            equal(
                "growth_across",
                predicted["growth"][1],
                slopes[1],
                0.05,
                absolute=True,
                label="off criticality: growth across, log χ⊥",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        layers = np.arange(self.depth + 1)
        c_w = predicted["critical"][:, 1]
        # If C_W = 1 preserved the variance of σ(z), every layer would multiply it by C_W.
        grown = predicted["moments"][:, :1] * c_w[:, None, None] ** layers[:, None]
        return [
            Rival(
                "unit_weight_variance",
                predicted.replace(moments=("activation layer moment", grown)),
                "it is for linear networks",
                label="C_W = 1 is critical for every activation",
            ),
            Rival(
                "slopes_exchanged",
                predicted.replace(growth=("direction", predicted["growth"][::-1])),
                "they agree for scale-invariant activations",
                label="χ∥ and χ⊥ exchanged",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        layers = np.arange(self.depth + 1)
        few = np.arange(self.layers + 1)
        variance = observed["moments"][..., 0].mean(1)
        curves = []
        growth = []
        for i, name in enumerate(self.activations):
            shade = i / max(1, len(self.activations) - 1)
            curves += [
                observed_curve(layers, variance[i], name, shade=shade),
                predicted_curve(layers, predicted["moments"][i, :, 0]),
            ]
        for i, name in enumerate(("along the signal, χ∥", "across it, χ⊥")):
            path = observed["perturbation"][i].mean(0)
            growth += [
                observed_curve(few, path, name, shade=float(i)),
                predicted_curve(few, path[0] * np.exp(predicted["growth"][i] * few)),
            ]
        wrong = variance[0, 0] * predicted["critical"][0, 1] ** layers[:9]
        return (
            panel(
                "At criticality the variance survives",
                "layer",
                "K",
                *curves,
                rival_curve(layers[:9], wrong, f"{self.activations[0]} by the rule C_W = 1"),
                log="y",
            ),
            panel(
                "Elsewhere perturbations grow or shrink",
                "layer",
                "size of the perturbation",
                *growth,
                log="y",
            ),
        )
