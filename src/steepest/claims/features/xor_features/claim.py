"""On XOR of two bits in d dimensions, the neurons of ReLU networks turn to four directions.

Each direction ends with a quarter of the weight. This network has the largest margin of all. The inputs are the whole
cube {±1}^d/√d, the label is the product of two bits. From a small balanced start a ReLU network ends with its weight on
±(e₁ + e₂)/√2, with positive output, and ±(e₁ − e₂)/√2, with negative output. The start decides where each neuron turns:
among the directions of its output sign, to the direction on whose side the neuron is.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.features.xor_features.experiment import (
    LARGEST_RATIO,
    XorFeaturesPoint,
    cubes,
    directions,
    starts,
    train,
)
from steepest.dynamics import Trajectory
from steepest.measurement.quantities import signed_alignment
from steepest.nn.types import Values
from steepest.programs import parity_margins

TOWARDS = ("+(e₁ + e₂)", "−(e₁ + e₂)", "+(e₁ − e₂)", "−(e₁ − e₂)")


class Setting(NamedTuple):
    """Starts of scale one: D is the largest dimension, inputs beyond d are zero."""

    noise: Values  # normal numbers, (dimensions, seeds, h, D)
    signs: Values  # of the output weights, (dimensions, seeds, h)


@kit.claim
class XorFeatures(kit.Claim[Setting]):
    """Two-layer ReLU networks on the whole cube, by descent on the logarithm of the exponential risk."""

    scales: tuple[kit.Positive, ...] = kit.param(
        (0.01, 0.3),
        "ε, of the start, w = ε g/√d; where neurons go is judged from the first",
        scope=kit.choices((0.01, 0.3), (0.02, 0.2), (0.005, 0.1)),
    )
    dimensions: tuple[Annotated[int, kit.Within(2, 12)], ...] = kit.param(
        (4, 5, 6), "d", unit="bits", scope=kit.choices((4, 5, 6), (3, 4, 6), (4, 6, 7))
    )
    width: kit.Count = kit.param(
        40,
        "neurons h",
        unit="neurons",
        scope=kit.between(40, 60, "fewer may have none on the side of one direction"),
    )
    lr: kit.Positive = kit.param(
        0.5, "step while the norm of all weights is below two", scope=kit.between(0.45, 0.6)
    )
    steps: kit.Count = kit.param(2000, "steps of each descent", unit="steps")
    samples: Annotated[float, kit.Within(1, LARGEST_RATIO)] = kit.param(
        3.0, "examples a dimension of the control"
    )
    seeds: kit.Seeds = kit.param(6, "networks at each scale and dimension")

    kind = "empirical law"
    says = {
        "the neurons of ReLU networks turn to four directions": "cosine",
        "Each direction ends with a quarter of the weight": "shares",
        "has the largest margin of all": "margin",
    }
    tiny = {"dimensions": (2, 3, 4), "seeds": 3, "steps": 800}
    full = {"dimensions": (4, 6, 8), "seeds": 20, "steps": 4000}
    out_of_scope = {"scales": (0.01, 30.0)}
    point = XorFeaturesPoint

    def axes(self):
        return {
            "scale": self.scales,
            "dimension": self.dimensions,
            "direction": TOWARDS,
            "neuron": tuple(range(self.width)),
        }

    def check_fields(self) -> None:
        if sorted(set(self.dimensions)) != list(self.dimensions):
            raise kit.UserError(
                f"an exponent needs increasing --dimensions, got {self.dimensions}; try 4 5 6"
            )

    def setting(self, key):
        rng = kit.numpy_generator(key)
        shape = (len(self.dimensions), self.seeds, self.width)
        return Setting(
            rng.normal(size=(*shape, max(self.dimensions))), rng.choice([-1.0, 1.0], shape)
        )

    def hypotheses(self, setting):
        groups = _first_targets(setting)[..., None] == np.arange(4)
        yield kit.assume(
            "points of the exponent", len(self.dimensions), ">=", 3, "add --dimensions"
        )
        yield kit.assume(
            "largest scale of the start", max(self.scales), "<=", 0.5, "choose small --scales"
        )
        yield kit.assume(
            "fewest neurons on the side of one direction",
            groups.sum(2).min(),
            ">=",
            1,
            "raise --width",
        )

    def predict(self, setting):
        units = directions(max(self.dimensions))[0]
        angles = np.arctan2(units[:, 1], units[:, 0])
        # half, since v² + ‖w‖² ≥ 2|v|‖w‖
        margins = [parity_margins(d, 2).first / 2 for d in self.dimensions]
        size = len(self.dimensions)
        return kit.law(
            angles=("direction", angles),  # of w in the plane of the two bits
            shares=("dimension direction", np.full((size, len(TOWARDS)), 0.25)),
            cosine=("dimension", np.full(size, 0.995)),
            targets=("dimension seed neuron", _first_targets(setting)),
            elsewhere=("dimension", np.full(size, 0.001)),
            margin=("dimension", margins),
        )

    def observe(self, setting, key):
        x = cubes(self.dimensions)
        y = np.sign(x[0, :, 0] * x[0, :, 1])
        rng = kit.numpy_generator(key)
        sampled = [
            [
                rng.multinomial(round(self.samples * d), np.full(len(y), 1 / len(y)))
                for _ in range(self.seeds)
            ]
            for d in self.dimensions
        ]
        # the last is the control, of the first scale
        whole = np.ones((len(self.scales), *np.shape(sampled)))
        weights = np.concatenate([whole, np.array(sampled, float)[None]])
        scales = np.array([*self.scales, self.scales[0]])
        path = jax.tree.map(
            np.asarray, kit.compiled(self.descents)(x, y, weights, scales, *setting)
        )
        axes = "scale dimension seed"
        main = jax.tree.map(lambda values: values[:-1], path)
        control = jax.tree.map(lambda values: np.broadcast_to(values[-1:], values[:-1].shape), path)
        first = starts(
            setting.noise, setting.signs, 1.0, np.array(self.dimensions)[:, None, None, None]
        )
        return kit.seen(
            w=(f"{axes} neuron input", main.params.w),
            v=(f"{axes} neuron", main.params.v),
            margin=(f"{axes} record", main.observed["margin"]),
            cosine=(f"{axes} record", main.observed["cosine"]),
            log_risk=(f"{axes} record", main.risk),
            start_w=("dimension seed neuron input", first.w),
            start_v=("dimension seed neuron", first.v),
            sample_w=(f"{axes} neuron input", control.params.w),
            sample_v=(f"{axes} neuron", control.params.v),
            sample_margin=(f"{axes} record", control.observed["margin"]),
            sample_cosine=(f"{axes} record", control.observed["cosine"]),
        )

    def descents(
        self,
        x: jax.Array,
        y: jax.Array,
        weights: jax.Array,
        scales: jax.Array,
        noise: jax.Array,
        signs: jax.Array,
    ) -> Trajectory:
        """Return the descents of all networks, over scales, dimensions and seeds, one after the other."""
        sizes = jnp.array(self.dimensions)

        def one(lane: tuple[jax.Array, ...]) -> Trajectory:
            scale, at, seed, of_examples = lane
            start = starts(noise[at, seed], signs[at, seed], scale, sizes[at])
            return train(x[at], y, start, self.lr, self.steps, of_examples)

        shape = weights.shape[:-1]
        index = np.indices(shape).reshape(3, -1)
        lanes = (scales[index[0]], index[1], index[2], weights.reshape(-1, weights.shape[-1]))
        path = jax.lax.map(one, lanes)
        return jax.tree.map(lambda values: values.reshape(*shape, *values.shape[1:]), path)

    def run_conditions(self, observed):
        end = observed["log_risk"][..., -1]
        least = np.where(np.isnan(end), -np.inf, -end).min()
        yield kit.assume(
            "least log(1/R) at the end", least, ">=", 40, "raise --steps, or lower --lr"
        )

    def derive(self, law, seen):
        """Return how networks at the end are aligned with the directions, and which weight went elsewhere."""
        units = self._units(law)
        signs = directions(units.shape[1])[1]
        ends = signed_alignment(seen.w.values, seen.v.values, units, signs)
        dims = ("scale", "dimension", "seed")
        places = {"scale": seen.scale, "dimension": seen.dimension}
        array = lambda values, *more: xarray.DataArray(np.asarray(values), places, (*dims, *more))
        placed = np.asarray((ends.nearest == law.targets.values) * ends.weights)
        return {
            "aligned": array(ends.cosine),
            "shares": array(ends.shares, "direction").assign_coords(direction=law.direction),
            "elsewhere": array(1 - placed.sum(-1)).isel(scale=0, drop=True),
            "end": seen.margin.isel(record=-1),
        }

    def _units(self, law: xarray.Dataset) -> Values:
        """Return the predicted directions of all inputs, ``(4, D)``."""
        units = np.zeros((len(TOWARDS), max(self.dimensions)))
        units[:, 0] = np.cos(law.angles)
        units[:, 1] = np.sin(law.angles)
        return units

    def judge(self, law, seen):
        yield kit.at_least(
            "cosine",
            law.cosine,
            seen.aligned,
            over="scale dimension",
            label="mean cosine with the directions, by weight",
        )
        yield kit.follows(
            "shares",
            law.shares,
            seen.shares,
            0.005,
            over="scale dimension direction",
            absolute=True,
            each=True,
            label="share of the weight at each direction",
        )
        yield kit.follows(
            "margin",
            law.margin,
            seen.end,
            0.01,  # what is left falls like 1/log(1/R), and is 0.003 at these steps
            over="scale dimension",
            each=True,
            label="normalized margin at the end",
        )
        yield kit.at_most(
            "targets",
            law.elsewhere,
            seen.elsewhere,
            label=f"share of the weight elsewhere than the start says, from ε = {self.scales[0]:g}",
        )
        yield kit.power(
            "exponent",
            law.margin,
            seen.end.mean("scale"),
            0.01,
            over="dimension",
            label="normalized margin against d",
        )

    def rivals(self, setting, law):
        axes = np.pi * np.array([0, 1, 0.5, 1.5])
        tangent = [parity_margins(d, 2).tangent / 2 for d in self.dimensions]
        counts = (law.targets.values[..., None] == np.arange(4)).mean((1, 2))
        yield kit.rival(
            "the directions ±e₁, ±e₂",
            "these are the coordinates that the label depends on",
            angles=("direction", axes),
        )
        yield kit.rival(
            "shares of the weight are shares of the neurons at the start",
            "every neuron grows alike",
            shares=("dimension direction", counts),
        )
        yield kit.rival(
            "the margin is γ₁",
            "γ₁ itself, the margin in the ℓ1 norm of |v_j| ‖w_j‖",
            margin=2 * law.margin,
        )
        yield kit.rival(
            "the margin is γ₂/2",
            "the margin of the frozen features, as if these were all",
            id="frozen",
            margin=("dimension", tangent),
        )
        yield kit.rival(
            "a neuron goes to the nearest of the four",
            "it takes the least turn",
            targets=("dimension seed neuron", _first_targets(setting, any_sign=True)),
        )

    def controls(self, seen):
        yield kit.control(
            "the directions at the start", "nothing has turned yet", w=seen.start_w, v=seen.start_v
        )
        yield kit.control(
            f"{self.samples:g} d examples",
            "a sample is not symmetric: descent ends at other networks, at another margin",
            id="sample",
            w=seen.sample_w,
            v=seen.sample_v,
            margin=seen.sample_margin,
        )

    def figure(self, law, seen, rivals):
        unit = lambda w: w / np.linalg.norm(w, axis=1, keepdims=True)
        units = self._units(law)[:, :2]
        last = {"dimension": -1, "seed": 0}
        ends = unit(seen.w.isel(scale=0, **last).values)
        begin = unit(seen.start_w.isel(last).values)
        size = np.abs(seen.v.isel(scale=0, **last).values)
        heavy = size > 0.01 * size.max()
        circle = np.linspace(0, 2 * np.pi, 100)
        logs = -seen.log_risk.isel(dimension=-1)
        gaps = 1 - (seen.margin / law.margin).isel(dimension=-1)
        late = logs.where(logs > 2)
        reach = np.array([3.0, float(late.max())])
        look = {"kind": "points"}
        from_scales = [
            kit.observed_curve(
                late.isel(scale=i, seed=0),
                gaps.isel(scale=i),
                f"start of scale {scale:g}",
                shade=0.8 * i / max(1, len(self.scales) - 1),
            )
            for i, scale in enumerate(self.scales)
        ]
        tangent = [parity_margins(d, 2).tangent / 2 for d in self.dimensions]
        yield kit.panel(
            f"Neurons turn to four directions (d = {self.dimensions[-1]})",
            "w₁/‖w‖",
            "w₂/‖w‖",
            kit.observed_curve(ends[heavy, 0], ends[heavy, 1], "at the end", **look),
            kit.observed_curve(begin[:, 0], begin[:, 1], "at the start", shade=0.8, **look),
            kit.predicted_curve(units[:, 0], units[:, 1], "predicted", **look),
            kit.predicted_curve(np.cos(circle), np.sin(circle)),
            xlim=(-1.1, 1.1),
            ylim=(-1.1, 1.1),
        )
        yield kit.panel(
            "They have the largest margin",
            "log(1/R)",
            "1 − margin/(γ₁/2)",
            *from_scales,
            kit.predicted_curve(reach, 0.2 / reach, "∝ 1/log(1/R)"),
            log="xy",
        )
        yield kit.panel(
            "It falls like 1/√d",
            "d, bits of the input",
            "normalized margin",
            kit.observed_curve(
                self.dimensions, seen.end.mean("scale").transpose("seed", "dimension"), "at the end"
            ),
            kit.predicted_curve(self.dimensions, law.margin, "γ₁/2"),
            kit.rival_curve(self.dimensions, tangent, "γ₂/2, frozen features"),
            log="xy",
        )


def _first_targets(setting: Setting, any_sign: bool = False) -> Values:
    """Return the number of the direction on whose side each neuron starts, of those of its sign, or of any."""
    noise = np.asarray(setting.noise)
    units, signs = directions(noise.shape[-1])
    products = noise @ units.T
    own = np.asarray(setting.signs)[..., None] * signs > 0
    return np.where(own | any_sign, products, -np.inf).argmax(-1)
