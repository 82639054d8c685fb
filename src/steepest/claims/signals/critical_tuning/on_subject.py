"""Critical tuning of a reader's own network: at which weight variance its layers keep small changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steepest import kit
from steepest.claims.signals.critical_tuning.claim import CriticalTuning, moments_of
from steepest.claims.signals.critical_tuning.experiment import GROUPS, located, perturbations
from steepest.core.errors import UserError
from steepest.kernels import Criticality, criticality, first_layer, planar_inputs, propagate
from steepest.kit.subjects import Cost, Networks, OnSubject, Plainly
from steepest.measurement import activation_of, require_chain
from steepest.measurement.adapters import Dense, Subject
from steepest.nn.activations import activation

POOLED = 20  # networks of which the variances of weights and biases are taken
PLANE = ((1.0, 0.0), (1.0, np.pi / 3))  # the pair whose variance and covariance are followed


@dataclass(frozen=True)
class CriticalOnSubject(OnSubject, CriticalTuning):
    """Your initial networks, their weights scaled to C_W around the critical one, on a plane of your inputs."""

    seeds: Annotated[int, kit.Within(2 * GROUPS, 10000)] = kit.param(
        400, "initial networks that your function builds with different seeds"
    )

    says = (
        "Your layers keep small changes of length and of direction where C_W is critical, and "
        "there alone."
    )
    headline = ("c_w_along", "c_w_across")
    settable = ("seeds", "scan", "small_variance", "perturbation")
    needs = {"seed": "as the law is about networks drawn at random"}
    left_out = {
        "growth_along, growth_across": "they need a network at the fixed point of a C_W away from the critical one"
    }
    unchecked = ("its initial weights are independent of each other",)
    notes = (
        "What is yours here are the shapes, the law of the weights, the activation and two inputs, which span a plane. "
        "Every matrix is scaled so that its C_W = fan-in × mean W² is the critical one times each factor of the scan; "
        "biases are scaled to the critical C_b.",
        "The last layer, which writes the outputs, is left out, as it may be narrow. Networks are averaged in "
        "ten groups.",
    )

    plainly = {
        "c_w_along": Plainly("the C_W at which layers keep small changes of length"),
        "c_w_across": Plainly("the C_W at which layers keep small changes of direction"),
    }

    def setting(self, key):
        networks = self.build_all(places=range(2))
        first = networks.subjects[0]
        hidden = require_chain(first, "layers with a critical initialization")[:-1]
        kinds = sorted({layer.activation for layer in hidden})
        if len(kinds) != 1 or len(hidden) < 2:
            raise UserError(
                f"criticality needs two hidden layers at least, of one activation; {first.name} has "
                f"{len(hidden)} with {', '.join(kinds) or 'none'}"
            )
        tuned = criticality(activation(kinds[0]))
        if tuned.exists and tuned.c_b > 0 and any(not _has_bias(layer) for layer in hidden):
            raise UserError(
                f"the critical initialization of {kinds[0]} has biases of variance {tuned.c_b:.3g}, and some layers of "
                f"{first.name} have none at the start; draw them at random, and they are scaled"
            )
        facts = {
            "sigma": kinds[0],
            "criticality": tuned,
            "widths": [len(one.matrix) for one in hidden],
        }
        return Networks(networks.built, networks.subjects, facts)

    def read(self, networks):
        widths = networks.facts["widths"]
        depth = len(widths) - 1
        return {
            "activations": (networks.facts["sigma"],),
            "width": min(widths),
            "depth": depth,
            "layers": depth,
        }

    def hypotheses(self, setting):
        tuned: Criticality = setting.facts["criticality"]
        name = self.activations[0]
        return [
            kit.assume(
                f"{name} has a critical initialization", tuned.exists, "==", True, tuned.reason
            ),
            self.is_wide(),
        ]

    def cost(self, networks):
        return Cost(builds=self.count, passes=2 * self.count)

    def predict(self, setting):
        tuned: Criticality = setting.facts["criticality"]
        return kit.law(c_w=("activation", [tuned.c_w]), **self.moments(setting, tuned.c_w))

    def moments(self, setting: Networks, c_w: float) -> dict[str, Any]:
        """Return the recursion's variance and covariance by layer, at a C_W and the critical C_b."""
        return moments_of(self.path(setting, c_w)[None])

    def path(self, setting: Networks, c_w: float) -> NDArray:
        """Return the recursion of the pair from its first layer, at a C_W and the critical C_b."""
        tuned: Criticality = setting.facts["criticality"]
        start = first_layer(jnp.asarray(self.pair(tuned)), tuned.c_w, tuned.c_b)
        sigma = activation(setting.facts["sigma"])
        return np.asarray(propagate(sigma, c_w, tuned.c_b, start, self.depth))

    def pair(self, tuned: Criticality) -> NDArray:
        """Return the pair of inputs in their plane, whose variance in the first layer is K*, or one if K* is zero."""
        variance = tuned.k_star if tuned.k_star > 0 else 1.0
        return np.asarray(planar_inputs(variance, tuned.c_w, tuned.c_b, *PLANE))

    def observe(self, setting, key):
        tuned: Criticality = setting.facts["criticality"]
        c_w = tuned.c_w * np.array(self.scan)
        small = self.small_variance if tuned.k_star == 0 else self.variance(tuned)
        trio = ((1.0, 0.0), (1.0 + self.perturbation, 0.0), (1.0, self.perturbation))
        chains = [hidden_layers(subject) for subject in setting.subjects]
        chains += [
            hidden_layers(self.attached(self.build(place), like=setting.subjects[0]))
            for place in range(len(chains), min(POOLED, self.count))
        ]
        sizes = [
            np.mean([_squares(chain[i]) for chain in chains], 0) for i in range(len(chains[0]))
        ]
        plane = _plane(setting.subjects[0].inputs())
        inputs = [np.asarray(planar_inputs(small, c, tuned.c_b, *trio)) @ plane for c in c_w]
        pair = self.pair(tuned) @ plane
        moments = []
        grams = []
        for place in range(self.count):
            if place < len(chains):
                chain = chains[place]
            else:
                chain = hidden_layers(self.attached(self.build(place), like=setting.subjects[0]))
            at = lambda c, x, chain=chain: _grams(_scaled(chain, sizes, c, tuned.c_b), x)
            grams.append([at(c, x) for c, x in zip(c_w, inputs, strict=True)])
            both = at(tuned.c_w, pair)
            moments.append(both[:, (0, 1, 0), (0, 1, 1)])
        paths = perturbations(np.swapaxes(np.array(grams), 0, 1))
        return kit.seen(
            **moments_of(np.array(moments)[None], "seed "),
            located=("activation direction draw", [[located(c_w, path) for path in paths]]),
            scanned=("activation direction scan draw few", paths[None]),
        )

    def variance(self, tuned: Criticality) -> float:
        """Return the first layer's variance in the scan of an activation with K* > 0, or any."""
        return tuned.k_star if tuned.k_star > 0 else 1.0

    def rivals(self, setting, law):
        true = float(law.c_w[0])
        others = (
            ("unit_weight_variance", 1.0, "it is for linear networks", "C_W = 1 is critical"),
            ("he", 2.0, "it is for ReLU", "C_W = 2 is critical"),
            ("tanh_gain", (5 / 3) ** 2, "libraries recommend it for tanh", "C_W = (5/3)² is critical"),
            ("three_percent_more", 1.03 * true, "an activation tuned by eye", "critical at 1.03 C_W"),
        )  # fmt: skip
        return [
            kit.rival(label, why, id=id, c_w=c_w, **self.moments(setting, c_w))
            for id, c_w, why, label in others
            if abs(c_w / true - 1) > 0.025  # else it is what the theory itself says
        ]

    def controls(self, seen):
        return [self.heavier(seen)]

    def figure(self, law, seen, rivals):
        layers = np.arange(1, self.depth + 2)
        factors = np.array(self.scan)
        paths = seen.scanned.isel(activation=0)
        rates = np.log(paths.isel(few=-1) / paths.isel(few=0)).mean("draw") / self.depth
        variance = seen.variance.isel(activation=0).mean("seed")
        return (
            kit.panel(
                "Variance by layer at the critical C_W",
                "hidden layer",
                "K",
                kit.observed_curve(layers, variance, "your networks"),
                kit.predicted_curve(layers, law.variance.values[0], "recursion"),
            ),
            kit.panel(
                "Growth of small changes against C_W",
                "C_W / critical C_W",
                "log growth a layer",
                kit.observed_curve(factors, rates[0], "along the signal"),
                kit.observed_curve(factors, rates[1], "across it", shade=0.6),
                kit.predicted_curve(factors, 0 * factors, "critical"),
            ),
        )


def hidden_layers(subject: Subject) -> Sequence[Dense]:
    """Return the dense layers of a network that was recognized as a chain, without the last."""
    layers = subject.dense()
    assert layers is not None
    return layers[:-1]


def _has_bias(layer: Dense) -> bool:
    return layer.bias is not None and bool(np.any(layer.bias))


def _squares(layer: Dense) -> NDArray:
    """Return C_W = fan-in · mean W² and C_b = mean b² of a layer."""
    bias = 0.0 if layer.bias is None else float(np.mean(np.square(layer.bias, dtype=float)))
    return np.array([layer.matrix.shape[1] * np.mean(np.square(layer.matrix, dtype=float)), bias])


def _scaled(
    chain: Sequence[Dense], sizes: Sequence[NDArray], c_w: float, c_b: float
) -> list[Dense]:
    """Return a chain whose layers have this C_W and C_b on average over networks."""
    scaled = []
    for layer, (own_w, own_b) in zip(chain, sizes, strict=True):
        bias = None
        if c_b > 0 and layer.bias is not None:
            # a factor s multiplies a variance by s²
            bias = np.asarray(layer.bias, float) * (c_b / own_b) ** 0.5
        matrix = np.asarray(layer.matrix, float) * (c_w / own_w) ** 0.5
        scaled.append(layer._replace(matrix=matrix, bias=bias))
    return scaled


def _plane(inputs: NDArray) -> NDArray:
    """Return two directions that two of the inputs span, ``(2, d)``, of mean square ½ a coordinate of the plane."""
    rows = np.asarray(inputs, float).reshape(len(inputs), -1)
    basis, _ = np.linalg.qr(rows[:: max(1, len(rows) - 1)][:2].T)
    # planar inputs have the covariance C_b + C_W x·x'/2, those of d coordinates C_b + C_W x·x'/d
    return basis.T * (rows.shape[1] / 2) ** 0.5


def _grams(chain: Sequence[Dense], x: NDArray) -> NDArray:
    """Return covariances of the inputs' pre-activations, ``(layers, m, m)``, mean over neurons."""
    grams = []
    h = x
    for layer in chain:
        z = h @ layer.matrix.T + (0.0 if layer.bias is None else layer.bias)
        grams.append(z @ z.T / z.shape[1])
        h = activation_of(layer)(z)
    return np.array(grams)
