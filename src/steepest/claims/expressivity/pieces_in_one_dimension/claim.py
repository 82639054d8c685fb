"""On the line a random ReLU neuron has one breakpoint on average, times 1 − 2^−n for each layer of n neurons below.

Near a point a neuron is an affine function, and its law is the same at every point, as flipping signs shows: it
vanishes somewhere on the line, once. Within a segment it counts as an angle over π, by a Markov chain of three numbers
from layer to layer; at infinite width the chain is that of random affine functions.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    NonNegative,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    Values,
    assume,
    equal,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.expressivity._random_networks import SEED_OF_THEORY, random_network
from steepest.claims.expressivity.pieces_in_one_dimension.experiment import (
    LINE,
    PiecesPoint,
    conditional_mean,
    coordinates,
    features_below,
    on_line,
    pieces,
    redrawn,
)
from steepest.geometry import Layer, crossings, homogeneous
from steepest.kernels import (
    arc_cosine,
    finite_crossings,
    line_crossings,
    random_hyperplane_scales,
    wide_crossings,
)
from steepest.nn.data import digits

DIGIT_WIDTHS = (64, 64, 64, 64, 64)
DIGIT_C_B = 0.1
SAMPLES = 100_000  # of the Markov chain: an error of a thousandth
LEAST = 100  # breakpoints, of which counts are nearly normal
REDRAWS = 1000  # neurons in place of those of a network's last layer
SHOWN = np.geomspace(0.1, 30, 12)
"""Half lengths of the segments in the figure."""


class Setting(NamedTuple):
    """All networks, and pairs of images of different digits."""

    wide: list[list[Layer]]
    narrow: list[list[Layer]]
    cauchy: list[list[Layer]]  # narrow, with Cauchy weights
    shallow: list[list[Layer]]
    digits: list[list[Layer]]  # one a pair
    pairs: Values  # (pairs, 2, 64)
    shifted: list[list[Layer]]  # wide, with weights of a mean: a control
    unbiased: list[list[Layer]]  # shallow, without biases: a control


@dataclass(frozen=True)
class PiecesInOneDimension(Claim):
    """Gaussian networks on the line, narrow ones, Cauchy ones, and on segments between images of digits."""

    width: Count = 32  # of every hidden layer [1]
    depth: Count = 4  # hidden layers [1]
    c_w: Positive = 2.0  # variance of the weights times their fan-in [1]
    c_b: NonNegative = 1.0  # variance of the biases [1]
    half: Positive = 1.0  # of the segment [−half, half] [length]
    networks: Seeds = 300  # of this width and depth [1]
    narrow: Count = 3  # width of the narrow networks [1]
    narrow_networks: Seeds = 1500  # of each law of weights [1]
    pairs: Seeds = 200  # of images of different digits, each with a network of its own [1]
    shift: NonNegative = 0.0  # mean of the weights, in standard deviations [1]

    kind = "theorem"
    statement = (
        r"\mathbb E\,\#\{x\in\mathbb R:z^{(l)}_i(x)=0\}=\prod_{k<l}(1-2^{-n_k}),\qquad "
        r"\mathbb E\,\#\{x\in[a,b]:z^{(l)}_i(x)=0\}=\frac{1}{\pi}\,\mathbb E\,\angle_{M^{(l)}}(a,b)"
        r"\;\to\;\frac{1}{\pi}(\arctan\frac{b}{s_l}-\arctan\frac{a}{s_l})"
    )
    source = "Lecture of 5 December in [@hanin2022], example 1 and theorem B; [@hanin2019a]; the equalities: ours"
    remarks = (
        "Theorem B bounds the pieces in [a, b] by C |a − b| N with an unnamed C, and is right; the mean is known, at "
        "every width. The constant depends on depth: at the lecture's own C_w = 1, s_l² = (2^l − 1) C_b, so that a "
        "layer's share of breakpoints in a fixed segment falls like 2^(−l/2). That is algebra, not tested here.",
        "The open problem “count global regions (set [a, b] to R)”: on average there are Σ_l n_l Π_{k<l} (1 − "
        "2^(−n_k)) breakpoints, the number of neurons but for a share of up to (l − 1) 2^(−width) of layer l: at width "
        "one the layers have 1, ½, ¼ … a neuron.",
        "Derivation. In homogeneous coordinates u = (x, 1) a neuron is z = a·u near u, and those of the next layer "
        "have a' = b e + Σ_j W_j 1[a_j·u > 0] a_j, e = (0, 1). As a_j and −a_j are equally likely and W_j is "
        "symmetric, the gates may be replaced by fair coins ξ_j that are independent of all else, so that the law of "
        "a' at u is the same at every u. The density of zeros at u is then that of the zero of one random linear "
        "form, which has one zero on the line; it is lost only where all ξ_j of a layer are 0, and a' has no slope. "
        "This needs symmetric weights, not Gaussian ones: Cauchy weights, which have no variance, have the same mean.",
        "On a segment the form vanishes if its values at the ends differ in sign, of probability angle over π in the "
        "metric of its covariance M. For Gaussian weights M^(l+1) = C_b 11ᵀ + (C_w/n) Wishart₂(K, M^(l)) with K ~ "
        "Bin(n, ½): three numbers, which prediction samples; no network is drawn for it.",
        "At infinite width M is B_l + A_l ⟨x, x'⟩ with A_l = (C_w/2)^(l−1) C_w/n_0 and B_l = C_b Σ_{i<l} (C_w/2)^i, "
        "the covariance of a random affine function: zeros are as many as those of random hyperplanes with s_l = "
        "√(B_l/A_l). These second moments of (z, ∇z) hold at every width; what is lost at finite width is that the "
        "pair is Gaussian. A test samples them.",
        "What is counted are sign changes of neurons, which are the borders of activation patterns. A break of the "
        "output needs an active path above it too, so that the output has at most as many pieces; with one hidden "
        "layer it has n + 1.",
        "The whole line is followed in homogeneous coordinates, from (−1, 0) over (0, 1) to (1, 0), so that nothing "
        "is cut off at a large x.",
        "Counts fluctuate from network to network as a whole, by 15 % in the segment: means are over networks, never "
        "over neurons.",
    )
    headline = ("line", "narrow_line", "cauchy_line")
    full = {"networks": 2000, "narrow_networks": 10_000, "pairs": 600}
    tiny = {"networks": 20, "narrow_networks": 60, "pairs": 12, "width": 8, "depth": 2}
    out_of_scope = {"shift": 1.0}
    point = PiecesPoint

    @property
    def widths(self) -> tuple[int, ...]:
        """Hidden widths of the networks."""
        return (self.width,) * self.depth

    @property
    def narrow_widths(self) -> tuple[int, ...]:
        """Hidden widths of the narrow networks."""
        return (self.narrow,) * self.depth

    @property
    def ends(self) -> Values:
        """The segment, shape ``(2, 1)``."""
        return np.array([[-self.half], [self.half]])

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)

        def draw(
            number: int,
            widths: tuple[int, ...],
            c_b: float = self.c_b,
            law: str = "normal",
            shift: float = self.shift,
        ) -> list[list[Layer]]:
            return [random_network(rng, widths, self.c_w, c_b, law, shift) for _ in range(number)]

        return Setting(
            wide=draw(self.networks, (1, *self.widths)),
            narrow=draw(self.narrow_networks, (1, *self.narrow_widths)),
            cauchy=draw(self.narrow_networks, (1, *self.narrow_widths), law="cauchy"),
            shallow=draw(20, (1, self.width)),
            digits=draw(self.pairs, (64, *DIGIT_WIDTHS), DIGIT_C_B),
            pairs=_pairs(rng, self.pairs),
            shifted=draw(self.networks, (1, *self.widths), shift=1.0),
            unbiased=draw(20, (1, self.width), 0.0),
        )

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        return [
            assume("mean of the weights", self.shift, "==", 0, "their law must be symmetric"),
            assume("variance of the biases", self.c_b, ">", 0, "all neurons vanish at the origin"),
            assume(
                "expected breakpoints in the segment, of all networks of a kind",
                min(
                    self.expected(self.networks, self.widths),
                    self.expected(self.narrow_networks, self.narrow_widths),
                ),
                ">=",
                LEAST,
                "their mean has no interval else; raise --networks, --narrow_networks or --half",
            ),
        ]

    def expected(self, networks: int, widths: tuple[int, ...]) -> float:
        """Return about how many breakpoints so many networks have in the segment."""
        shares = wide_crossings(self.ends, self.c_w, self.c_b, self.depth) * line_crossings(widths)
        return float(networks * shares @ np.array(widths))

    def predict(self, setting: Setting) -> Prediction:
        # where the hypotheses fail the numbers are those of the nearest law, and are not judged
        c_b = self.c_b or 1e-9
        rng = np.random.default_rng(SEED_OF_THEORY)
        segment = finite_crossings(self.ends, self.widths, self.c_w, c_b, rng, SAMPLES).mean
        narrow = finite_crossings(self.ends, self.narrow_widths, self.c_w, c_b, rng, SAMPLES).mean
        # averaged over the pairs: few samples for each do
        between = finite_crossings(
            setting.pairs, DIGIT_WIDTHS, self.c_w, DIGIT_C_B, rng, SAMPLES // self.pairs + 2
        )
        given = [conditional_mean(features)[0] for features in self.below(setting)]
        shown = np.stack([-SHOWN, SHOWN], 1)[..., None]
        spread = finite_crossings(shown, self.widths, self.c_w, c_b, rng, SAMPLES // len(SHOWN))
        return Prediction(
            line=line_crossings(self.widths).mean(),
            narrow_line=line_crossings(self.narrow_widths).mean(),
            shallow=self.width + 1.0,
            segment=("layer", segment),
            narrow_segment=("layer", narrow),
            conditional=("network_with_layers_below", given),
            digits=("layer_of_digits", between.mean.mean(0)),
            spread=("shown", spread.mean.mean(-1)),
        )

    def below(self, setting: Setting) -> list[Values]:
        """Return what the last hidden layer of each wide network reads along the segment; none at depth one."""
        networks = setting.wide if self.depth > 1 else []
        return [features_below(layers, self.ends, self.c_w, self.c_b) for layers in networks]

    def observe(self, setting: Setting, key: Key) -> Observation:
        along = [on_line(layers) for layers in setting.wide]
        within = [np.abs(coordinates(one)[:, None]) < SHOWN for one in along]
        # a vertex at zero, which is no breakpoint, is in each
        spread = [(inside.sum(0) - 1) / self.width / self.depth for inside in within]
        rng = numpy_generator(key)
        again = [redrawn(features, rng, REDRAWS) for features in self.below(setting)]
        return Observation(
            redrawn=("network_with_layers_below", again),
            line=("network layer", _each_neuron([one.crossings for one in along], self.width)),
            segment=("network layer", self.counts(setting.wide, self.ends)),
            narrow_line=("narrow layer", self.line_counts(setting.narrow)),
            cauchy_line=("narrow layer", self.line_counts(setting.cauchy)),
            narrow_segment=("narrow layer", self.counts(setting.narrow, self.ends)),
            shallow=("shallow", [pieces(on_line(layers)) for layers in setting.shallow]),
            digits=(
                "pair layer_of_digits",
                [
                    crossings(layers, ends)[:-1] / DIGIT_WIDTHS
                    for layers, ends in zip(setting.digits, setting.pairs, strict=True)
                ],
            ),
            spread=("network shown", spread),
            shifted_line=("network layer", self.line_counts(setting.shifted)),
            shifted_segment=("network layer", self.counts(setting.shifted, self.ends)),
            unbiased=("shallow", [pieces(on_line(layers)) for layers in setting.unbiased]),
        )

    def counts(self, networks: list[list[Layer]], ends: Values) -> Values:
        """Return breakpoints per neuron on a segment, of each network and layer, ``(networks, depth)``."""
        counts = [crossings(layers, ends) for layers in networks]
        return _each_neuron(counts, len(networks[0][0].matrix))

    def line_counts(self, networks: list[list[Layer]]) -> Values:
        """Return breakpoints per neuron on all of R, of each network and layer, ``(networks, depth)``."""
        counts = [crossings(homogeneous(layers), LINE) for layers in networks]
        return _each_neuron(counts, len(networks[0][0].matrix))

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        checks = [
            equal(
                "line",
                predicted["line"],
                observed["line"].mean(1),
                0.03,  # the interval is 1.1 %
                label=f"breakpoints on the line, per neuron, width {self.width}",
            ),
            equal(
                "narrow_line",
                predicted["narrow_line"],
                observed["narrow_line"].mean(1),
                0.045,  # the interval is 1.8 %
                label=f"breakpoints on the line, per neuron, width {self.narrow}",
            ),
            equal(
                "cauchy_line",
                predicted["narrow_line"],
                observed["cauchy_line"].mean(1),
                0.05,  # the interval is 2 %
                label=f"breakpoints on the line, per neuron, width {self.narrow}, Cauchy weights",
            ),
            equal(
                "segment",
                predicted["segment"].mean(),
                observed["segment"].mean(1),
                0.045,  # the interval is 1.8 %
                label=f"breakpoints in the segment, per neuron, width {self.width}",
            ),
            equal(
                "narrow_segment",
                predicted["narrow_segment"].mean(),
                observed["narrow_segment"].mean(1),
                0.075,  # the interval is 2.9 %
                label=f"breakpoints in the segment, per neuron, width {self.narrow}",
            ),
            equal(
                "digits",
                predicted["digits"].mean(),
                observed["digits"].mean(1),
                0.1,  # the interval is 4 %
                label="breakpoints between two digits, per neuron",
            ),
            equal(
                "shallow",
                predicted["shallow"],
                observed["shallow"],
                0.0,
                aggregate="all",
                label="linear pieces of the output, one hidden layer",
            ),
        ]
        given = predicted["conditional"]
        if given.size:
            checks.append(
                equal(
                    "conditional",
                    given.mean(),
                    # each network's own mean as control variate
                    observed["redrawn"] - given + given.mean(),
                    0.02,  # the interval is 0.5 %
                    label="breakpoints of the last layer, given the layers below",
                )
            )
        return checks

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        c_b = self.c_b or 1e-9
        wide = wide_crossings(self.ends, self.c_w, c_b, self.depth)
        first = random_hyperplane_scales(self.c_w, c_b, 1, 1)[0]
        scales = random_hyperplane_scales(self.c_w, c_b, 1, self.depth)
        digits_wide = wide_crossings(setting.pairs, self.c_w, DIGIT_C_B, len(DIGIT_WIDTHS))
        only_ends = [conditional_mean(features)[1] for features in self.below(setting)]
        largest = (self.width + 1.0) ** self.depth - 1
        neurons = self.width * self.depth
        rivals = [
            Rival(
                "line_of_the_bound",
                predicted.replace(segment=("layer", 2 * self.half / (np.pi * scales))),
                "Theorem B's C |a − b| N with C the density at the origin",
                label="breakpoints in proportion to the length of the segment",
            ),
        ]
        if self.depth > 1:
            rivals += [
                Rival(
                    "one_at_every_width",
                    predicted.replace(narrow_line=1.0, narrow_segment=("layer", wide)),
                    "it is the law at infinite width",
                    label="one breakpoint a neuron at every width, and angles of s_l",
                ),
                Rival(
                    "depth_multiplies",
                    predicted.replace(line=largest / neurons),
                    "the worst case, Π(n_l + 1) pieces",
                    label="depth multiplies pieces",
                ),
                Rival(
                    "two_ends",
                    predicted.replace(
                        segment=("layer", _end_angles(self.ends, self.widths, self.c_w, c_b)),
                        digits=(
                            "layer_of_digits",
                            _end_angles(setting.pairs, DIGIT_WIDTHS, self.c_w, DIGIT_C_B),
                        ),
                        conditional=("network_with_layers_below", only_ends),
                    ),
                    "exact in the first layer, where a neuron vanishes at most once",
                    label="a neuron counts when its sign differs at the two ends",
                ),
                Rival(
                    "one_scale",
                    predicted.replace(
                        segment=("layer", 0 * wide + 2 * np.arctan(self.half / first) / np.pi),
                        digits=(
                            "layer_of_digits",
                            0 * predicted["digits"] + digits_wide[:, 0].mean(),
                        ),
                    ),
                    "variances of weights are critical, so that layers look alike",
                    label="the first layer's scale in every layer",
                ),
            ]
        return rivals

    def controls(self, observed: Observation) -> list[Control]:
        return [
            Control(
                "one_sided",
                observed.replace(
                    line=("network layer", observed["shifted_line"]),
                    segment=("network layer", observed["shifted_segment"]),
                ),
                "signs of weights can be flipped no more",
                label="weights with a mean of one standard deviation",
            ),
            Control(
                "no_biases",
                observed.replace(shallow=("shallow", observed["unbiased"])),
                "all breakpoints are at the origin",
                label="one hidden layer without biases",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        layers = np.arange(1, self.depth + 1)
        above = np.arange(1, len(DIGIT_WIDTHS) + 1)
        return (
            panel(
                "On the line: one breakpoint a neuron",
                "layer",
                "breakpoints per neuron",
                observed_curve(
                    layers, observed["line"].mean(0), f"width {self.width}", kind="points"
                ),
                observed_curve(
                    layers,
                    observed["narrow_line"].mean(0),
                    f"width {self.narrow}",
                    kind="points",
                    shade=0.5,
                ),
                observed_curve(
                    layers,
                    observed["cauchy_line"].mean(0),
                    f"width {self.narrow}, Cauchy",
                    kind="points",
                    shade=1.0,
                ),
                predicted_curve(layers, line_crossings(self.widths), "theory"),
                predicted_curve(layers, line_crossings(self.narrow_widths)),
                ylim=(0, 1.2),
            ),
            panel(
                f"In [−{self.half:g}, {self.half:g}]: an angle over π",
                "layer",
                "breakpoints per neuron",
                observed_curve(
                    layers, observed["segment"].mean(0), f"width {self.width}", kind="points"
                ),
                observed_curve(
                    layers,
                    observed["narrow_segment"].mean(0),
                    f"width {self.narrow}",
                    kind="points",
                    shade=1.0,
                ),
                predicted_curve(layers, predicted["segment"], "theory"),
                predicted_curve(layers, predicted["narrow_segment"]),
                rival_curve(
                    layers,
                    _end_angles(self.ends, self.widths, self.c_w, self.c_b),
                    "signs at the ends",
                ),
                ylim=(0, None),
            ),
            panel(
                "How they spread over the line",
                "half length of the segment",
                "breakpoints per neuron",
                observed_curve(SHOWN, observed["spread"].mean(0), "inside", kind="points"),
                predicted_curve(SHOWN, predicted["spread"], "theory"),
                log="x",
                ylim=(0, 1.1),
            ),
            panel(
                "Between images of two digits",
                "layer",
                "breakpoints per neuron",
                observed_curve(above, observed["digits"].mean(0), "observed", kind="points"),
                predicted_curve(above, predicted["digits"], "theory"),
                ylim=(0, None),
            ),
        )


def _each_neuron(counts: list[Values], width: int) -> Values:
    """Return counts per neuron of the hidden layers, ``(networks, depth)``."""
    return np.array(counts)[:, :-1] / width


def _pairs(rng: np.random.Generator, number: int) -> Values:
    """Draw pairs of images of different digits, shape ``(number, 2, 64)``."""
    images = digits()
    x = np.asarray(images.x)
    label = np.asarray(images.y).argmax(1)
    first = rng.integers(0, len(x), number)
    second = np.array([rng.choice(np.flatnonzero(label != label[i])) for i in first])
    return np.stack([x[first], x[second]], 1)


def _end_angles(ends: Values, widths: tuple[int, ...], c_w: float, c_b: float) -> Values:
    """Return how often a neuron's signs differ at two ends, at infinite width: arccos ρ_l/π, mean over segments."""
    gram = c_b + c_w / ends.shape[-1] * (ends @ np.swapaxes(ends, -1, -2))
    first = gram[..., 0, 0]
    last = gram[..., 1, 1]
    mixed = gram[..., 0, 1]
    shares = []
    for _ in widths:
        root = np.sqrt(first * last)
        cosine = np.clip(mixed / root, -1, 1)
        shares.append(np.mean(np.arccos(cosine)) / np.pi)
        mixed = c_b + c_w * root * arc_cosine(cosine).outer
        first = c_b + c_w * first / 2
        last = c_b + c_w * last / 2
    return np.array(shares)
