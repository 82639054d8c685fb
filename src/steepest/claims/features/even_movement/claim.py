"""If only hidden weights are trained, all neurons of a wide ReLU network move nearly equally far.

If both layers are trained, the farthest output weight moves farther and farther beyond the root mean square as the
width m grows, like √(log m). To first order a hidden neuron moves by its output weight times a sum of the examples on
which it is active. This sum is bounded, so the farthest neuron moves little more than the root mean square, and all
neurons move like m^(−1/2). An output weight moves in proportion to its neuron's activity, which is nearly a Gaussian
over neurons. The largest of m Gaussians grows like √(2 log m). So single neurons do shoot off if both layers train, but
slowly. Both movements are predicted at each width from the kernel's own descent, without a free constant. Networks are
compared at equal risk.
"""

from typing import Annotated, NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.features.even_movement.experiment import Extremes, extremes
from steepest.claims.features.even_movement.theory import (
    far_hidden,
    far_outputs,
    gaussian_extremes,
    movements,
)
from steepest.nn.data import digits, on_sphere, signs
from steepest.nn.types import Values

Width = Annotated[int, kit.Within(8, 100_000)]


WIDE = 60
"""Neurons from which gates that flip count for less than 1 % in the farthest hidden neuron: 4 % at 16."""


class Setting(NamedTuple):
    """Images of two digits, centred and of unit length, ``(n, d)``, and their labels ±1, ``(n,)``."""

    x: Values
    y: Values


@kit.claim
class EvenMovement(kit.Claim[Setting]):
    """Two-layer ReLU networks on the digits 3 and 8, logistic loss, outputs zero at the start, to a fixed risk."""

    widths: tuple[Width, ...] = kit.param(
        (16, 64, 256, 1024),
        "neurons m, in pairs of opposite output weights",
        unit="neurons",
        scope=kit.choices(
            (16, 64, 256, 1024),
            (20, 60, 180, 540),
            (24, 80, 240, 720),
            why="below 16 orders beyond the second count",
        ),
    )
    examples: Annotated[int, kit.Within(4, 350)] = kit.param(
        60, "images of the digits 3 and 8, n", scope=kit.between(30, 120, "more take time")
    )
    target: Annotated[float, kit.Within(0.001, 0.65)] = kit.param(
        0.15,
        "risk at which descent stops; at the start log 2",
        scope=kit.between(
            0.12, 0.3, "farther from the start the kernel moves; few steps leave the risk to chance"
        ),
    )
    step: Annotated[float, kit.Within(0.01, 10)] = kit.param(
        0.5,
        "step size over 4n/λ_max of the kernel; 2 is the limit",
        scope=kit.between(0.2, 0.6, "descents of few steps end at other risks than the kernel's"),
    )
    seeds: kit.Seeds = kit.param(16, "groups of networks of each width")
    flipped: kit.Fraction = kit.param(
        0.0,
        "share of the labels that is flipped",
        scope=kit.between(0.0, 0.05, "more labels take many more steps"),
    )

    kind = "limit"
    says = {
        "all neurons of a wide ReLU network move nearly equally far": ("inner", "movement"),
        "the farthest output weight moves farther and farther beyond the root mean square": "outer",
    }
    tiny = {"widths": (16, 32, 64), "examples": 8, "target": 0.5, "seeds": 3}
    full = {"widths": (16, 64, 256, 1024, 4096, 16384), "examples": 200, "seeds": 24}
    out_of_scope = {"step": 3.0}

    def axes(self):
        return {"width": self.widths}

    def check_fields(self) -> None:
        if len(set(self.widths)) < 3 or sorted(self.widths) != list(self.widths):
            raise kit.UserError(
                f"growth with width needs at least three increasing --widths, got {self.widths}; try 64 256 1024"
            )

    def setting(self, key):
        rng = kit.numpy_generator(key)
        data = signs(on_sphere(digits((3, 8))))
        chosen = rng.permutation(data.n)[: self.examples]
        turned = np.where(rng.random(self.examples) < self.flipped, -1.0, 1.0)
        return Setting(np.asarray(data.x)[chosen], np.asarray(data.y)[chosen] * turned)

    def hypotheses(self, setting):
        closest = float(np.triu(setting.x @ setting.x.T, 1).max())
        yield kit.assume(
            "step / largest stable one", self.step / 2, "<", 1, "larger steps are no descent"
        )
        yield kit.assume(
            "largest cosine of two images",
            closest,
            "<",
            1 - 1e-9,
            "the same image twice may have two labels",
        )

    def predict(self, setting):
        moved = movements(*setting, self.step, self.target)
        far = far_hidden(moved, self.widths)
        return kit.law(
            inner=("width", far / np.sqrt(np.mean(moved.hidden**2))),
            # far is √m times a movement
            movement=("width", far / np.sqrt(self.widths)),
            outer=("width", far_outputs(moved, self.widths)),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        x, y = setting
        runs = [
            [extremes(x, y, m, self.step, self.target, rng) for m in self.widths]
            for _ in range(self.seeds)
        ]
        by_name = dict(zip(Extremes._fields, np.moveaxis(np.array(runs), -1, 0), strict=True))
        return kit.seen(**{name: ("seed width", values) for name, values in by_name.items()})

    def run_conditions(self, observed):
        left = observed["risk"].max() / self.target
        yield kit.assume("largest risk at the end / target", left, "<=", 1, "raise --target")

    def judge(self, law, seen):
        wide = law.width >= min(WIDE, max(self.widths))
        yield kit.follows(
            "inner",
            law.inner.where(wide, drop=True),
            seen.inner.where(wide, drop=True),
            0.03,
            label=f"farthest hidden neuron over the rms from {WIDE} neurons on, hidden layer trained",
        )
        yield kit.power(
            "movement",
            law.movement,
            seen.movement,
            0.06,  # networks of 16 neurons move a tenth more than the limit's kernel, 0.02
            over="width",
            label="how far the farthest hidden neuron goes, in width",
        )
        yield kit.follows(
            "outer",
            law.outer,
            seen.outer,
            0.05,
            label="farthest output weight over the rms, both layers trained",
        )
        yield kit.at_least(
            "mean_field",
            0.0,
            (seen.mean_both - seen.mean_inner).isel(width=-1, drop=True),
            label="mean-field, widest: farthest neuron / rms, both layers − only the hidden layer",
        )

    def rivals(self, setting, law):
        yield from self.rivals_of_extremes(setting, law)
        yield from self.rivals_of_growth(law)

    def rivals_of_extremes(self, setting: Setting, law):
        """Return wrong theories of how far the farthest weight goes beside the others."""
        moved = movements(*setting, self.step, self.target)
        gaussian = ("width", gaussian_extremes(self.widths))
        yield kit.rival(
            "output weights move as evenly as hidden neurons",
            "all weights follow one gradient",
            outer=law.inner,
        )
        yield kit.rival(
            "hidden neurons have Gaussian extremes",
            "features of random neurons are Gaussian",
            id="gaussian_hidden",
            inner=gaussian,
        )
        yield kit.rival(
            "output weights have exactly Gaussian extremes",
            "a sum over many examples is Gaussian, but these are rectified and alike",
            outer=gaussian,
        )
        yield kit.rival(
            "output weights to first order",
            "neurons of wide networks hardly turn while they learn",
            id="first_order",
            outer=("width", far_outputs(moved, self.widths, second=False)),
        )

    def rivals_of_growth(self, law):
        """Return wrong theories of the growth with width."""
        growth = law.width / law.width[0]
        yield kit.rival(
            "the farthest output weight grows like m^(1/12)",
            "from 64 to 4096 neurons √(log m) grows about as fast",
            id="twelfth_root",
            outer=law.outer[0] * growth ** (1 / 12),
        )
        yield kit.rival(
            "output weights have extremes of log m",
            "as the largest of variables with exponential tails",
            outer=law.outer[0] * np.log(law.width) / np.log(law.width[0]),
        )
        yield kit.rival(
            "no growth with width",
            "features have a law that does not depend on width",
            outer=law.outer[0] * growth**0,
            inner=law.inner[0] * growth**0,
        )
        yield kit.rival(
            "neurons move as far at any width",
            "each neuron must turn to fit",
            movement=law.movement[0] * growth**0,
        )
        yield kit.rival(
            "neurons move like 1/m",
            "the output is a sum over m",
            id="mean_field_movement",
            movement=law.movement[0] / growth,
        )

    def controls(self, seen):
        yield kit.control(
            "output weights for hidden neurons, and the reverse",
            "which layers train decides",
            id="layers_swapped",
            inner=seen.outer,
            outer=seen.both_hidden,
            mean_inner=seen.mean_both,
            mean_both=seen.mean_inner,
        )
        yield kit.control(
            "mean-field networks",
            "outputs divided by m need neurons that move as far at any width",
            id="mean_field",
            movement=seen.mean_movement,
        )

    def figure(self, law, seen, rivals):
        yield kit.curves(
            "The farthest output weight",
            law.outer,
            seen.outer,
            over="width",
            x="width m",
            y="largest |Δa| over the rms",
            rivals={
                "first order": rivals["first_order"].outer,
                "m^(1/12)": rivals["twelfth_root"].outer,
            },
            log="x",
        )
        yield kit.curves(
            "The farthest hidden neuron",
            law.inner,
            seen.inner,
            over="width",
            x="width m",
            y="largest ‖Δw‖ over the rms",
            rivals={"Gaussian": rivals["gaussian_hidden"].inner},
            log="x",
            ylim=(1, None),
        )
        yield kit.curves(
            "How far it goes",
            law.movement,
            seen.movement,
            over="width",
            x="width m",
            y="largest ‖Δw‖",
            rivals={"1/m": rivals["mean_field_movement"].movement},
            log="xy",
        )
