"""sin ωx has one parameter and shatters ½, ¼, …, 2⁻ⁿ; a deep ReLU network shatters more points than it has weights.

Parameters do not count what a class can do. Halfspaces of d dimensions, with d + 1 parameters, have the VC dimension
d + 1. The sine with one parameter has an infinite one, though not on equally spaced points. A ReLU network of depth L
that takes one bit after the other off a number reads more labels than its p weights: about a seventh of pL of them.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Prediction,
    Rival,
    Seeds,
    Values,
    Within,
    agreement,
    assume,
    bound,
    equal,
    exponent,
    idle,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.expressivity.vc_dimension.experiment import (
    all_tables,
    counting_bound,
    fitted,
    halfspace_dichotomies,
    shallow_weights,
    sine_signs,
    spaced_patterns,
    wrong_labels,
)
from steepest.geometry import (
    Layer,
    bit_reader,
    bits_needed,
    central_cell_count,
    general_position,
    relu_layers,
)
from steepest.nn.data import digits

HALF = 0.5  # counts are whole numbers
WIDE = 4.0  # steps of a control's network, in units of the right ones
SMALL = (3, 3)
"""Rows and columns of a table of which all 512 are tried."""
TRAINED = (0.25, 0.5, 0.75, 1.0, 1.25)
"""Points for each weight in sets on which a network is trained."""
STARTS = 4
DOUBLE = 53
"""Binary digits of a double."""


class Setting(NamedTuple):
    """Tables of random labels of each size, and digits in a few principal components."""

    tables: list[Values]  # (labellings, rows, columns) of each size
    points: list[Values]  # (seeds, most, d) for each d
    plane: Values  # normal points for training, (most, 2)
    labels: Values  # ±1, (labellings, most)
    starts: Values  # normal numbers, (starts, width, 4)


@dataclass(frozen=True)
class VcDimension(Claim):
    """Sines at halved and at equally spaced points, halfspaces on digits, and networks that look labels up."""

    sine_points: Annotated[int, Within(3, 16)] = (
        12  # n, points ½, …, 2⁻ⁿ, of which all 2ⁿ labellings are tried [1]
    )
    spaced: Annotated[int, Within(4, 40)] = 12  # most equally spaced points [1]
    dimensions: tuple[Annotated[int, Within(1, 8)], ...] = (1, 2, 3, 4)  # d of the halfspaces [1]
    beyond: Annotated[int, Within(2, 8)] = 5  # up to d plus so many points [1]
    # n, bits of each number that a network reads, and columns of its table [1]
    bits: tuple[Annotated[int, Within(2, 60)], ...] = (8, 12, 16, 24)
    rows: Annotated[int, Within(1, 32)] = 8  # rows of the table for each bit [1]
    labellings: Seeds = 10  # random tables of each size [1]
    seeds: Seeds = 3  # draws of digits for the halfspaces [1]
    # neurons of a network on the plane that is trained on random labels [neurons]
    width: Annotated[int, Within(2, 100)] = 6
    steps: Count = 1500  # of its training [steps]

    kind = "theorem"
    version = 2  # 1 trained no network, and tried all labellings of 12 points in place of 9
    headline = ("sine", "sine_patterns", "network", "surplus")
    statement = (
        r"\omega=\pi(1+\sum_{k\le n}b_k2^k)\;\Rightarrow\;\mathrm{sign}\,\sin(\omega2^{-k})=(-1)^{b_k},\qquad "
        r"\mathrm{VC}(\mathrm{ReLU},\,L,\,p)=\Omega(pL)"
    )
    source = (
        "The lectures [@telgarsky2019], for Θ(pL ln p); the sine: [@shalev2014], chapter 6; [@bartlett2019]; "
        "[@cover1965]"
    )
    corrections = ()
    remarks = (
        "Srebro's talk, in K. Vodrahalli's notes of MIT's workshop on deep learning theory, 2019, says “Usually with d "
        "parameters, the capacity corresponds roughly to the number of parameters. But that’s not necessarily true”, "
        "and thinks of bounded norms. The sine is another example, with one parameter and no limit.",
        "The lectures' Θ(pL ln p) is not judged. What is judged is its lower half without the logarithm, for one "
        "architecture: a network of p = 3m + 23n − 10 weights and n + 3 hidden layers shatters mn points, 0.13 to 0.15 "
        "times p(n + 3) at these sizes. Any labelling has its network by construction; all 512 of nine points are "
        "tried, and of larger sets random ones.",
        "The upper half is drawn in the figure: counting sign patterns layer by layer bounds the VC dimension of the "
        "same architecture. It is some ninety times the number of points that are shattered.",
        "What a network can do is not what descent finds: these weights go up to 2ⁿ. The figure shows how many random "
        "labels Adam fits with one hidden layer on the plane: a lower bound for training, and none for the class.",
        "On 1, …, m the signs of sin ωx are parities of ⌊kω/π⌋, which change where ω/π is a fraction with a "
        "denominator up to m: there are 2 Σ_{q≤m} φ(q) dichotomies with Euler's φ, all 8 of three points and 12 of the "
        "16 of four. + + − + is missing: there cos ω > 0 by the second sign, cos ω < ½ by the third, cos ω > 1/√2 by "
        "the fourth.",
        "All sums of the network are exact in double precision, which 2 log₂ m + n binary digits allow up to n = 32.",
    )
    full = {
        "sine_points": 16,
        "spaced": 40,
        "dimensions": (1, 2, 3, 4, 6),
        "bits": (8, 12, 16, 24, 32),
        "labellings": 100,
        "seeds": 10,
        "width": 12,
        "steps": 10000,
    }
    tiny = {
        "sine_points": 4,
        "spaced": 5,
        "dimensions": (1, 2),
        "beyond": 2,
        "bits": (8, 12, 20),
        "width": 2,
        "steps": 20,
        "labellings": 3,
    }
    out_of_scope = {"bits": (8, 16, 60)}

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)
        tables = [
            rng.integers(0, 2, (self.labellings, self.rows * n, n))
            for n in self.bits
            if bits_needed(self.rows * n, n) <= DOUBLE
        ]
        images = np.asarray(digits().x)
        centred = images - images.mean(0)
        scores = centred @ np.linalg.svd(centred, full_matrices=False)[2].T
        points = []
        for d in self.dimensions:
            chosen = [rng.permutation(len(scores))[: d + self.beyond] for _ in range(self.seeds)]
            points.append(scores[np.array(chosen), :d] / scores.std())
        most = int(self.trained_sizes[-1])
        return Setting(
            tables,
            points,
            rng.standard_normal((most, 2)),
            rng.choice([-1.0, 1.0], (self.labellings, most)),
            rng.standard_normal((STARTS, self.width, 4)),
        )

    @property
    def trained_sizes(self) -> Values:
        """Return how many points the sets have on which a network is trained."""
        return np.ceil(shallow_weights(self.width) * np.array(TRAINED)).astype(int)

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        least = min(
            general_position(draw, np.ones(len(draw))) for draws in setting.points for draw in draws
        )
        return [
            assume(
                "binary digits of the largest sum",
                max(bits_needed(self.rows * n, n) for n in self.bits),
                "<=",
                DOUBLE,
                "doubles hold no more; lower --bits or --rows",
            ),
            assume(
                "least number of points for each weight, mn/p",
                min(self.surplus),
                ">",
                1,
                "weights of the first layers are then more than the points; raise --bits or --rows",
            ),
            assume(
                "least singular value of d + 1 points of a halfspace's sets",
                least,
                ">",
                0,
                "the points are not in general position",
            ),
        ]

    def predict(self, setting: Setting) -> Prediction:
        return Prediction(
            sine=np.sin(np.pi / 2**self.sine_points),
            sine_patterns=2.0**self.sine_points,
            spaced=("m", 2 * np.cumsum([_totient(q) for q in self.numbers])),
            halfspaces=("case", [central_cell_count(m, d + 1) for d, m in self.cases]),
            dimension=("dimension", np.array(self.dimensions) + 1),
            surplus=("size", self.surplus),
            growth=2.0,
            trainable=counting_bound(_dense(self.width)),
        )

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

    def observe(self, setting: Setting, key: Key) -> Observation:
        least, patterns = sine_signs(self.sine_points)
        points = dict(zip(self.dimensions, setting.points, strict=True))
        halfspaces = [
            [halfspace_dichotomies(draw[:m]) for draw in points[d]] for d, m in self.cases
        ]
        large = [wrong_labels(tables) for tables in setting.tables]
        return Observation(
            sine=least,
            sine_patterns=patterns,
            bare_sine=sine_signs(self.sine_points, offset=0.0)[0],
            spaced=("m", [len(spaced_patterns(np.arange(1, m + 1))) for m in self.numbers]),
            halfspaces=("case draw", halfspaces),
            wrong=sum(wrong for wrong, _ in large) + wrong_labels(all_tables(*SMALL))[0],
            coarse=sum(wrong_labels(tables[:2], WIDE)[0] for tables in setting.tables),
            weights=("size", [weights for _, weights in large]),
            points=("size", [tables[0].size for tables in setting.tables]),
            fitted=(
                "share labelling",
                fitted(
                    setting.plane, setting.labels, self.trained_sizes, setting.starts, self.steps
                ),
            ),
            bounds=("size", [counting_bound(bit_reader(tables[0])) for tables in setting.tables]),
        )

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        law = predicted["halfspaces"][:, None]
        checks = [
            equal(
                "sine",
                predicted["sine"],
                observed["sine"],
                1e-6,
                label=f"least y sin ωx of all labellings of {self.sine_points} points",
            ),
            equal(
                "sine_patterns",
                predicted["sine_patterns"],
                observed["sine_patterns"],
                HALF,
                absolute=True,
                label=f"dichotomies of ½, …, 2^−{self.sine_points} by sin ωx",
            ),
            agreement(
                "spaced",
                np.abs(observed["spaced"] - predicted["spaced"]).max(),
                HALF,
                label="dichotomies of 1, …, m by sin ωx: largest miss",
            ),
            agreement(
                "halfspaces",
                np.abs(observed["halfspaces"] - law).max(),
                HALF,
                label="dichotomies of digits by halfspaces: largest miss",
            ),
            agreement(
                "dimension",
                np.abs(self.shattered(observed) - predicted["dimension"][:, None]).max(),
                HALF,
                label="digits that halfspaces shatter, d + 1: largest miss",
            ),
            agreement("network", observed["wrong"], HALF, label="labels that networks get wrong"),
            agreement(
                "surplus",
                np.abs(observed["points"] / observed["weights"] / predicted["surplus"] - 1).max(),
                # a second difference of the numbers is sometimes zero, which saves a weight
                0.01,
                label="points that networks shatter for each weight, mn/p: largest relative miss",
            ),
        ]
        whole = np.where(observed["fitted"].all(1), self.trained_sizes, 0).max()
        checks.append(
            idle(
                bound(
                    "trained",
                    whole,
                    at_most=float(predicted["trainable"]),
                    label="points of which training fitted all labellings that were drawn",
                ),
                "what is trained is of the class, which a theorem bounds",
            )
        )
        if len(set(self.bits)) > 2:
            checks.append(
                exponent(
                    "growth",
                    float(predicted["growth"]),
                    observed["weights"],
                    observed["points"],
                    0.08,  # ten weights fewer cost 0.04 at these sizes
                    label="points that are shattered against weights, L ∝ p",
                )
            )
        return checks

    def shattered(self, observed: Observation) -> Values:
        """Return the largest m of which halfspaces made all dichotomies, shape ``(dimensions, draws)``."""
        cases = np.array(self.cases)
        whole = observed["halfspaces"] == 2.0 ** cases[:, 1:]
        sizes = np.where(whole, cases[:, 1:], 0)
        return np.array([sizes[cases[:, 0] == d].max(0) for d in self.dimensions])

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        m = np.array(self.numbers)
        dimension = np.array(self.dimensions)
        cases = np.array(self.cases)
        through = [central_cell_count(m, d) for d, m in self.cases]
        return [
            Rival(
                "one_parameter",
                predicted.replace(sine_patterns=2.0 * self.sine_points),
                "a threshold on a line makes 2n dichotomies of n points",
                label="one parameter makes as many dichotomies as a threshold",
            ),
            Rival(
                "half_margin",
                predicted.replace(sine=np.sin(np.pi / 2 ** (self.sine_points + 1))),
                "the lowest term alone keeps sines off zero",
                label="least sine sin(π 2^(−n−1))",
            ),
            Rival(
                "shattered_too",
                predicted.replace(spaced=("m", 2.0**m)),
                "the VC dimension of sin ωx is infinite",
                label="equally spaced points are shattered",
            ),
            Rival(
                "farey_leading",
                predicted.replace(spaced=("m", 6 * m**2 / np.pi**2)),
                "the number of Farey fractions is 3m²/π² for large m",
                label="6m²/π² dichotomies of 1, …, m",
            ),
            Rival(
                "no_offset",
                predicted.replace(halfspaces=("case", through), dimension=("dimension", dimension)),
                "halfspaces have d weights",
                label="halfspaces without an offset",
            ),
            Rival(
                "all_labels",
                predicted.replace(halfspaces=("case", 2.0 ** cases[:, 1])),
                "any labels can be fitted",
                label="halfspaces shatter all sets",
            ),
            Rival(
                "parameters",
                predicted.replace(surplus=("size", np.ones(len(self.bits))), growth=1.0),
                "capacity is the number of parameters",
                label="a network shatters as many points as it has weights",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        return [
            Control(
                "bare_sine",
                observed.replace(sine=observed["bare_sine"]),
                "at multiples of π sines have no sign",
                label="frequencies without the 1",
            ),
            Control(
                "coarse",
                observed.replace(wrong=observed["coarse"]),
                "numbers just below ½ are taken for more",
                label=f"networks whose steps are {WIDE:g} times as wide",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        m = np.array(self.numbers)
        cases = np.array(self.cases)
        weights = observed["weights"]
        curves = []
        for place, d in enumerate(self.dimensions):
            own = cases[:, 0] == d
            shade = place / len(self.dimensions)
            curves += [
                observed_curve(
                    cases[own, 1],
                    observed["halfspaces"][own].T.astype(float),
                    kind="points",
                    shade=shade,
                ),
                predicted_curve(
                    cases[own, 1], predicted["halfspaces"][own], f"d = {d}", shade=shade
                ),
            ]
        return (
            panel(
                "Equally spaced points are not shattered",
                "m",
                "dichotomies by sin ωx",
                observed_curve(m, observed["spaced"], kind="points"),
                predicted_curve(m, predicted["spaced"], "2 Σ φ(q)"),
                rival_curve(m, 2.0**m, "2^m"),
                log="y",
                ylim=(1, 4 * float(observed["spaced"].max())),
            ),
            panel("Halfspaces on digits", "m", "dichotomies of m digits", *curves, log="y"),
            panel(
                "Networks that look labels up",
                "weights p",
                "points that are shattered",
                observed_curve(weights, observed["points"], "by construction", kind="points"),
                predicted_curve(weights, predicted["surplus"] * weights, "mn"),
                rival_curve(weights, weights, "p"),
                predicted_curve(weights, observed["bounds"], "upper bound", shade=0.6),
                log="xy",
            ),
            panel(
                f"Training fits random labels: {self.width} neurons on the plane",
                "points m / weights p",
                "share of labellings that are fitted",
                observed_curve(TRAINED, observed["fitted"].mean(1), "best of four starts"),
                ylim=(-0.05, 1.05),
            ),
        )


def _dense(width: int) -> list[Layer]:
    """Return a ReLU network of one hidden layer on the plane, with all its weights one."""
    return relu_layers([np.ones((width, 2)), np.ones((1, width))], [np.ones(width), np.ones(1)])


def _totient(q: int) -> int:
    """Return Euler's φ, how many of 1, …, q have no divisor in common with q."""
    return int((np.gcd(np.arange(1, q + 1), q) == 1).sum())
