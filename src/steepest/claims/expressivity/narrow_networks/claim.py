"""In the plane a ReLU network of width two stays ½ away from ‖x‖; width three or one neuron a residual block do not.

The theorem has it for d inputs and width d; d = 2 is what is run. Level sets of a network no wider than its input reach
the boundary of every compact domain, so that it has no maximum inside: no depth makes up for the missing neuron. A
residual network keeps its input and may have one hidden neuron a block.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
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
    Positive,
    Prediction,
    Rival,
    Seeds,
    Values,
    Within,
    agreement,
    assume,
    bound,
    equal,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.expressivity._random_networks import random_network
from steepest.claims.expressivity.narrow_networks.experiment import (
    DEEP,
    ROUNDING,
    WIDEST,
    NarrowPoint,
    Tasks,
    blocks_layers,
    bounded,
    chain_layers,
    chain_starts,
    distance_to_norm,
    extremes,
    residual_starts,
    running_maximum,
    train,
)
from steepest.geometry import Layer, preactivations
from steepest.nn.data import digits
from steepest.nn.networks import folding

GRID = 17  # points a side, of what is trained on
HALF = 2.0  # of the square around the disc
WIDER = (3, 4)  # widths above the input's
WIDER_DEPTH = 5
WIDER_C_B = 0.1  # of theirs: with larger biases their extrema are outside the square
LEAST_NETWORKS = 100  # of which some of width three have an extremum inside
POLYGONS = (3, 4, 6, 8, 16, 32)  # directions of the running maximum
SEARCHED = (
    0.005  # what the points at which ‖x‖ is compared may miss of the supremum, for slopes up to 3
)
LEAST_STEPS = 500
STEP_SIZES = (0.005, 0.1)
LEAST_BLOCKS = 6
LEAST_RESIDUALS = 6
MOST = 0.3  # of the residual networks must have learned the disc; what the others lack is training


class Setting(NamedTuple):
    """Random networks, and what is trained on."""

    narrow: list[list[Layer]]
    wider: list[list[list[Layer]]]  # by width
    ball: Values  # (m, 2)
    square: Values  # (m, 2)
    pixels: Values  # two principal components of digits, (m, 2)
    zero: Values  # ±1, whether each is a zero


@dataclass(frozen=True)
class NarrowNetworks(Claim):
    """Two inputs: random networks, networks trained on ‖x‖, on a disc and on digits, and constructions."""

    width: Count = 2  # of the narrow networks; the input has two dimensions [1]
    depths: tuple[Annotated[int, Within(1, 100)], ...] = (2, 5, 10)  # of the random ones [1]
    networks: Seeds = 150  # random ones of each kind [1]
    c_b: Annotated[float, Within(1e-6, 1e3)] = (
        0.1  # variance of the biases of those no wider than the input [1]
    )
    trained: Seeds = 6  # narrow networks trained on each of the norm and the disc [1]
    wide: Seeds = 12  # networks of width four trained on the norm [1]
    blocks: Count = 8  # of the residual networks [1]
    residuals: Seeds = 10  # residual networks trained on the disc [1]
    steps: Count = 700  # of Adam [1]
    lr: Positive = 0.02  # its first step size [1]
    folds: Annotated[int, Within(1, 20)] = 6  # of the construction [1]

    kind = "theorem"
    statement = (
        r"\mathrm{width}\le d\;\Rightarrow\;\max_K f=\max_{\partial K}f,\qquad "
        r"\sup_{\lVert x\rVert\le 1}|f(x)-\lVert x\rVert|\ge\frac{1}{2}"
    )
    source = "Jegelka's talk of 29 January in the notes [@vodrahalli2019]; [@hanin2017]; [@johnson2019]; [@lin2018]"
    corrections = (
        "“Always has an unbounded decision boundary”: every component of every level set is unbounded, or empty. In a "
        "compact domain it reaches the boundary, which is what is tested here.",
        "“ResNet with only 1-width hidden layers are sufficient to approximate any integrable function” in the mean, "
        "not in the supremum. For ‖x‖ in the plane a folding does it in the supremum too.",
    )
    remarks = (
        "Why. ReLU is a limit of one-to-one functions, so that a chain no wider than its input is a limit of "
        "one-to-one maps of the input followed by a projection; a level set of those reaches the boundary, and so do "
        "the limits' (Hanin and Sellke, Johnson). If f(0) ≥ ½, it is ½ off at 0; else the level set of f(0) reaches "
        "the unit sphere, where it is more than ½ off. The constant ½ is exactly ½ off.",
        "Extremes are exact: a network is affine in each of its regions, so they are at corners of regions. A grid "
        "would take thin components for bounded ones.",
        "Many deep narrow random networks are constant, of width two about 40 % at depth five and 85 % at ten; for "
        "these the law is empty. They are counted, with an excess of zero.",
        "Trained networks can only fail to refute the ½, which the theorem has for all; the control shows that width "
        "four goes below it after the same training, in some of its runs. The error is a maximum over 28 000 points, "
        "0.003 apart on the circle, so that it is judged with 0.005 to spare, which does for slopes up to 3.",
        "A bounded region is one of {f > 0} inside of one of five squares around the disc, with f ≤ 0 on the square's "
        "edge. Five to nine of ten residual networks had one on seeds 0 to 4; that some have is the point, what the "
        "others lack is training.",
        "The constructions: width three, with K hidden layers, keeps x and a running maximum of K directions and is 1 "
        "− cos (π/K) off; a residual network of m blocks of one neuron folds the plane to a wedge and is 1 − "
        "cos(π/2^m) off, with 5m parameters. That residual networks approximate every integrable function is not "
        "tested.",
        "Zeros against other digits, in two principal components, lie at the edge of the cloud: there width two loses "
        "little (0.99 of the images right where training does not stop at a constant), and its region reaches the "
        "edge as it must.",
        "The talk counts d against d² parameters; that is of one layer, 2d + 1 against (d + 1)(d + 2), and no "
        "comparison at equal error is made here.",
    )
    headline = ("random", "trained_error", "width_three", "folding")
    full = {"networks": 1000, "trained": 20, "wide": 40, "residuals": 40, "steps": 1500}
    tiny = {
        "networks": 10,
        "depths": (2, 3),
        "trained": 3,
        "wide": 3,
        "blocks": 2,
        "residuals": 3,
        "steps": 20,
        "folds": 3,
    }
    out_of_scope = {"width": 3}
    point = NarrowPoint

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)

        def draw(widths: tuple[int, ...], c_b: float) -> list[list[Layer]]:
            return [random_network(rng, (2, *widths), 2.0, c_b) for _ in range(self.networks)]

        narrow = draw((1, 1), self.c_b)
        for depth in self.depths:
            narrow += draw((self.width,) * depth, self.c_b)
        radius, turn = np.meshgrid(
            np.sqrt(np.linspace(0, 1, GRID)), 2 * np.pi * np.arange(GRID) / GRID
        )
        ball = np.stack([radius * np.cos(turn), radius * np.sin(turn)], -1).reshape(-1, 2)
        side = np.linspace(-HALF, HALF, GRID)
        square = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
        pixels, zero = _components(rng, len(square))
        wider = [draw((width,) * WIDER_DEPTH, WIDER_C_B) for width in WIDER]
        return Setting(narrow, wider, ball, square, pixels, zero)

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        return [assume("width of the networks", self.width, "<=", 2, "the input's dimension")]

    def predict(self, setting: Setting) -> Prediction:
        return Prediction(
            error=0.5,
            bounded=0.0,
            width_three=("polygon", 1 - np.cos(np.pi / np.array(POLYGONS))),
            folding=("fold", 1 - np.cos(np.pi / 2.0 ** np.arange(self.folds + 1))),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        inside = np.where((setting.square**2).sum(1) < 1, 1.0, -1.0)
        norm = np.linalg.norm(setting.ball, axis=1)
        width = min(self.width, WIDEST)
        tasks = [
            *[(width, setting.ball, norm, True)] * self.trained,
            *[(WIDEST, setting.ball, norm, True)] * self.wide,
            *[(width, setting.square, inside, False)] * self.trained,
            *[(width, setting.pixels, setting.zero, False)] * 3,
        ]
        widths, inputs, targets, is_norm = (np.array(column) for column in zip(*tasks, strict=True))
        rng = numpy_generator(key)
        chains, blocks = train(
            (chain_starts(rng, widths), residual_starts(rng, self.residuals, self.blocks)),
            Tasks(inputs, targets, is_norm),
            setting.square,
            inside,
            self.steps,
            self.lr,
        )
        layers = [
            chain_layers(jax.tree.map(lambda part, lane=lane: part[lane], chains))
            for lane in range(len(tasks))
        ]
        ends = np.cumsum([self.trained, self.wide, self.trained, 3])
        narrow, wide, disc, zeros = (
            layers[start:end] for start, end in zip((0, *ends[:-1]), ends, strict=True)
        )
        residuals = [
            blocks_layers(jax.tree.map(lambda part, lane=lane: part[lane], blocks))
            for lane in range(self.residuals)
        ]
        reach = 1.05 * np.abs(setting.pixels).max()
        random = [extremes(one) for one in setting.narrow]
        constant = [one.top <= one.bottom for one in random]
        return Observation(
            random=("network", [one.excess for one in random]),
            constant=("network", np.array(constant, float)),
            wider=(
                "width wider_network",
                [[extremes(one).excess for one in kind] for kind in setting.wider],
            ),
            error=("trained", [distance_to_norm(one) for one in narrow]),
            wide_error=("wide", [distance_to_norm(one) for one in wide]),
            disc_excess=("trained", [extremes(one, HALF).excess for one in disc]),
            disc_bounded=("trained", [bounded(one) for one in disc]),
            digits_excess=("three", [extremes(one, reach).excess for one in zeros]),
            digits_right=("three", [_right(one, setting.pixels, setting.zero) for one in zeros]),
            disc_right=("trained", [_right(one, setting.square, inside) for one in disc]),
            residual_right=("residual", [_right(one, setting.square, inside) for one in residuals]),
            residual_excess=("residual", [extremes(one, HALF).excess for one in residuals]),
            residual_bounded=(
                "residual",
                [bounded(one) for one in residuals],
            ),
            width_three=("polygon", [distance_to_norm(running_maximum(k)) for k in POLYGONS]),
            folding=(
                "fold",
                [_folding_error(folds) for folds in range(self.folds + 1)],
            ),
        )

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        # that some wider networks have an extremum inside takes enough of them, that some residual ones have found the
        # disc training too
        return [
            assume(
                "networks", self.networks, ">=", LEAST_NETWORKS, "of few none may do what some do"
            ),
            assume(
                "steps",
                self.steps,
                ">=",
                LEAST_STEPS,
                "none has learned the disc yet",
            ),
            assume(
                "step size",
                self.lr,
                between=STEP_SIZES,
                note="the disc is not learned",
            ),
            assume("blocks", self.blocks, ">=", LEAST_BLOCKS, "fewer folds rarely close a region"),
            assume(
                "residuals",
                self.residuals,
                ">=",
                LEAST_RESIDUALS,
                "of few none may learn the disc",
            ),
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        trained = np.concatenate([observed["disc_excess"], observed["digits_excess"]])
        return [
            bound(
                "random",
                observed["random"].max(),
                at_most=ROUNDING,
                label="random networks: largest excess of the inside over the boundary",
            ),
            bound(
                "trained_excess",
                trained.max(),
                at_most=ROUNDING,
                label="trained on the disc and on digits: the same",
            ),
            bound(
                "trained_error",
                observed["error"].min(),
                at_least=float(predicted["error"]) - SEARCHED,
                label="trained on ‖x‖: least error in the supremum",
            ),
            equal(
                "trained_disc",
                predicted["bounded"],
                observed["disc_bounded"].mean(),
                0.0,
                absolute=True,
                label="trained on the disc: share with a bounded region",
            ),
            bound(
                "residual_disc",
                observed["residual_bounded"].mean(),
                at_least=MOST,
                label="residual networks of one neuron: share with a bounded region",
            ),
            bound(
                "wider",
                (observed["wider"] > ROUNDING).mean(1).min(),
                at_least=0.02,
                label="random networks of width 3 and 4: least share with an extremum inside",
            ),
            agreement(
                "width_three",
                np.abs(observed["width_three"] - predicted["width_three"]).max(),
                1e-5,  # the points of the circle are 0.003 apart
                label="width three on ‖x‖: error − (1 − cos π/K)",
            ),
            agreement(
                "folding",
                np.abs(observed["folding"] - predicted["folding"]).max(),
                1e-9,
                label="foldings on ‖x‖: error − (1 − cos π/2^m)",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        folds = np.arange(self.folds + 1)
        directions = np.array(POLYGONS)
        return [
            Rival(
                "depth_makes_up",
                predicted.replace(bounded=0.5),
                "deep networks bend their boundary often enough to close it",
                label="half of the narrow networks find the disc",
            ),
            Rival(
                "halves",
                predicted.replace(folding=("fold", 2.0 ** (1 - folds))),
                "each fold halves the plane",
                label="each fold halves the error",
            ),
            Rival(
                "leading_order",
                predicted.replace(
                    width_three=("polygon", np.pi**2 / 2 / directions**2),
                    folding=("fold", np.pi**2 / 2 * 4.0**-folds),
                ),
                "1 − cos θ is about θ²/2",
                label="errors θ²/2 in place of 1 − cos θ",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        shape = observed["random"].shape
        return [
            Control(
                "one_neuron_more",
                observed.replace(
                    random=("network", np.resize(observed["wider"][0], shape)),
                    error=("wide", observed["wide_error"]),
                ),
                "wider than the input",
                label="random networks of width three, trained ones of width four",
            ),
            Control(
                "residual",
                observed.replace(
                    disc_excess=("residual", observed["residual_excess"]),
                    disc_bounded=("residual", observed["residual_bounded"]),
                ),
                "what a block hides it keeps beside",
                label="residual networks in place of chains on the disc",
            ),
            Control(
                "chain",
                observed.replace(
                    residual_bounded=("trained", observed["disc_bounded"]),
                    wider=("one network", observed["random"][None]),
                ),
                "no wider than the input",
                label="chains in place of residual and of wider networks",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        folds = np.arange(self.folds + 1)
        order = lambda name: np.sort(observed[name])
        rank = lambda name: (np.arange(len(observed[name])) + 0.5) / len(observed[name])
        return (
            panel(
                f"Trained on ‖x‖, {DEEP} hidden layers",
                "networks, sorted",
                "error in the supremum",
                observed_curve(rank("error"), order("error"), f"width {self.width}", kind="points"),
                observed_curve(
                    rank("wide_error"), order("wide_error"), "width 4", kind="points", shade=1.0
                ),
                predicted_curve((0, 1), (0.5, 0.5), "½"),
                ylim=(0, 1.2),
            ),
            panel(
                "Trained on the disc: chains give up",
                "networks, sorted",
                "share right",
                observed_curve(
                    rank("disc_right"), order("disc_right"), f"width {self.width}", kind="points"
                ),
                observed_curve(
                    rank("residual_right"),
                    order("residual_right"),
                    "residual, one neuron",
                    kind="points",
                    shade=1.0,
                ),
            ),
            panel(
                "Two constructions for ‖x‖",
                "hidden layers or blocks",
                "error in the supremum",
                observed_curve(POLYGONS, observed["width_three"], "width three", kind="points"),
                observed_curve(folds, observed["folding"], "folding", kind="points", shade=1.0),
                predicted_curve(POLYGONS, predicted["width_three"], "1 − cos π/K, 1 − cos π/2^m"),
                predicted_curve(folds, predicted["folding"]),
                rival_curve(folds, 2.0 ** (1 - folds), "each fold halves"),
                log="y",
            ),
        )


def _components(rng: np.random.Generator, number: int) -> tuple[Values, Values]:
    """Return two principal components of images of digits, of variance one together, and ±1 for zeros and others."""
    images = digits()
    x = np.asarray(images.x)
    x = x - x.mean(0)
    _, _, directions = np.linalg.svd(x, full_matrices=False)
    seen = x @ directions[:2].T
    chosen = rng.permutation(len(x))[:number]
    zero = np.where(np.asarray(images.y).argmax(1) == 0, 1.0, -1.0)
    return seen[chosen] / seen.std(), zero[chosen]


def _right(layers: list[Layer], x: Values, y: Values) -> float:
    """Return the share of inputs on the right side."""
    return float((np.sign(preactivations(layers, x)[-1][:, 0]) == y).mean())


def _folding_error(folds: int) -> float:
    """Return the largest |f(x) − ‖x‖| of a folding; the points of the circle include the edges of its wedge."""
    return distance_to_norm(blocks_layers(folding(folds)))
