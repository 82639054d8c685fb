"""Feature learning vanishes with width in the NTK parameterization, and persists under µP.

Networks of width n are trained until the loss first falls below a fixed value. In the NTK parameterization training
becomes lazy as networks widen: hidden pre-activations, the features, move like n^(−1/2) and the tangent kernel like
1/n, while the output changes by order one. In µP the last layer starts smaller and hidden layers take steps n times as
large. In µP, and in the mean-field parameterization, which is the same without biases, features, kernel and output all
change by order one.
"""

from collections.abc import Iterator

import numpy as np
import xarray

from steepest import kit
from steepest.claims.signals._trained_widths import CHANGES, NEXT_ORDER, SLOPES, TrainedWidths

NAMES = ("ntk", "mup", "mean-field")


@kit.claim
class LazyOrRich(TrainedWidths):
    """Two-hidden-layer tanh networks on two classes of digits, full-batch descent to a fixed loss."""

    parameterizations: tuple[str, ...] = kit.param(
        ("ntk", "mup"),
        "how the width enters: ntk, mup or mean-field",
        scope=kit.choices(("ntk", "mup"), ("ntk", "mup", "mean-field")),
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
        "parameterizations": ("ntk", "mean-field", "mup"),
        "widths": (64, 128, 256, 512, 1024),  # 46 GB at 4096
        "seeds": 8,
    }
    out_of_scope = {"step": 1.5}
    precision = "float32"

    @property
    def trained(self) -> tuple[str, ...]:
        return self.parameterizations

    @property
    def exponents(self) -> list[tuple[float, ...]]:
        """Return the powers of n in each parameterization, of all CHANGES."""
        return [SLOPES[name] for name in self.parameterizations]

    def axes(self):
        return {"parameterization": self.parameterizations, "width": self.widths, "what": CHANGES}

    def check_fields(self) -> None:
        for name in self.parameterizations:
            if name not in NAMES:
                raise kit.UserError(f"--parameterizations takes {', '.join(NAMES)}, got {name}")

    def predict(self, setting):
        return kit.law(change=("parameterization what width", self.powers(self.exponents)))

    def judge(self, law, seen):
        for name in self.parameterizations:
            yield from self.judge_changes(law, seen, name, NEXT_ORDER)

    def rivals(self, setting, law):
        theory = np.array(self.exponents, float)
        lazy = np.tile(np.array(SLOPES["ntk"], float), (len(theory), 1))
        falls = theory[:, 1] == SLOPES["ntk"][1]
        kernel = lambda power: np.column_stack(
            [theory[:, :-1], np.where(falls, power, theory[:, -1])]
        )
        proved = "the bound that is proved for every activation"
        both = "the bound and perturbation theory multiplied"
        wrong = lambda label, why, id, exponents: self.wrong(theory, label, why, id, exponents)
        yield from wrong(
            "every parameterization is lazy", "wide networks are kernels", "all_lazy", lazy
        )
        yield from wrong(
            "every parameterization learns features",
            "the loss is the same at the end",
            "all_rich",
            0 * theory,
        )
        yield from wrong(
            "every change falls like n^(-1/2)",
            "so fluctuates an average over n neurons",
            "root_everywhere",
            0 * theory - 0.5,
        )
        yield from wrong(
            "the NTK's kernel changes like n^(-1/2)", proved, "kernel_root", kernel(-0.5)
        )
        yield from wrong(
            "the NTK's kernel changes like n^(-3/2)", both, "kernel_faster", kernel(-1.5)
        )

    def wrong(
        self, theory: kit.Values, label: str, why: str, id: str, exponents: kit.Values
    ) -> Iterator[kit.Rival]:
        """Yield other exponents of the changes, unless they are the theory's own here."""
        if not np.array_equal(exponents, theory):
            change = ("parameterization what width", self.powers(exponents))
            yield kit.rival(label, why, id=id, change=change)

    def controls(self, seen):
        yield kit.control(
            "networks of another parameterization in the place of each",
            "the parameterization decides how far networks move",
            id="other_parameterization",
            change=seen.change.copy(data=seen.change.isel(parameterization=self.others())),
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
        """Return the control of networks that are all as wide as the narrowest."""
        narrow = seen.change.isel(width=[0] * len(self.widths))
        return kit.control(
            "the narrowest networks in the place of all",
            "they all have the same width",
            change=narrow.assign_coords(width=seen.width),
        )

    def figure(self, law, seen, rivals):
        measured = seen.change.mean("seed")
        first = measured.isel(width=0, drop=True)
        for what in (*CHANGES[1:], CHANGES[0]):  # what tells them apart comes first
            yield kit.curves(
                f"Change of the {what}",
                (first * law.change).sel(what=what, drop=True),
                measured.sel(what=what, drop=True),
                over="width",
                by="parameterization",
                x="width n",
                y=f"change of the {what}",
                log="xy",
            )
