"""A last layer that starts smaller makes wide networks lazier if all layers have one step size.

This is the remedy for laziness that Hanin's notes print: weights of variance 1/n in hidden layers of width n, and 1/n²
in the last layer. The tangent kernel grows like n, so stable steps are of order 1/n. With such steps the features, the
hidden pre-activations, move like n^(−2) and 1/n while the output changes by order one. In the NTK parameterization
they move like n^(−1/2). In µP the last layer starts as small, but each layer has a step size of its own, and features
move by order one.
"""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.signals._trained_widths import CHANGES, SCATTERED, SLOPES, TrainedWidths

PRINTED = ("printed",)
WORLDS = ("mup", "printed")  # that are trained


@kit.claim
class PrintedRemedy(TrainedWidths):
    """Two-hidden-layer tanh networks on two classes of digits, full-batch descent to a fixed loss."""

    kind = "limit"
    says = {
        "makes wide networks lazier": ("change_printed_first", "change_printed_second"),
        "The tangent kernel grows like n": kit.literal("printed_top", "top", power={"width": 1}),
    }
    tiny = {"widths": (50, 60, 80), "examples": 8, "target": 0.2, "reference": 50, "seeds": 3}
    full = {"widths": (64, 128, 256, 512, 1024), "seeds": 8}
    out_of_scope = {"step": 1.5}
    precision = "float32"

    @property
    def trained(self) -> tuple[str, ...]:
        return WORLDS

    def axes(self):
        return {"parameterization": PRINTED, "width": self.widths, "what": CHANGES}

    def predict(self, setting):
        return kit.law(change=self.changes(SLOPES["printed"]), top=("width", self.growth))

    def changes(self, exponents: tuple[float, ...]) -> tuple[str, np.ndarray]:
        """Return n to the powers of all CHANGES, as a law."""
        return ("parameterization what width", self.powers([exponents]))

    def observe(self, setting, key):
        both = super().observe(setting, key)
        of_world = lambda name, world: np.take(both[name], [WORLDS.index(world)], axis=1)
        dims = "width parameterization seed"
        return kit.seen(
            change=(f"{dims} what", of_world("change", "printed")),
            change_mup=(f"{dims} what", of_world("change", "mup")),
            top=(dims, of_world("top", "printed")),
            top_mup=(dims, of_world("top", "mup")),
            loss=("width world seed", both["loss"]),
            steps=("width world seed", both["steps"]),
        )

    def judge(self, law, seen):
        # features move by their product with a last layer whose start is as large as what it learns
        yield from self.judge_changes(law, seen, "printed", SCATTERED)
        yield kit.power(
            "printed_top",
            law.top,
            seen.top.isel(parameterization=0, drop=True),
            0.08,  # a few per cent at 64 neurons, over log 8, and the interval: λ_max scatters like 1/√n
            over="width",
            label="printed: λ_max at the start against width",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "networks are as lazy as in the NTK parameterization",
            "wide networks are kernels",
            id="as_lazy",
            change=self.changes(SLOPES["ntk"]),
        )
        yield kit.rival(
            "every change falls like n^(-1/2)",
            "so fluctuates an average over n neurons",
            id="root_everywhere",
            change=self.changes((-0.5,) * len(CHANGES)),
        )
        yield kit.rival(
            "the printed remedy learns features",
            "the notes print it as the remedy",
            id="printed_is_rich",
            change=self.changes((0.0,) * len(CHANGES)),
        )
        yield kit.rival(
            "a step of order one is stable for the printed remedy",
            "a reading of the printed step sizes",
            id="printed_step",
            top=xarray.ones_like(law.top),
        )

    def controls(self, seen):
        yield kit.control(
            "networks in µP",
            "their last layer starts as small, but each layer has a step size of its own",
            change=seen.change_mup,
            top=seen.top_mup,
        )
        narrow = seen.change.isel(width=[0] * len(self.widths))
        yield kit.control(
            "the narrowest networks in the place of all",
            "they all have the same width",
            change=narrow.assign_coords(width=seen.width),
        )

    def figure(self, law, seen, rivals):
        measured = seen.change.isel(parameterization=0, drop=True).mean("seed")
        first = measured.isel(width=0, drop=True)
        yield kit.curves(
            "What the printed remedy moves",
            first * law.change.isel(parameterization=0, drop=True),
            measured,
            over="width",
            by="what",
            x="width n",
            y="change",
            log="xy",
        )
