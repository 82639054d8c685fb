"""On the line, every neuron of a wide random ReLU network has one breakpoint on average.

At any width this number is multiplied by 1 − 2^−n for each layer of n neurons below. Near a point a neuron is an affine
function, and its law is the same at every point, as flipping signs shows. An affine function vanishes once on the line.
Within a segment a neuron's mean number of breakpoints is an angle over π, by a Markov chain of three numbers from layer
to layer; at infinite width it is the chain of random affine functions.
"""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.expressivity._random_networks import SEED_OF_THEORY, random_network
from steepest.claims.expressivity.pieces_in_one_dimension.experiment import (
    Networks,
    Setting,
    along_line,
    between_pairs,
    on_line,
    on_segment,
    pairs_of_digits,
    pieces,
    redrawn,
)
from steepest.claims.expressivity.pieces_in_one_dimension.figure import panels_of_layers
from steepest.claims.expressivity.pieces_in_one_dimension.point import PiecesPoint
from steepest.claims.expressivity.pieces_in_one_dimension.theory import (
    conditional_mean,
    features_below,
    signs_at_the_ends,
)
from steepest.kernels import (
    finite_crossings,
    line_crossings,
    random_hyperplane_scales,
    wide_crossings,
)

DIGIT_WIDTHS = (32, 32, 32, 32)
DIGIT_C_B = 1.0  # at 0.1 the law falls by a tenth over five layers, which no quick run tells
SAMPLES = 100_000  # of the Markov chain: an error of a thousandth
LEAST = 100  # breakpoints, of which counts are nearly normal
CONTROLS = 50  # networks of each changed world
GIVEN = 150  # networks of which the last layer is drawn anew


@kit.claim
class PiecesInOneDimension(kit.Claim[Setting]):
    """Gaussian, narrow and Cauchy networks on the line, and networks on segments between images of digits."""

    width: kit.Count = kit.param(
        32,
        "width of every hidden layer",
        unit="neurons",
        scope=kit.between(24, 64, "narrower ones fluctuate more, and are the narrow networks"),
    )
    depth: kit.Count = kit.param(
        4,
        "hidden layers",
        scope=kit.choices(3, 4, why="at two no product is seen, and deeper counts fluctuate more"),
    )
    c_w: kit.Positive = kit.param(
        2.0, "variance of the weights times their fan-in", scope=kit.between(1.0, 3.0)
    )
    c_b: kit.NonNegative = kit.param(
        1.0,
        "variance of the biases",
        scope=kit.between(
            0.3,
            1.0,
            "smaller ones crowd all breakpoints at the origin, larger ones spread them evenly",
        ),
    )
    half: kit.Positive = kit.param(
        1.0,
        "half the length of the segment [−half, half]",
        scope=kit.between(1.0, 3.0, "in shorter segments the density hardly changes"),
    )
    narrow: tuple[kit.Count, ...] = kit.param(
        (1, 3),
        "widths of the narrow networks",
        unit="neurons",
        scope=kit.choices(
            (1, 3), (1, 4), (1, 2, 4), why="at one and two 1 − 2^(−n) and 1 − 1/(n + 1) are close"
        ),
    )
    shift: kit.NonNegative = kit.param(
        0.0,
        "mean of the weights, in standard deviations",
        scope=kit.choices(0.0, why="signs of weights can be flipped"),
    )
    networks: kit.Seeds = kit.param(400, "networks of this width and depth")
    narrow_networks: kit.Seeds = kit.param(1000, "networks of each narrow width and law of weights")
    pairs: kit.Seeds = kit.param(600, "images of different digits, each with its network")

    kind = "theorem"
    says = {
        "has one breakpoint on average": "line",
        "multiplied by 1 − 2^−n for each layer of n neurons below": ("narrow_line", "cauchy_line"),
    }
    tiny = {"networks": 40, "narrow_networks": 60, "pairs": 12, "width": 8, "depth": 2}
    full = {"networks": 2000, "narrow_networks": 10_000, "pairs": 2000}
    out_of_scope = {"shift": 1.0}
    point = PiecesPoint

    @property
    def ends(self) -> kit.Values:
        """The segment, shape ``(2, 1)``."""
        return np.array([[-self.half], [self.half]])

    def axes(self):
        return {
            "layer": range(1, self.depth + 1),
            "narrow": self.narrow,
            "layer_of_digits": range(1, len(DIGIT_WIDTHS) + 1),
        }

    def check_fields(self) -> None:
        """Refuse networks of which no layer has another below."""
        if self.depth < 2:
            raise kit.UserError(f"depth must be at least 2, got {self.depth}; try 4")

    def setting(self, key):
        rng = kit.numpy_generator(key)
        of_input = (1, *self.widths(self.width))
        one_sided = self.shift + 1.0

        def draw(
            number: int,
            widths: tuple[int, ...] = of_input,
            c_b: float = self.c_b,
            law: str = "normal",
            shift: float = self.shift,
        ) -> Networks:
            return [random_network(rng, widths, self.c_w, c_b, law, shift) for _ in range(number)]

        narrow_widths = [(1, *self.widths(width)) for width in self.narrow]
        return Setting(
            wide=draw(self.networks),
            narrow=[draw(self.narrow_networks, widths) for widths in narrow_widths],
            cauchy=[draw(self.narrow_networks, widths, law="cauchy") for widths in narrow_widths],
            shallow=draw(20, of_input[:2]),
            digits=draw(self.pairs, (64, *DIGIT_WIDTHS), DIGIT_C_B),
            pairs=pairs_of_digits(rng, self.pairs),
            shifted=draw(CONTROLS, shift=one_sided),
            narrow_shifted=[
                draw(4 * CONTROLS, widths, shift=one_sided) for widths in narrow_widths
            ],
            digits_shifted=draw(
                min(2 * CONTROLS, self.pairs), (64, *DIGIT_WIDTHS), DIGIT_C_B, shift=one_sided
            ),
            unbiased=draw(20, of_input[:2], 0.0),
        )

    def widths(self, width: int) -> tuple[int, ...]:
        """Return the widths of all hidden layers of networks of one width."""
        return (width,) * self.depth

    def hypotheses(self, setting):
        share = wide_crossings(self.ends, self.c_w, self.c_b or 1e-9, self.depth).min()
        yield kit.assume("mean of the weights", self.shift, "==", 0, "their law must be symmetric")
        yield kit.assume("variance of the biases", self.c_b, ">", 0, "all vanish at the origin")
        yield kit.assume(
            "expected breakpoints of a layer in the segment, over all wide networks",
            float(share * self.networks * self.width),
            ">=",
            LEAST,
            "their mean has no interval else; raise --networks or --half",
        )

    def predict(self, setting):
        rng = np.random.default_rng(SEED_OF_THEORY)

        def between(
            ends: kit.Values, widths: tuple[int, ...], c_b: float, samples: int
        ) -> kit.Values:
            return finite_crossings(ends, widths, self.c_w, c_b, rng, samples).mean

        narrow_widths = [self.widths(width) for width in self.narrow]
        # averaged over the pairs: few samples for each do
        on_digits = between(setting.pairs, DIGIT_WIDTHS, DIGIT_C_B, SAMPLES // self.pairs + 2)
        narrow = between(self.ends, self.widths(max(self.narrow)), self.c_b, SAMPLES)
        return kit.law(
            line=("layer", line_crossings(self.widths(self.width))),
            narrow_line=("narrow layer", [line_crossings(widths) for widths in narrow_widths]),
            segment=("layer", between(self.ends, self.widths(self.width), self.c_b, SAMPLES)),
            narrow_segment=("layer", narrow),
            digits=("layer_of_digits", on_digits.mean(0)),
            conditional=("start", self.given_below(setting)[:, 0]),
            shallow=self.width + 1.0,
        )

    def given_below(self, setting: Setting) -> kit.Values:
        """Return means of the last layer given those below, and by the two ends alone, ``(networks, 2)``."""
        return np.array(
            [
                conditional_mean(features_below(layers, self.ends, self.c_w, self.c_b))
                for layers in setting.wide[:GIVEN]
            ]
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        widest = int(np.argmax(self.narrow))
        given = setting.wide[:GIVEN]
        drawn_by = (self.ends, self.c_w, self.c_b)
        return kit.seen(
            line=("seed layer", on_line(setting.wide)),
            narrow_line=("narrow draw layer", [on_line(networks) for networks in setting.narrow]),
            cauchy_line=("narrow draw layer", [on_line(networks) for networks in setting.cauchy]),
            segment=("seed layer", on_segment(setting.wide, self.ends)),
            narrow_segment=("draw layer", on_segment(setting.narrow[widest], self.ends)),
            digits=("pair layer_of_digits", between_pairs(setting.digits, setting.pairs)),
            redrawn=("start", redrawn(given, *drawn_by, rng)),
            shallow=("shallow", [pieces(along_line(network)) for network in setting.shallow]),
            shifted_line=("shifted layer", on_line(setting.shifted)),
            shifted_segment=("shifted layer", on_segment(setting.shifted, self.ends)),
            shifted_narrow=(
                "narrow narrow_shifted layer",
                [on_line(networks) for networks in setting.narrow_shifted],
            ),
            shifted_narrow_segment=(
                "narrow_shifted layer",
                on_segment(setting.narrow_shifted[widest], self.ends),
            ),
            shifted_digits=(
                "digits_shifted layer_of_digits",
                between_pairs(setting.digits_shifted, setting.pairs[: len(setting.digits_shifted)]),
            ),
            redrawn_shifted=("start", redrawn(given, *drawn_by, rng, shift=1.0)),
            unbiased=("shallow", [pieces(along_line(network)) for network in setting.unbiased]),
        )

    def judge(self, law, seen):
        def counts(
            id: str, theory: xarray.DataArray, measured: xarray.DataArray, within: float, where: str
        ) -> kit.Check:
            label = f"breakpoints per neuron {where}"
            return kit.follows(id, theory, measured, within, absolute=True, label=label)

        narrow = f"widths {', '.join(map(str, self.narrow))}"
        # intervals of all lines and segments take up to half of these margins, and chance the rest
        yield counts("line", law.line, seen.line, 0.07, f"on the line, width {self.width}")
        yield counts(
            "narrow_line", law.narrow_line, seen.narrow_line, 0.1, f"on the line, {narrow}"
        )
        yield counts(
            "cauchy_line",
            law.narrow_line,
            seen.cauchy_line,
            0.1,
            f"on the line, {narrow}, Cauchy weights",
        )
        yield counts("segment", law.segment, seen.segment, 0.05, "in the segment")
        yield counts(
            "narrow_segment",
            law.narrow_segment,
            seen.narrow_segment,
            0.06,
            f"in the segment, width {max(self.narrow)}",
        )
        yield counts("digits", law.digits, seen.digits, 0.02, "between two digits")
        # the interval takes 0.006
        yield counts(
            "conditional",
            law.conditional,
            seen.redrawn,
            0.015,
            "of the last layer, given the layers below",
        )
        yield kit.follows(
            "shallow",
            law.shallow,
            seen.shallow,
            0.5,
            absolute=True,
            each=True,
            label="linear pieces of the output, one hidden layer",
        )

    def rivals(self, setting, law):
        wide = wide_crossings(self.ends, self.c_w, self.c_b, self.depth)
        scales = random_hyperplane_scales(self.c_w, self.c_b, 1, self.depth)
        on_digits = wide_crossings(setting.pairs, self.c_w, DIGIT_C_B, len(DIGIT_WIDTHS))
        largest = (self.width + 1.0) ** self.depth - 1
        below = law.layer - 1
        yield kit.rival(
            "one breakpoint a neuron at every width, and angles of s_l",
            "it is the law at infinite width",
            id="one_at_every_width",
            narrow_line=xarray.ones_like(law.narrow_line),
            narrow_segment=0 * law.narrow_segment + wide,
        )
        yield kit.rival(
            "times 1 − 1/(n + 1) for each layer below",
            "of n + 1 numbers of active neurons one is none",
            narrow_line=(1 - 1 / (law.narrow + 1)) ** below,
        )
        yield kit.rival(
            "times 1 − 2^−n once, at any depth",
            "a slope is lost in the layer right below",
            narrow_line=(1 - 0.5**law.narrow) ** np.minimum(below, 1),
        )
        yield kit.rival(
            "depth multiplies pieces",
            "the worst case, Π(n_l + 1) pieces",
            id="depth_multiplies",
            line=0 * law.line + largest / (self.width * self.depth),
        )
        yield kit.rival(
            "breakpoints in proportion to the length of the segment",
            "Theorem B's C |a − b| N with C the density at the origin",
            id="line_of_the_bound",
            segment=0 * law.segment + 2 * self.half / (np.pi * scales),
        )
        yield kit.rival(
            "a neuron counts when its sign differs at the two ends",
            "exact in the first layer, where a neuron vanishes at most once",
            id="two_ends",
            segment=0 * law.segment + signs_at_the_ends(self.ends, self.depth, self.c_w, self.c_b),
            digits=0 * law.digits
            + signs_at_the_ends(setting.pairs, len(DIGIT_WIDTHS), self.c_w, DIGIT_C_B),
            conditional=("start", self.given_below(setting)[:, 1]),
        )
        yield kit.rival(
            "the first layer's scale in every layer",
            "variances of weights are critical, so that layers look alike",
            segment=0 * law.segment + 2 * np.arctan(self.half / scales[0]) / np.pi,
            digits=0 * law.digits + on_digits[:, 0].mean(),
        )

    def controls(self, seen):
        narrow = seen.shifted_narrow.rename(narrow_shifted="draw")
        in_segment = seen.shifted_narrow_segment.rename(narrow_shifted="draw")
        yield kit.control(
            "weights with a mean of one standard deviation",
            "signs of weights can be flipped no more",
            line=seen.shifted_line.rename(shifted="seed"),
            segment=seen.shifted_segment.rename(shifted="seed"),
            narrow_line=narrow,
            cauchy_line=narrow,
            narrow_segment=in_segment,
            digits=seen.shifted_digits.rename(digits_shifted="pair"),
            redrawn=seen.redrawn_shifted,
        )
        yield kit.control(
            "one hidden layer without biases",
            "all breakpoints are at the origin",
            shallow=seen.unbiased,
        )

    def figure(self, law, seen, rivals):
        return panels_of_layers(law, seen, rivals, self.width)
