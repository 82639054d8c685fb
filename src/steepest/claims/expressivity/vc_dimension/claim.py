"""A deep ReLU network can shatter more points than it has weights.

The sine sin ωx has one parameter, ω, and shatters the points ½, ¼, …, 2⁻ⁿ. So the number of parameters does not measure
the capacity of a class. Halfspaces of d dimensions, with d + 1 parameters, have the VC dimension d + 1. The sine with
one parameter has an infinite VC dimension, although not on equally spaced points. A ReLU network of depth L that reads
the bits of a number one after the other stores more labels than its p weights, about a seventh of pL. Descent finds
less. Adam fits about as many random labels as a network of one hidden layer has weights, between half and twice as
many. On frozen features p weights separate random labels of 2p points half of the time.
"""

from typing import Annotated, NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.expressivity._halfspaces import digit_scores, halfspace_dichotomies
from steepest.claims.expressivity.vc_dimension.experiment import (
    all_tables,
    shallow_reader,
    sine_signs,
    spaced_patterns,
    wrong_labels,
)
from steepest.claims.expressivity.vc_dimension.figure import panels_of_dichotomies
from steepest.claims.expressivity.vc_dimension.labels import (
    fitted,
    separated_features,
    shallow_weights,
)
from steepest.geometry import bits_needed, central_cell_count, general_position, weights_used
from steepest.nn.types import Values

HALF = 0.5  # counts are whole numbers
WIDE = 4.0  # steps of a control's network, in units of the right ones
SMALL = (3, 3)
"""Rows and columns of a table of which all 512 are tried."""
WIDTHS = (0.5, 1.0, 2.0)
"""Of the networks that are trained, in units of ``width``."""
INPUTS = 5
"""Dimensions of their inputs."""
STARTS = 2
FILLED = (0.5, 2.0)
"""Points for each weight in sets on which they are trained."""
FROZEN = (10, 30)
"""Numbers p of frozen features."""
RATIOS = (1.5, 2.0, 2.5)
"""Points for each of them."""
DOUBLE = 53
"""Binary digits of a double."""


class Setting(NamedTuple):
    """Tables of random labels of each size, and digits in a few principal components."""

    tables: list[Values]  # (labellings, rows, columns) of each size
    points: list[Values]  # (seeds, most, d) for each d
    normal: Values  # points for training, (networks, most, INPUTS)
    labels: Values  # ±1, (networks, most)
    starts: Values  # (widths, networks, STARTS, most neurons, INPUTS + 2), zero where a network is narrower


@kit.claim
class VcDimension(kit.Claim[Setting]):
    """Sines at halved and at equally spaced points, halfspaces on digits, and networks that look labels up."""

    sine_points: Annotated[int, kit.Within(3, 16)] = kit.param(
        12,
        "n, points ½, …, 2⁻ⁿ, of which all 2ⁿ labellings are tried",
        unit="points",
        scope=kit.between(4, 14, "more take memory"),
    )
    spaced: Annotated[int, kit.Within(4, 40)] = kit.param(
        12, "most equally spaced points", unit="points", scope=kit.between(6, 20)
    )
    dimensions: tuple[Annotated[int, kit.Within(1, 8)], ...] = kit.param(
        (1, 2, 3, 4), "d of the halfspaces", scope=kit.choices((1, 2, 3, 4), (2, 3, 4), (1, 3))
    )
    beyond: Annotated[int, kit.Within(2, 8)] = kit.param(
        5, "points beyond d, at most", scope=kit.between(3, 5)
    )
    bits: tuple[Annotated[int, kit.Within(2, 60)], ...] = kit.param(
        (8, 12, 16, 24),
        "n, bits of each number that a network reads, and columns of its table",
        unit="bits",
        scope=kit.choices((8, 12, 16, 24), (9, 14, 20)),
    )
    rows: Annotated[int, kit.Within(1, 32)] = kit.param(
        8,
        "rows of the table for each bit",
        scope=kit.between(7, 12, "fewer are fewer than weights"),
    )
    labellings: kit.Seeds = kit.param(10, "random tables of each size")
    seeds: kit.Seeds = kit.param(3, "draws of digits for the halfspaces")

    width: Annotated[int, kit.Within(4, 100)] = kit.param(
        6,
        "neurons of the middle one of three networks that are trained on random labels",
        unit="neurons",
        scope=kit.between(6, 8, "wider ones take minutes"),
    )
    networks: kit.Seeds = kit.param(40, "random labellings on which each of them is trained")
    steps: kit.Count = kit.param(600, "steps of their training", unit="steps")
    frozen_labellings: kit.Seeds = kit.param(120, "random labellings for frozen features")

    kind = "theorem"
    says = {
        "shatters the points ½, ¼, …, 2⁻ⁿ": ("sine", "sine_patterns"),
        "A deep ReLU network can shatter more points than it has weights": ("network", "surplus"),
    }
    tiny = {
        "sine_points": 4,
        "spaced": 5,
        "dimensions": (1, 2),
        "beyond": 2,
        "bits": (8, 12, 20),
        "labellings": 3,
        "width": 4,
        "steps": 200,
        "networks": 6,
        "frozen_labellings": 6,
    }
    full = {
        "sine_points": 16,
        "spaced": 40,
        "dimensions": (1, 2, 3, 4, 6),
        "bits": (8, 12, 16, 24, 32),
        "labellings": 100,
        "seeds": 10,
        "width": 12,
        "networks": 60,
        "frozen_labellings": 400,
        "steps": 4000,
    }
    out_of_scope = {"bits": (8, 16, 60)}

    @property
    def widths(self) -> list[int]:
        """Return the numbers of neurons of the networks that are trained."""
        return [round(self.width * factor) for factor in WIDTHS]

    @property
    def weights(self) -> list[int]:
        """Return the numbers of their weights."""
        return [shallow_weights(width, INPUTS) for width in self.widths]

    @property
    def trained_sizes(self) -> Values:
        """Return how many points the sets have on which they are trained, shape ``(widths, sizes)``."""
        return np.rint(np.outer(self.weights, FILLED)).astype(int)

    @property
    def cases(self) -> list[tuple[int, int]]:
        """Return dimension and number of points of each set that halfspaces divide."""
        return [(d, m) for d in self.dimensions for m in range(1, d + self.beyond + 1)]

    @property
    def numbers(self) -> range:
        """Return the numbers of equally spaced points."""
        return range(1, self.spaced + 1)

    @property
    def surplus(self) -> list[float]:
        """Return mn/p for each number of bits n, with m rows and the p weights of the network that reads them."""
        return [self.rows * n * n / (3 * self.rows * n + 23 * n - 10) for n in self.bits]

    def axes(self):
        return {
            "m": tuple(self.numbers),
            "case": tuple(f"d = {d}, {m} points" for d, m in self.cases),
            "bits": self.bits,
            "weights": tuple(self.weights),
            "fill": FILLED,
            "frozen": FROZEN,
            "ratio": RATIOS,
        }

    def setting(self, key):
        rng = kit.numpy_generator(key)
        tables = [
            rng.integers(0, 2, (self.labellings, self.rows * n, n))
            for n in self.bits
            if bits_needed(self.rows * n, n) <= DOUBLE
        ]
        scores = digit_scores()
        points = []
        for d in self.dimensions:
            chosen = [rng.permutation(len(scores))[: d + self.beyond] for _ in range(self.seeds)]
            points.append(scores[np.array(chosen), :d] / scores.std())
        most = int(self.trained_sizes.max())
        starts = rng.standard_normal((self.networks, STARTS, max(self.widths), INPUTS + 2))
        narrow = [np.arange(max(self.widths))[:, None] < width for width in self.widths]
        return Setting(
            tables,
            points,
            rng.standard_normal((self.networks, most, INPUTS)) / np.sqrt(INPUTS),
            rng.choice([-1.0, 1.0], (self.networks, most)),
            np.stack([np.where(kept, starts, 0.0) for kept in narrow]),
        )

    def hypotheses(self, setting):
        least = min(
            general_position(draw, np.ones(len(draw))) for draws in setting.points for draw in draws
        )
        yield kit.assume(
            "binary digits of the largest sum",
            max(bits_needed(self.rows * n, n) for n in self.bits),
            "<=",
            DOUBLE,
            "doubles hold no more; lower --bits or --rows",
        )
        yield kit.assume(
            "least number of points for each weight, mn/p",
            min(self.surplus),
            ">",
            1,
            "weights of the first layers are then more than the points; raise --bits or --rows",
        )
        yield kit.assume(
            "least singular value of d + 1 points of a halfspace's sets",
            least,
            ">",
            0,
            "the points are not in general position",
        )

    def predict(self, setting):
        return kit.law(
            sine=np.sin(np.pi / 2**self.sine_points),
            sine_patterns=2.0**self.sine_points,
            # reduced fractions k/q in [0, 2) with q ≤ m, with one interval after each
            spaced=("m", 2.0 * np.cumsum([_totient(q) for q in self.numbers])),
            halfspaces=("case", [float(central_cell_count(m, d + 1)) for d, m in self.cases]),
            wrong=0.0,
            surplus=("bits", self.surplus),
            fitted=("weights fill", np.tile([1.0, 0.0], (len(self.weights), 1))),
            # Cover: halfspaces through the origin of p dimensions make this share of all dichotomies
            frozen_share=(
                "frozen ratio",
                [[_cover(round(p * ratio), p) for ratio in RATIOS] for p in FROZEN],
            ),
        )

    def observe(self, setting, key):
        least, patterns = sine_signs(self.sine_points)
        points = dict(zip(self.dimensions, setting.points, strict=True))
        halfspaces = [
            [halfspace_dichotomies(draw[:m]) for draw in points[d]] for d, m in self.cases
        ]
        large = [wrong_labels(tables) for tables in setting.tables]
        shallow = [shallow_reader(tables[0]) for tables in setting.tables]
        spaced = [len(spaced_patterns(np.arange(1, m + 1))) for m in self.numbers]
        right = fitted(
            setting.normal, setting.labels, self.trained_sizes, setting.starts, self.steps
        )
        rng = kit.numpy_generator(key)
        sets = (FROZEN, RATIOS, self.frozen_labellings)
        return kit.seen(
            sine=least,
            sine_patterns=float(patterns),
            bare_sine=sine_signs(self.sine_points, offset=0.0)[0],
            spaced_as_many=float(len(spaced_patterns(np.arange(1, self.sine_points + 1)))),
            spaced=("m", np.array(spaced, float)),
            halfspaces=("case draw", np.array(halfspaces, float)),
            wrong=float(sum(wrong for wrong, _ in large) + wrong_labels(all_tables(*SMALL))[0]),
            coarse=float(sum(wrong_labels(tables[:2], WIDE)[0] for tables in setting.tables)),
            weights_used=("bits", [float(weights) for _, weights in large]),
            shallow_weights=("bits", [float(weights_used(layers)) for layers in shallow]),
            points=("bits", [float(tables[0].size) for tables in setting.tables]),
            fitted=("weights fill start", right),
            frozen_share=("frozen ratio seed", separated_features(rng, *sets, "tanh")),
            frozen_linear=("frozen ratio seed", separated_features(rng, *sets, "linear")),
        )

    def derive(self, law, seen):
        """Return points over weights."""
        return {"surplus": seen.points / seen.weights_used}

    def judge(self, law, seen):
        counted = lambda id, label, array: kit.follows(
            id, law[id], array, HALF, absolute=True, each=True, label=label
        )
        yield kit.follows(
            "sine",
            law.sine,
            seen.sine,
            1e-6,
            label=f"least y sin ωx of all labellings of {self.sine_points} points",
        )
        yield counted(
            "sine_patterns",
            f"dichotomies of ½, …, 2^−{self.sine_points} by sin ωx",
            seen.sine_patterns,
        )
        yield counted("spaced", "dichotomies of 1, …, m by sin ωx", seen.spaced)
        yield counted("halfspaces", "dichotomies of digits by halfspaces", seen.halfspaces)
        yield kit.follows(
            "network",
            law.wrong,
            seen.wrong,
            HALF,
            absolute=True,
            label="labels that networks get wrong",
        )
        yield kit.follows(
            "surplus",
            law.surplus,
            seen.surplus,
            0.01,  # a second difference of the numbers is sometimes zero, which saves a weight
            label="points that networks shatter for each weight, mn/p",
        )
        yield kit.share(
            "fitted",
            law.fitted,
            seen.fitted,
            0.5,  # the number that is fitted half of the time lies between p/2 and 2p
            label="random labels of p/2 and of 2p points that Adam fits with p weights",
        )
        yield kit.share(
            "frozen_share",
            law.frozen_share,
            seen.frozen_share,
            0.3,  # intervals take 0.12; what other laws say is off by a half
            label="random labels of n points that p weights on frozen features separate",
        )

    def rivals(self, setting, law):
        cases = np.array(self.cases)
        through = [float(central_cell_count(m, d)) for d, m in self.cases]
        yield kit.rival(
            "one parameter makes as many dichotomies as a threshold",
            "a threshold on a line makes 2n dichotomies of n points",
            id="one_parameter",
            sine_patterns=2.0 * self.sine_points,
        )
        yield kit.rival(
            "least sine sin(π 2^(−n−1))",
            "the lowest term alone keeps sines off zero",
            sine=np.sin(np.pi / 2 ** (self.sine_points + 1)),
        )
        yield kit.rival(
            "equally spaced points are shattered",
            "the VC dimension of sin ωx is infinite",
            spaced=2.0**law.m,
        )
        yield kit.rival(
            "6m²/π² dichotomies of 1, …, m",
            "the number of Farey fractions is 3m²/π² for large m",
            spaced=6 * law.m**2 / np.pi**2,
        )
        yield kit.rival(
            "halfspaces without an offset",
            "halfspaces have d weights",
            halfspaces=("case", through),
        )
        yield kit.rival(
            "halfspaces shatter all sets",
            "any labels can be fitted",
            halfspaces=("case", 2.0 ** cases[:, 1]),
        )
        yield kit.rival(
            "a network shatters as many points as it has weights",
            "capacity is the number of parameters",
            id="parameters",
            surplus=law.surplus**0,
        )
        yield from self.rivals_of_training(law)

    def rivals_of_training(self, law):
        """Return other laws of how many random labels are fitted."""
        yield kit.rival(
            "no labels of p/2 points are fitted",
            "guarantees need many more weights than points",
            fitted=0.0 * law.fitted,
        )
        yield kit.rival(
            "labels of 2p points are fitted too",
            "deep networks are known to fit random labels",
            fitted=law.fitted**0,
        )
        yield kit.rival(
            "frozen features separate n ≤ p points",
            "n equations with p unknowns",
            frozen_share=0.0 * law.frozen_share,
        )
        yield kit.rival(
            "share 2^(p − n)",
            "each point beyond p is right by chance",
            frozen_share=2.0 ** (law.frozen * (1 - law.ratio)),
        )

    def controls(self, seen):
        yield kit.control(
            "frequencies without the 1", "at multiples of π sines have no sign", sine=seen.bare_sine
        )
        yield kit.control(
            "as many equally spaced points",
            "one frequency moves all signs",
            sine_patterns=seen.spaced_as_many,
        )
        yield kit.control(
            f"networks whose steps are {WIDE:g} times as wide",
            "numbers just below ½ are taken for more",
            id="coarse",
            wrong=seen.coarse,
        )
        yield kit.control(
            "networks of one hidden layer that read the same tables",
            "each change of the label takes neurons of its own",
            id="shallow",
            weights_used=seen.shallow_weights,
        )
        yield kit.control(
            "the widest network, with three of four neurons at zero",
            "neurons that start at zero stay there, so that their weights do nothing",
            id="idle_weights",
            # it has a quarter of the widest one's weights: twice as many points are half of those
            fitted=xarray.where(
                (seen.weights == self.weights[-1]) & (seen.fill == FILLED[0]),
                seen.fitted.isel(weights=0, fill=1, drop=True),
                seen.fitted,
            ).transpose(*seen.fitted.dims),
        )
        yield kit.control(
            "features that are linear in the inputs",
            f"they span no more than {INPUTS + 1} dimensions",
            frozen_share=seen.frozen_linear,
        )

    def figure(self, law, seen, rivals):
        return panels_of_dichotomies(self.cases, self.rows, law, seen)


def _cover(n: int, p: int) -> float:
    """Return the share of the 2^n dichotomies of n points that halfspaces through the origin of p dimensions make."""
    return float(central_cell_count(n, p)) / 2.0**n


def _totient(q: int) -> int:
    """Return Euler's φ, how many of 1, …, q have no divisor in common with q."""
    return int((np.gcd(np.arange(1, q + 1), q) == 1).sum())
