"""Feature learning vanishes with width in the NTK parameterization, and persists under µP.

Networks of width n are trained until the loss first falls below a fixed value. In the NTK parameterization training
becomes lazy as networks widen: hidden pre-activations, the features, move like n^(−1/2) and the tangent kernel like
1/n, while the output changes by order one. In µP the last layer starts smaller and hidden layers take steps n times as
large. In µP, and in the mean-field parameterization, which is the same without biases, features, kernel and output all
change by order one. A smaller last layer at the start is not enough: with one step size for all layers, as in the
notes' printed remedy, features move less than in the NTK parameterization.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.signals.lazy_or_rich.experiment import draw, mean_top, network, train
from steepest.nn.data import Dataset, digits, signs
from steepest.nn.networks import step_scale

CHANGES = ("output", "first layer", "second layer", "kernel")
IDS = ("output", "first", "second", "kernel")  # of their checks
SLOPES = {  # exponents of n in CHANGES
    "ntk": (0, -0.5, -0.5, -1),
    "mean-field": (0, 0, 0, 0),
    "mup": (0, 0, 0, 0),
    "printed": (0, -2, -1, -1),
}
# The next order is the kernel's own change, 12 % at n = 64 where it is lazy, over log 8.
NEXT_ORDER = 0.06
# That, and what networks that differ need: intervals of ± 0.05 whose middle moves by half as much.
SCATTERED = 0.15
REFERENCES = 3  # networks whose kernel sets the step size
REPEATS = 8  # narrow networks for each wide one, at most
WIDE = 2  # of the widest networks in each group


class Setting(NamedTuple):
    """Two classes of digits, and the step size of each parameterization in units of ``step_scale``."""

    data: Dataset
    rates: list[float]


@kit.claim
class LazyOrRich(kit.Claim[Setting]):
    """Two-hidden-layer tanh networks on two classes of digits, full-batch descent to a fixed loss."""

    parameterizations: tuple[str, ...] = kit.param(
        ("ntk", "mup", "printed"),
        "how the width enters: ntk, mup, mean-field, or printed (as the notes print the remedy)",
        scope=kit.choices(("ntk", "mup", "printed"), ("ntk", "mup"), ("ntk", "mup", "mean-field")),
    )
    widths: tuple[kit.Count, ...] = kit.param(
        (64, 192, 512),
        "width n of both hidden layers",
        unit="neurons",
        scope=kit.choices((64, 192, 512), (96, 192, 512), (64, 128, 400)),
    )
    examples: kit.Count = kit.param(
        20, "images of the digits 3 and 8", scope=kit.between(10, 30, "more change narrow networks")
    )
    target: kit.Positive = kit.param(
        0.02,
        "loss at which training stops; an output of zero has 0.5",
        scope=kit.between(0.015, 0.05, "fitted farther, narrow networks leave the first order"),
    )
    step: kit.Positive = kit.param(
        0.1,
        "step size as a share of 2/λ_max of the reference kernel",
        scope=kit.between(0.05, 0.2, "larger steps are no gradient flow"),
    )
    reference: kit.Count = kit.param(
        256, "width at which λ_max is taken", unit="neurons", scope=kit.between(128, 400)
    )
    most: kit.Count = kit.param(3000, "steps after which a network is given up", unit="steps")
    seeds: kit.Seeds = kit.param(
        18, "groups of initial networks, of two at the largest width and up to sixteen below"
    )

    kind = "limit"
    says = {
        "move like n^(−1/2)": (
            kit.literal(
                "change_ntk_first",
                "change",
                power={"width": -0.5},
                at={"parameterization": "ntk", "what": "first layer"},
            ),
            kit.literal(
                "change_ntk_second",
                "change",
                power={"width": -0.5},
                at={"parameterization": "ntk", "what": "second layer"},
            ),
        ),
        "the tangent kernel like 1/n": kit.literal(
            "change_ntk_kernel",
            "change",
            power={"width": -1},
            at={"parameterization": "ntk", "what": "kernel"},
        ),
        "persists under µP": ("change_mup_first", "change_mup_second", "change_mup_kernel"),
    }
    tiny = {"widths": (50, 60, 80), "examples": 8, "target": 0.2, "reference": 50, "seeds": 3}
    full = {
        "parameterizations": ("ntk", "mean-field", "mup", "printed"),
        "widths": (64, 128, 256, 512, 1024),  # 46 GB at 4096
        "seeds": 8,
    }
    out_of_scope = {"step": 1.5}
    precision = "float32"

    @property
    def exponents(self) -> list[tuple[float, ...]]:
        """Return the powers of n in each parameterization, of all CHANGES."""
        return [SLOPES[name] for name in self.parameterizations]

    def axes(self):
        return {"parameterization": self.parameterizations, "width": self.widths, "what": CHANGES}

    def check_fields(self) -> None:
        for name in self.parameterizations:
            if name not in SLOPES:
                raise kit.UserError(f"--parameterizations takes {', '.join(SLOPES)}, got {name}")

    def setting(self, key):
        raw = signs(digits((3, 8), self.examples))
        pixels = np.asarray(raw.x)
        data = Dataset(pixels - pixels.mean(0), np.asarray(raw.y), "centred digits")
        nets = [network(data.d, name, self.reference) for name in self.parameterizations]
        weights = draw(kit.numpy_generator(key), nets[0], REFERENCES)
        stable = [2 / (mean_top(net, weights, data) * step_scale(net)) for net in nets]
        return Setting(data, [self.step * rate for rate in stable])

    def hypotheses(self, setting):
        smaller = "choose a --step below 1: above, descent catapults"
        wider = "the exponents are for wide networks"
        yield kit.assume("step size / (2/λ_max)", self.step, "<", 1, smaller)
        yield kit.assume("smallest width", min(self.widths), ">=", 50, wider)

    def predict(self, setting):
        laws = {"change": self.powers(self.exponents)}
        if "printed" in self.parameterizations:
            laws["top"] = self.growing(1.0)
        return kit.law(**laws)

    def powers(self, exponents: Sequence[Sequence[float]] | kit.Values) -> tuple[str, np.ndarray]:
        """Return n to these powers in units of the smallest width, from ``(parameterization, what)``."""
        by_width = [self.growing(1.0)[1] ** exponent for exponent in np.ravel(exponents)]
        shape = (*np.shape(exponents), len(self.widths))
        return ("parameterization what width", np.reshape(by_width, shape))

    def growing(self, exponent: float) -> tuple[str, np.ndarray]:
        """Return n to a power, in units of the smallest width."""
        return ("width", (np.array(self.widths, float) / self.widths[0]) ** exponent)

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        data = setting.data
        ends = []
        for width in self.widths:
            # narrow networks scatter more and cost less: several for each wide one
            several = WIDE * min(REPEATS, max(self.widths) // width)
            nets = [network(data.d, name, width) for name in self.parameterizations]
            weights = draw(rng, nets[0], self.seeds * several)
            ends.append(
                [
                    train(net, weights, data, rate, self.target, self.most)
                    for net, rate in zip(nets, setting.rates, strict=True)
                ]
            )
        by_seed = lambda values: values.reshape(self.seeds, -1, *values.shape[1:])
        changes = [[by_seed(end.change).mean(1) for end in row] for row in ends]
        steps = [[by_seed(end.steps).mean(1) for end in row] for row in ends]
        loss = [[by_seed(end.loss).max(1) for end in row] for row in ends]
        top = [
            [by_seed(np.linalg.eigvalsh(end.kernel)[:, -1]).mean(1) for end in row] for row in ends
        ]
        dims = "width parameterization seed"
        return kit.seen(
            change=(f"{dims} what", np.array(changes, float)),
            steps=(dims, steps),
            loss=(dims, loss),
            top=(dims, np.array(top, float)),
        )

    def run_conditions(self, observed):
        reached = observed["loss"].max() / self.target
        yield kit.assume("largest loss at the end / target", reached, "<=", 1, "raise --most")

    def derive(self, law, seen):
        output = seen.change.sel(what="output", drop=True)
        return {"moved": seen.change.where(seen.what == "output", seen.change / output)}

    def judge(self, law, seen):
        checks = []
        for name in self.parameterizations:
            # printed features move by their product with a last layer whose start is as large as what it learns
            features = SCATTERED if name == "printed" else NEXT_ORDER
            margins = (0.1, features, features, SCATTERED)
            for what, id, margin in zip(CHANGES, IDS, margins, strict=True):
                place = {"parameterization": name, "what": what}
                per_output = "" if what == "output" else " / output"
                check = kit.power(
                    f"change_{name.replace('-', '_')}_{id}",
                    law.change.sel(place, drop=True),
                    seen.moved.sel(place, drop=True),
                    margin,
                    over="width",
                    label=f"{name}: change of the {what}{per_output} against width",
                )
                checks.append(check)
        if "top" in law:
            grows = kit.power(
                "printed_top",
                law.top,
                seen.top.sel(parameterization="printed", drop=True),
                0.08,  # a few per cent at 64 neurons, over log 8, and the interval: λ_max scatters like 1/√n
                over="width",
                label="printed: λ_max at the start against width",
            )
            checks.append(grows)
        return checks

    def rivals(self, setting, law):
        rivals = self.rivals_of_changes()
        if "printed" in self.parameterizations:
            rich = [
                (0.0,) * len(CHANGES) if name == "printed" else SLOPES[name]
                for name in self.parameterizations
            ]
            rivals += [
                kit.rival(
                    "the printed remedy learns features",
                    "the notes print it as the remedy",
                    id="printed_is_rich",
                    change=self.powers(rich),
                ),
                kit.rival(
                    "a step of order one is stable for the printed remedy",
                    "a reading of the printed step sizes",
                    id="printed_step",
                    top=self.growing(0.0),
                ),
            ]
        return rivals

    def rivals_of_changes(self) -> list[kit.Rival]:
        """Return other exponents of the changes, except those that are the theory's own here."""
        theory = np.array(self.exponents, float)
        kernel = lambda power: np.column_stack(
            [theory[:, :-1], np.where(theory[:, 1] == SLOPES["ntk"][1], power, theory[:, -1])]
        )
        candidates = (
            (
                "all_lazy",
                "wide networks are kernels",
                "every parameterization is lazy",
                np.tile(np.array(SLOPES["ntk"], float), (len(theory), 1)),
            ),
            (
                "all_rich",
                "the loss is the same at the end",
                "every parameterization learns features",
                0 * theory,
            ),
            (
                "root_everywhere",
                "so fluctuates an average over n neurons",
                "every change falls like n^(-1/2)",
                0 * theory - 0.5,
            ),
            (
                "kernel_root",
                "the bound that is proved for every activation",
                "the NTK's kernel changes like n^(-1/2)",
                kernel(-0.5),
            ),
            (
                "kernel_faster",
                "the bound and perturbation theory multiplied",
                "the NTK's kernel changes like n^(-3/2)",
                kernel(-1.5),
            ),
        )
        return [
            kit.rival(label, why, id=id, change=self.powers(exponents))
            for id, why, label, exponents in candidates
            if not np.array_equal(exponents, theory)
        ]

    def controls(self, seen):
        others = self.others()
        yield kit.control(
            "networks of another parameterization in the place of each",
            "the parameterization decides how far networks move",
            id="other_parameterization",
            change=seen.change.copy(data=seen.change.isel(parameterization=others)),
            top=seen.top.copy(data=seen.top.isel(parameterization=others)),
        )
        yield self.one_width(seen)

    def others(self) -> list[int]:
        """Return for each parameterization the place of the next before it of another law, around the list.

        Those of one law are the same networks, whose places can be changed without anything to see.
        """
        laws = self.exponents
        count = len(laws)
        before = lambda i: [(i - step) % count for step in range(1, count)]
        return [next((j for j in before(i) if laws[j] != laws[i]), i) for i in range(count)]

    def one_width(self, seen: xarray.Dataset) -> kit.Control:
        """Yield the control of networks that are all as wide as the narrowest."""
        narrow = seen.change.isel(width=[0] * len(self.widths))
        return kit.control(
            "the narrowest networks in the place of all",
            "they all have the same width",
            change=narrow.assign_coords(width=seen.width),
        )

    def figure(self, law, seen, rivals):
        measured = seen.change.mean("seed")
        first = measured.isel(width=0, drop=True)
        return tuple(
            kit.curves(
                f"Change of the {what}",
                (first * law.change).sel(what=what, drop=True),
                measured.sel(what=what, drop=True),
                over="width",
                by="parameterization",
                x="width n",
                y=f"change of the {what}",
                log="xy",
            )
            for what in (*CHANGES[1:], CHANGES[0])  # what tells them apart comes first
        )
