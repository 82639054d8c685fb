"""Dividing input weights by their norm slows the rotation of ReLU neurons that start small.

It speeds the rotation up once ab, the product of a neuron's two scales, exceeds the square ‖v‖² of this norm. In f = Σ
a_j b_j ReLU(⟨v_j, x⟩)/‖v_j‖ gradient flow conserves the norm of v_j, and the direction u of v_j turns with ab/‖v‖²
times the pull that turns a plain neuron. On one example sin θ · exp((a² + b²)/(4‖v‖²)) is constant, while the plain
network keeps sin θ · ‖w‖ constant, balanced or not.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
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
from steepest.nn.types import Values

HORIZON = 9.0  # log(1 + t) at the end of the flows
READINGS = 40
DIRECTIONS = 3  # dimension of the one example
KEPT = 1e-6  # spread of what flows conserve; their tolerance is 1e-10
LEAST = 0.1  # part by which rotations must differ: no theory says how much, a third of what was seen first


@kit.claim
class NormalizedNetwork(kit.Claim[Values]):
    """One neuron on one example, by flow; and networks on XOR, by descent until one risk."""

    flow_norms: tuple[kit.Positive, ...] = kit.param(
        (1.0, 0.5, 1.0, 0.5),
        "‖v‖ of each flow",
        scope=kit.choices((1.0, 0.5, 1.0, 0.5), (0.8, 1.5, 0.6, 1.2)),
    )
    flow_ratios: tuple[kit.Positive, ...] = kit.param(
        (1.0, 1.0, 9.0, 0.25),
        "a/b of each flow",
        scope=kit.choices((1.0, 1.0, 9.0, 0.25), (1.0, 1.0, 0.5, 4.0)),
    )
    start: kit.Positive = kit.param(
        0.1, "√(ab) at the start of the flows", scope=kit.between(0.05, 0.3)
    )
    scales: tuple[kit.Positive, ...] = kit.param(
        (0.1, 0.3, 0.3, 1.0, 0.3, 1.0),
        "ε of the starts on XOR",
        scope=kit.choices((0.1, 0.3, 0.3, 1.0, 0.3, 1.0), (0.1, 0.2, 0.4, 0.8, 0.3, 1.0)),
    )
    norms: tuple[kit.Positive, ...] = kit.param(
        (1.0, 1.0, 0.3, 0.5, 0.1, 0.25), "‖v‖ of the starts on XOR"
    )
    dimension: kit.Count = kit.param(6, "d of the cube", scope=kit.between(4, 6))
    width: kit.Count = kit.param(60, "neurons", unit="neurons", scope=kit.between(40, 80))
    seeds: kit.Seeds = kit.param(6, "starts")

    kind = "empirical law"
    says = {
        "slows the rotation of ReLU neurons that start small": "rate",
        "speeds the rotation up once ab, the product of a neuron's two scales, exceeds the square ‖v‖²": (
            "rate",
            "normalized_invariant",
        ),
    }
    tiny = {
        "flow_norms": (1.0, 0.5),
        "flow_ratios": (1.0, 4.0),
        "scales": (0.1, 0.3),
        "norms": (1.0, 0.1),
        "dimension": 3,
        "width": 8,
        "seeds": 3,
    }
    full = {"seeds": 20, "width": 120}
    out_of_scope = {"start": 3.0}
    point = NormalizedPoint

    @property
    def cases(self) -> list[np.ndarray]:
        """Return ε and ‖v‖ of each case on XOR by rising ε/‖v‖, each ratio once, shape ``(cases,)`` each."""
        cases = np.stack(np.broadcast_arrays(self.scales, self.norms))
        ratios = (cases[0] / cases[1]).round(9)
        _, places = np.unique(ratios, return_index=True)
        return list(cases[:, places])

    def axes(self):
        flows = zip(self.flow_norms, self.flow_ratios, strict=True)
        names = [f"‖v‖ = {norm:g}, a/b = {ratio:g} ({i})" for i, (norm, ratio) in enumerate(flows)]
        ratios = np.divide(*self.cases).round(9)
        return {"flow": tuple(names), "ratio": tuple(ratios.tolist())}

    def check_fields(self) -> None:
        """Refuse lists of different lengths, and cubes without two coordinates or too large for memory."""
        kit.same_lengths(self, "flow_norms", "flow_ratios")
        if len(self.scales) != 1 and len(self.norms) != 1:  # one goes with all
            kit.same_lengths(self, "scales", "norms")
        if not 2 <= self.dimension <= 10:
            raise kit.UserError(f"dimension must be from 2 to 10, got {self.dimension}; try 6")

    def setting(self, key):
        """Draw directions of single neurons that see the example e₁, shape ``(seeds, 3)``."""
        directions = kit.numpy_generator(key).standard_normal((self.seeds, DIRECTIONS))
        directions[:, 0] = np.abs(directions[:, 0])
        return directions / np.linalg.norm(directions, axis=1, keepdims=True)

    def hypotheses(self, setting):
        advice = "choose --start below 1: the risk is too small for anything to move"
        least = "below it sin θ leaves the numbers there are; raise --flow-norms"
        yield kit.assume("√(ab) at the start of the flows", self.start, "<", 1, advice)
        yield kit.assume("least ‖v‖ of the flows", min(self.flow_norms), ">=", 0.5, least)
        yield kit.assume(
            "largest |log₂(a/b)| of the flows",
            float(np.abs(np.log2(self.flow_ratios)).max()),
            "<=",
            4,
            "choose --flow-ratios nearer to 1",
        )

    def predict(self, setting):
        norms = np.array(self.flow_norms)
        return kit.law(
            # log sin θ + squares · (a² + b²) + product · ab + power · log(ab) is constant
            squares=("flow", 1 / (4 * norms**2)),
            product=("flow", 0 * norms),
            power=("flow", 0 * norms),
            plain_power=1.0,  # log sin θ + power · log ‖w‖
            rate=("ratio", np.divide(*self.cases) ** 2),
            growth=1.0,  # of ‖v‖² by the squared steps of v
        )

    def observe(self, setting, key):
        times = np.linspace(0.0, HORIZON, READINGS)
        # the same starts at every scale, and for both networks
        runs = kit.compiled(self.run)(setting, times, kit.keys(key, self.seeds))
        (normalized, one_plain), plain, other = jax.tree.map(np.asarray, runs)
        arrays: dict[str, tuple[str, Values]] = {}
        for prefix, flows in (("flow", normalized), ("plain", one_plain)):
            for name, part in flows._asdict().items():
                arrays[f"{prefix}_{name}"] = ("flow seed reading", part)
        for prefix, path in (("", other), ("plain_", plain)):
            turned = _turned(path)
            steps = (np.diff(path.vectors, axis=2) ** 2).sum(-1)
            grown = np.diff((path.vectors**2).sum(-1), axis=2)
            first = turn_of_step(path.vectors[:, :, 0], path.vectors[:, :, 1])
            # of each neuron's length, in units of the scale
            size = np.linalg.norm(path.vectors[:, :, 0], axis=-1)
            size = size / np.reshape(self.cases[1 if not prefix else 0], (-1, 1, 1))
            arrays |= {
                f"{prefix}size": ("ratio seed neuron", size),
                f"{prefix}rotation": ("ratio seed neuron", turned["angle"]),
                f"{prefix}weight": ("ratio seed neuron", turned["weight"]),
                f"{prefix}first": ("ratio seed neuron", first),
                f"{prefix}reached": ("ratio seed", turned["reached"].astype(float)),
                f"{prefix}steps": ("ratio seed", steps.sum((2, 3))),
                f"{prefix}grown": ("ratio seed", grown.sum((2, 3))),
            }
        return kit.seen(**arrays)

    def run(self, directions: jax.Array, times: jax.Array, starts: kit.Key) -> tuple:
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

    def run_conditions(self, observed):
        advice = f"not in {STEPS} steps; choose larger --scales or --norms nearer to them"
        least = float(min(observed["reached"].mean(), observed["plain_reached"].mean()))
        yield kit.assume("share of descents that reach the risk", least, "==", 1, advice)

    def derive(self, law, seen):
        """Return what flows conserve, and on XOR both networks' mean angles and the part by which they differ."""
        kept = np.log(seen.flow_sine) + law.squares * seen.flow_squares
        kept = kept + law.product * seen.flow_product + law.power * np.log(seen.flow_product)
        plain = np.log(seen.plain_sine) + law.plain_power * np.log(seen.plain_norm)
        spread = lambda array: array.max("reading") - array.min("reading")
        mean = lambda angle, weight: (angle * weight).sum("neuron") / weight.sum("neuron")
        ours = mean(seen.rotation, seen.weight)
        theirs = mean(seen.plain_rotation, seen.plain_weight)
        return {
            "kept": spread(kept),
            "plain_kept": spread(plain),
            "norm_drift": spread(seen.flow_norm),
            "imbalance_drift": spread(seen.flow_imbalance),
            "turned": ours / theirs,
            # a plain neuron turns with v/‖w‖, the normalized one with |v| ‖w‖/‖v‖²
            "rate": seen.first.sum("neuron")
            / (seen.plain_first * seen.plain_size**2).sum("neuron"),
        }

    def judge(self, law, seen):
        below = seen.turned.where(seen.ratio < 0.5, drop=True)
        above = seen.turned.where(seen.ratio > 1.9, drop=True)
        checks = [
            kit.agrees(
                "normalized_invariant",
                seen.kept,
                KEPT,
                label="spread of log sin θ + (a² + b²)/(4‖v‖²) along the flows",
            ),
            kit.agrees(
                "plain_invariant",
                seen.plain_kept,
                KEPT,
                label="spread of log sin θ + log ‖w‖ along the plain flows",
            ),
            kit.agrees(
                "norm_conserved", seen.norm_drift, KEPT, label="drift of ‖v‖ along the flows"
            ),
            kit.idle(
                kit.agrees(
                    "imbalance_conserved",
                    seen.imbalance_drift,
                    KEPT,
                    label="drift of a² − b² along the flows",
                ),
                "plain neurons conserve theirs too",
            ),
            kit.agrees(
                "growth",
                abs(seen.grown / seen.steps - law.growth),
                KEPT,
                label="growth of ‖v‖² in descent / sum of squared steps, from 1",
            ),
            kit.follows(
                "rate",
                law.rate,
                seen.rate,
                1e-6,
                label="XOR: turn in the first step, normalized / plain · (‖w‖/ε)²",
            ),
        ]
        for name, turned, sign, words in (
            ("slower", below, 1, "ε < ‖v‖/2: part by which they have turned less"),
            ("faster", above, -1, "ε > 1.9 ‖v‖: part by which they have turned more"),
        ):
            if turned.size:
                checks.append(
                    kit.at_least(
                        name,
                        LEAST,
                        sign * (1 - turned),
                        over="ratio",
                        label=f"XOR, {words} at the risk {RISK:g}",
                    )
                )
        return checks

    def rivals(self, setting, law):
        nothing = 0 * law.squares
        norms = xarray.DataArray(np.array(self.flow_norms), law.squares.coords, ["flow"])
        yield kit.rival(
            "sin θ √(ab) is constant, as in the plain network",
            "by homogeneity the division can be taken into the output weight",
            squares=nothing,
            power=nothing + 0.5,
        )
        yield kit.rival(
            "u turns with ab/‖v‖",
            "the factor ab/‖v‖ of v' is taken for the factor of u'",
            squares=1 / (4 * norms),
        )
        yield kit.rival(
            "exp(ab/(2‖v‖²)) without balance too",
            "the same where a = b",
            squares=nothing,
            product=1 / (2 * norms**2),
        )
        yield kit.rival(
            "sin θ √‖w‖ is constant in the plain network",
            "√r with r = ‖w‖ in place of ‖w‖²",
            plain_power=0.5,
        )
        yield kit.rival(
            "normalization slows rotation whatever the norm",
            "what the talk says",
            rate=np.minimum(law.rate, 0.5),
        )
        yield kit.rival(
            "the factor is 1/‖v‖²",
            "only the direction of v counts, not what is behind it",
            rate=("ratio", 1 / self.cases[1] ** 2),
        )

    def controls(self, seen):
        yield kit.control(
            "the plain network in place of the normalized one",
            "a network does not differ from itself",
            rotation=seen.plain_rotation,
            weight=seen.plain_weight,
            first=seen.plain_first,
        )
        yield kit.control(
            "plain neurons on one example",
            "their direction turns at the same rate however long they are",
            flow_sine=seen.plain_sine,
            flow_squares=seen.plain_squares,
            flow_product=seen.plain_product,
            flow_norm=seen.plain_norm,
        )
        yield kit.control(
            "normalized neurons in place of plain ones",
            "their direction turns late",
            plain_sine=seen.flow_sine,
            plain_norm=seen.flow_product**0.5,
        )
        yield kit.control(
            "the plain network's steps",
            "its weights grow along themselves",
            grown=seen.plain_grown,
            steps=seen.plain_steps,
        )

    def figure(self, law, seen, rivals):
        flows = []
        product = seen.flow_product.values[:2, 0]
        sine = seen.flow_sine.values[:2, 0]
        for i, (r, s) in enumerate(zip(product, sine, strict=True)):
            if self.flow_ratios[i] == 1:
                theory = s[0] * np.exp(-(r - r[0]) / (2 * self.flow_norms[i] ** 2))
                label = f"‖v‖ = {self.flow_norms[i]:g}"
                flows += [
                    kit.observed_curve(r, s, label, shade=i / 2, kind="points"),
                    kit.predicted_curve(r, theory, "" if i else "exp(−ab/(2‖v‖²))"),
                ]
        plain_r = seen.plain_product.values[0, 0]
        plain_s = seen.plain_sine.values[0, 0]
        ratio = seen.ratio.values
        first = np.sort(np.degrees(seen.rotation.values[0].ravel()))
        first_plain = np.sort(np.degrees(seen.plain_rotation.values[0].ravel()))
        share = np.arange(1, first.size + 1) / first.size
        yield kit.panel(
            "One example: normalized neurons turn late",
            "output weight",
            "sin θ",
            *flows,
            kit.context_curve(plain_r, plain_s, "plain"),
            kit.rival_curve(plain_r, plain_s[0] * np.sqrt(plain_r[0] / plain_r), "1/√r"),
            log="xy",
            ylim=(1e-4, 1.5),
        )
        yield kit.curves(
            "XOR: the first step turns by (ε/‖v‖)² as much",
            law.rate,
            seen.rate,
            over="ratio",
            x="ε / ‖v‖",
            y="rotation, normalized / plain",
            log="xy",
        )
        yield kit.panel(
            "Until one risk: slower if ε < ‖v‖, else faster",
            "ε / ‖v‖",
            "rotation, normalized / plain",
            kit.observed_curve(
                ratio, seen.turned.transpose("seed", "ratio"), "starts", kind="points"
            ),
            kit.context_curve((ratio.min(), ratio.max()), (1, 1), "equal", kind="dashed"),
            log="x",
        )
        yield kit.panel(
            f"XOR, ε/‖v‖ = {ratio[0]:g}: most hardly turn",
            "rotation [degrees]",
            "share of neurons below",
            kit.observed_curve(first, share, "normalized", kind="steps"),
            kit.context_curve(first_plain, share, "plain", kind="steps"),
        )


def turn_of_step(before: Values, after: Values) -> Values:
    """Return the part of a step that is across the vectors, over their length; shape of all axes but the last.

    It is the angle of a short step.
    """
    size = np.linalg.norm(before, axis=-1, keepdims=True)
    along = before / size
    step = (after - before) / size
    across = step - (step * along).sum(-1, keepdims=True) * along
    return np.linalg.norm(across, axis=-1)


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
