"""Doubling a class of predictors costs empirical risk minimization about (log 2)/2ε² examples.

The right predictor has accuracy ½ + ε, all others are worthless, and a class of twice the size has names of one more
bit. If names are charged for their length, only the bits of the right predictor's name cost examples. With b bits one
can name 2^b predictors. A worthless predictor is right on m examples as often as a fair coin, and the luckiest of them
is right on about m/2 + √(m b log 2/2). For many bits the right predictor, with (½ + ε)m, is ahead once m exceeds b (log
2)/2ε²: what counts is the length of the names in the class. If every name is charged √(length · (log 2)/2m), the luck
of long names is paid for. What the right predictor needs is then set by the length of its own name, with a surcharge.
Here names are sets of bits, and predictors are parities.
"""

from typing import Annotated

import numpy as np

from steepest import kit
from steepest.claims.margins.finite_class_erm.experiment import Study, needed_examples
from steepest.claims.margins.finite_class_erm.theory import thresholds

COPIES = 3  # bits that names are read to, in the control whose names are copies
Edge = Annotated[float, kit.Within(0.03, 0.3)]
Length = Annotated[int, kit.Within(1, 14)]


@kit.claim
class FiniteClassErm(kit.Claim[None]):
    """Parities of uniform bits with noisy labels: least empirical risk over all sets, by a Walsh transform."""

    edges: tuple[Edge, ...] = kit.param(
        (0.1, 0.14, 0.2),
        "ε of the right predictor",
        scope=kit.choices((0.1, 0.14, 0.2), (0.08, 0.12, 0.2), (0.09, 0.13, 0.2)),
    )
    bits: tuple[Length, ...] = kit.param(
        (5, 7, 9, 11),
        "bits of the longest name, and of the inputs",
        unit="bits",
        scope=kit.choices((5, 7, 9, 11), (5, 8, 11), (5, 7, 11)),
    )
    lengths: tuple[Length, ...] = kit.param(
        (2, 3, 5),
        "bits of the right function's own name",
        unit="bits",
        scope=kit.choices((2, 3, 5), (2, 4, 5), why="lengths nearer by do not tell its power"),
    )
    ones: kit.Fraction = kit.param(0.5, "chance of a one in the inputs")
    seeds: kit.Seeds = kit.param(20, "groups of draws")
    draws: kit.Count = kit.param(100, "data sets of each group and size")

    kind = "theorem"
    says = {
        "Doubling a class of predictors costs empirical risk minimization about (log 2)/2ε² examples": (
            "threshold",
            "price",
        ),
        "only the bits of the right predictor's name cost examples": "own_name",
    }
    tiny = {"edges": (0.14, 0.2), "bits": (4, 6, 8), "lengths": (2, 4), "seeds": 4, "draws": 30}
    full = {"bits": (5, 7, 9, 11, 13), "seeds": 40, "draws": 200}
    out_of_scope = {"ones": 0.3}

    @property
    def edge(self) -> float:
        """Return the ε at which names are charged: the middle one."""
        return self.edges[len(self.edges) // 2]

    def axes(self):
        return {"edge": self.edges, "bits": self.bits, "length": self.lengths}

    def check_fields(self) -> None:
        if max(self.lengths) > min(self.bits):
            raise kit.UserError(
                f"the right name has up to {max(self.lengths)} bits, and some class none longer than {min(self.bits)}; "
                "choose --bits above --lengths"
            )

    def hypotheses(self, setting):
        correlation = abs(1 - 2 * self.ones)
        fair = "other predictors are worthless only where inputs are uniform: choose --ones 0.5"
        yield kit.assume("largest correlation of two parities", correlation, "==", 0, fair)

    def predict(self, setting):
        return kit.law(
            threshold=("edge bits", [self._thresholds(edge) for edge in self.edges]),
            # 2^b coins beat the edge ε with chances near e^(−2mε²): log 2/2ε² examples a bit
            price=("edge", np.log(2) / (2 * np.array(self.edges) ** 2)),
            charged=(
                "length bits",
                [self._thresholds(self.edge, length, 1.0) for length in self.lengths],
            ),
        )

    def _thresholds(self, edge: float, length: int = 1, penalty: float = 0.0) -> np.ndarray:
        return thresholds(edge, length, max(self.bits), penalty)[list(self.bits)]

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        study = Study(self.bits, self.seeds, self.draws, self.ones, max(self.bits))
        longest = max(self.lengths)
        threshold = [needed_examples(rng, study, edge, longest, (0.0,))[0] for edge in self.edges]
        by_length = [
            needed_examples(rng, study, self.edge, length, (1.0, 0.0)) for length in self.lengths
        ]
        charged, uncharged = np.swapaxes(by_length, 0, 1)
        copies = study._replace(read=COPIES)
        copied = [needed_examples(rng, copies, edge, longest, (0.0,))[0] for edge in self.edges]
        return kit.seen(
            threshold=("edge bits seed", threshold),
            charged=("length bits seed", charged),
            uncharged=("length bits seed", uncharged),
            copied=("edge bits seed", copied),
        )

    def derive(self, law, seen):
        """Return what a further bit costs, from the shortest names to the longest."""
        ends = seen.threshold.isel(bits=[0, -1]).diff("bits").isel(bits=0, drop=True)
        return {"price": ends / (self.bits[-1] - self.bits[0])}

    def judge(self, law, seen):
        yield kit.follows(
            "threshold",
            law.threshold,
            seen.threshold,
            0.07,  # parities are independent in pairs only: 2 per cent; by chance as much and more
            over="edge bits",
            label="examples with which the right of 2^b predictors has the least risk",
        )
        yield kit.follows(
            "price",
            law.price,
            seen.price,
            (
                0.8,
                1.05,
            ),  # the law is of many bits and small ε; the exact thresholds differ by 0.89 to 0.91
            over="edge",
            label="examples that a further bit costs",
        )
        yield kit.follows(
            "own_name",
            law.charged,
            seen.charged,
            0.1,  # chances are ragged in m, and the line through them depends on where they are taken
            over="length bits",
            label=f"ε = {self.edge:g}, names charged: examples, by own and longest length",
        )

    def rivals(self, setting, law):
        first = law.bits * np.log(2)
        yield kit.rival(
            "b log 2/2ε², from the first bit on",
            "as the bound has it",
            id="first_order",
            threshold=first / (2 * law.edge**2) + 0 * law.threshold,
            charged=law.length * np.log(2) / (2 * self.edge**2) + 0 * law.charged,
        )
        yield kit.rival(
            "1/2ε² a bit",
            "a bit is a bit",
            price=law.price / np.log(2),
            threshold=law.threshold / np.log(2),
        )
        yield kit.rival(
            "2 log(4N)/ε²",
            "all risks must be within ε/2 of their means",
            threshold=2 * (first + np.log(4)) / law.edge**2 + 0 * law.threshold,
            price=4 * law.price,
        )
        yield kit.rival(
            "∝ 1/ε",
            "twice the edge is twice as easily seen",
            threshold=law.threshold * law.edge / self.edge,
            price=law.price * law.edge / self.edge,
        )
        yield kit.rival(
            "∝ √N",
            "there are 2^b predictors to tell apart",
            id="birthdays",
            threshold=law.threshold.isel(bits=0) * 2 ** ((law.bits - self.bits[0]) / 2),
        )
        yield kit.rival(
            "charged names need what the longest needs",
            "the class is searched to its longest name",
            charged=law.threshold.sel(edge=self.edge).drop_vars("edge") + 0 * law.charged,
        )

    def controls(self, seen):
        yield kit.control(
            f"names that are read to the {COPIES}rd bit",
            f"names of one function count once: there are 2^{COPIES} of them",
            id="copies",
            threshold=seen.copied,
        )
        yield kit.control(
            "the same data, names not charged",
            "the luckiest of all long names is ahead of a short one",
            charged=seen.uncharged,
        )

    def figure(self, law, seen, rivals):
        length = self.lengths[0]
        bits = law.bits.values
        yield kit.curves(
            "Each bit of a name costs about log 2/2ε²",
            law.threshold,
            seen.threshold,
            over="bits",
            by="edge",
            x="bits b of a name",
            y="examples",
            name="ε = {}",
            rivals={"b log 2/2ε²": rivals["first_order"].threshold},
            ylim=(0, None),
        )
        yield kit.panel(
            f"A name of {length} bits, ε = {self.edge:g}: charged by length, long ones do not matter",
            "bits of the longest name",
            "examples",
            kit.observed_curve(
                bits, seen.charged.mean("seed")[0], "√(length) charged", kind="points"
            ),
            kit.predicted_curve(bits, law.charged[0], "theory"),
            kit.observed_curve(
                bits, seen.uncharged.mean("seed")[0], "least risk", kind="points", shade=0.8
            ),
            kit.predicted_curve(bits, law.threshold.sel(edge=self.edge), ""),
            ylim=(0, None),
        )
