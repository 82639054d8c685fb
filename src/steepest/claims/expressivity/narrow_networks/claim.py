"""On the unit disc, a ReLU network of width two stays at least ½ away from ‖x‖ at any depth.

Deep networks of width three come nearer, and so do residual networks with one hidden neuron in each block. The theorem
is for d inputs and width d; the experiment has d = 2. Level sets of a network no wider than its input reach the
boundary of every compact domain, so the network has no maximum inside: no depth compensates for the missing neuron. A
residual network keeps its input and may have one hidden neuron per block.
"""

from typing import Annotated, Any, NamedTuple

import jax
import numpy as np
import xarray

from steepest import kit
from steepest.claims.expressivity._random_networks import random_network
from steepest.claims.expressivity.narrow_networks.experiment import (
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
    folding_error,
    principal_components,
    residual_starts,
    running_maximum,
    share_right,
    train,
)
from steepest.claims.expressivity.narrow_networks.figure import POLYGONS, panels_of_networks
from steepest.geometry import Layer
from steepest.nn.types import Values

GRID = 17  # points a side, of what is trained on
HALF = 2.0  # of the square around the disc
WIDER = (3, 4)  # widths above the input's
WIDER_DEPTH = 5
WIDER_C_B = 0.1  # of theirs: with larger biases their extrema are outside the square
LEAST_NETWORKS = 100  # of which some of width three have an extremum inside
SEARCHED = (
    0.005  # what the points at which ‖x‖ is compared may miss of the supremum, for slopes up to 3
)
LEAST_STEPS = 500
STEP_SIZES = (0.005, 0.1)
LEAST_BLOCKS = 6
LEAST_RESIDUALS = 6


class Setting(NamedTuple):
    """Random networks, and training data."""

    narrow: list[list[Layer]]
    wider: list[list[list[Layer]]]  # by width
    ball: Values  # (m, 2)
    square: Values  # (m, 2)
    pixels: Values  # two principal components of digits, (m, 2)
    zero: Values  # ±1, whether each is a zero


@kit.claim
class NarrowNetworks(kit.Claim[Setting]):
    """Two inputs: random networks, networks trained on ‖x‖, on a disc and on digits, and constructions."""

    width: kit.Count = kit.param(
        2, "width of the narrow networks; the input has two dimensions", unit="neurons"
    )
    depths: tuple[Annotated[int, kit.Within(1, 100)], ...] = kit.param(
        (2, 5, 10),
        "depths of the random networks",
        unit="layers",
        scope=kit.choices((2, 5, 10), (1, 3, 6), (2, 4, 8)),
    )
    networks: kit.Seeds = kit.param(150, "random ones of each kind")
    c_b: Annotated[float, kit.Within(1e-6, 1e3)] = kit.param(
        0.1, "variance of the biases of those no wider than the input", scope=kit.between(0.01, 1.0)
    )
    trained: kit.Seeds = kit.param(6, "narrow networks trained on each of the norm and the disc")
    wide: kit.Seeds = kit.param(12, "networks of width four trained on the norm")
    blocks: kit.Count = kit.param(
        8, "blocks of the residual networks", unit="layers", scope=kit.between(7, 10)
    )
    residuals: kit.Seeds = kit.param(10, "residual networks trained on the disc")
    steps: kit.Count = kit.param(700, "steps of Adam", unit="steps", scope=kit.between(600, 900))
    lr: kit.Positive = kit.param(0.02, "its first step size", scope=kit.between(0.01, 0.03))
    folds: Annotated[int, kit.Within(1, 20)] = kit.param(
        6, "folds of the construction", scope=kit.between(4, 8)
    )

    kind = "theorem"
    says = {
        "a ReLU network of width two stays at least ½ away from ‖x‖": (
            kit.literal("random", "error", value=0.5),
            kit.literal("trained_error", "error", value=0.5),
        ),
        "Deep networks of width three come nearer": "width_three",
        "so do residual networks with one hidden neuron in each block": "folding",
    }
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
    full = {"networks": 1000, "trained": 20, "wide": 40, "residuals": 40, "steps": 1500}
    out_of_scope = {"width": 3}
    point = NarrowPoint

    def axes(self):
        return {
            "polygon": POLYGONS,
            "fold": tuple(range(1, self.folds + 1)),
        }

    def setting(self, key):
        rng = kit.numpy_generator(key)

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
        pixels, zero = principal_components(rng, len(square))
        wider = [draw((width,) * WIDER_DEPTH, WIDER_C_B) for width in WIDER]
        return Setting(narrow, wider, ball, square, pixels, zero)

    def hypotheses(self, setting):
        yield kit.assume("width of the networks", self.width, "<=", 2, "the input's dimension")

    def predict(self, setting):
        return kit.law(
            error=0.5,
            bounded=0.0,
            width_three=("polygon", 1 - np.cos(np.pi / np.array(POLYGONS))),
            folding=("fold", 1 - np.cos(np.pi / 2.0 ** np.arange(1, self.folds + 1))),
        )

    def observe(self, setting, key):
        inside = np.where((setting.square**2).sum(1) < 1, 1.0, -1.0)
        narrow, wide, disc, zeros, residuals = self.trained_networks(setting, inside, key)
        reach = 1.05 * np.abs(setting.pixels).max()
        random = [extremes(one) for one in setting.narrow]
        constant = [one.top <= one.bottom for one in random]
        return kit.seen(
            random=("draw", [one.excess for one in random]),
            constant=("draw", np.array(constant, float)),
            wider=(
                "width wider_network",
                [[extremes(one).excess for one in kind] for kind in setting.wider],
            ),
            error=("start", [distance_to_norm(one) for one in narrow]),
            wide_error=("wide", [distance_to_norm(one) for one in wide]),
            disc_excess=("start", [extremes(one, HALF).excess for one in disc]),
            disc_bounded=("start", [float(bounded(one)) for one in disc]),
            digits_excess=("three", [extremes(one, reach).excess for one in zeros]),
            digits_right=(
                "three",
                [share_right(net, setting.pixels, setting.zero) for net in zeros],
            ),
            disc_right=("start", [share_right(net, setting.square, inside) for net in disc]),
            residual_right=(
                "residual",
                [share_right(net, setting.square, inside) for net in residuals],
            ),
            residual_excess=("residual", [extremes(one, HALF).excess for one in residuals]),
            residual_bounded=("residual", [float(bounded(one)) for one in residuals]),
            width_three=("polygon", [distance_to_norm(running_maximum(k)) for k in POLYGONS]),
            folding=("fold", [folding_error(folds) for folds in range(1, self.folds + 1)]),
        )

    def trained_networks(
        self, setting: Setting, inside: Values, key: kit.Key
    ) -> list[list[list[Layer]]]:
        """Train chains on the norm, narrow and wide, on the disc and on digits; residual networks on the disc."""
        norm = np.linalg.norm(setting.ball, axis=1)
        width = min(self.width, WIDEST)
        tasks = [
            *[(width, setting.ball, norm, True)] * self.trained,
            *[(WIDEST, setting.ball, norm, True)] * self.wide,
            *[(width, setting.square, inside, False)] * self.trained,
            *[(width, setting.pixels, setting.zero, False)] * 3,
        ]
        widths, inputs, targets, is_norm = (np.array(column) for column in zip(*tasks, strict=True))
        rng = kit.numpy_generator(key)
        chains, blocks = train(
            (chain_starts(rng, widths), residual_starts(rng, self.residuals, self.blocks)),
            Tasks(inputs, targets, is_norm),
            setting.square,
            inside,
            self.steps,
            self.lr,
        )

        def of_lane(stacked: Any, lane: int) -> Any:
            return jax.tree.map(lambda part: part[lane], stacked)

        layers = [chain_layers(of_lane(chains, lane)) for lane in range(len(tasks))]
        ends = np.cumsum([self.trained, self.wide, self.trained, 3])
        groups = [layers[start:end] for start, end in zip((0, *ends[:-1]), ends, strict=True)]
        residuals = [blocks_layers(of_lane(blocks, lane)) for lane in range(self.residuals)]
        return [*groups, residuals]

    def run_conditions(self, observed):
        # that some wider networks have an extremum inside takes enough of them, that some residual ones have found the
        # disc training too
        yield kit.assume(
            "networks", self.networks, ">=", LEAST_NETWORKS, "of few none may do what some do"
        )
        yield kit.assume("steps", self.steps, ">=", LEAST_STEPS, "none has learned the disc yet")
        yield kit.assume("step size", self.lr, between=STEP_SIZES, note="the disc is not learned")
        yield kit.assume(
            "blocks", self.blocks, ">=", LEAST_BLOCKS, "fewer folds rarely close a region"
        )
        yield kit.assume(
            "residuals", self.residuals, ">=", LEAST_RESIDUALS, "of few none may learn the disc"
        )

    def judge(self, law, seen):
        inside = (seen.wider > ROUNDING).astype(float)
        yield kit.excluded(
            "random",
            -ROUNDING,
            -seen.random,
            label="random networks: excess of the boundary over the inside",
        )
        yield from self.judge_trained(law, seen)
        yield kit.at_least(
            "wider",
            1.0,
            inside.max("wider_network").min(),
            label="random networks of width 3 and 4: whether one of each has an extremum inside",
        )
        yield kit.follows(
            "width_three",
            law.width_three,
            seen.width_three,
            1e-5,  # the points of the circle are 0.003 apart
            absolute=True,
            label="width three on ‖x‖: error of K directions",
        )
        yield kit.follows(
            "folding",
            law.folding,
            seen.folding,
            1e-9,
            absolute=True,
            label="foldings on ‖x‖: error of m blocks",
        )

    def judge_trained(self, law, seen):
        """Judge the networks that were trained."""
        excess: list[xarray.DataArray] = [
            seen.disc_excess,
            seen.digits_excess.rename(three="start"),
        ]
        yield kit.at_most(
            "trained_excess",
            ROUNDING,
            xarray.concat(excess, "start"),
            each=True,
            label="trained on the disc and on digits: excess of the inside over the boundary",
        )
        yield kit.at_least(
            "trained_error",
            law.error - SEARCHED,
            seen.error,
            each=True,
            label="trained on ‖x‖: error in the supremum",
        )
        yield kit.follows(
            "trained_disc",
            law.bounded,
            seen.disc_bounded,
            0.5,
            absolute=True,
            each=True,
            label="trained on the disc: whether a region is bounded",
        )
        yield kit.at_least(
            "residual_disc",
            1.0,
            seen.residual_bounded.max(),
            label="residual networks of one neuron: whether one has a bounded region",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "narrow networks find the disc",
            "deep networks bend their boundary often enough to close it",
            bounded=1.0,
        )
        yield kit.rival(
            "each fold halves the error",
            "each fold halves the plane",
            folding=2.0 ** (1 - law.fold),
        )
        yield kit.rival(
            "errors θ²/2 in place of 1 − cos θ",
            "1 − cos θ is about θ²/2",
            width_three=np.pi**2 / 2 / law.polygon**2,
            folding=np.pi**2 / 2 * 4.0**-law.fold,
        )

    def controls(self, seen):
        chain = float(seen.error.min())
        better = np.sort(seen.wide_error.values)[: self.trained]
        yield kit.control(
            "random networks of width three; the best of the trained networks of width four",
            "wider than the input",
            id="one_neuron_more",
            random=("draw", np.resize(seen.wider.values[0], seen.random.shape)),
            error=("start", np.resize(better, self.trained)),
        )
        yield kit.control(
            "residual networks on the disc in place of chains",
            "what a block hides it keeps beside",
            id="residual",
            disc_excess=("start", np.resize(seen.residual_excess.values, self.trained)),
            disc_bounded=("start", np.resize(seen.residual_bounded.values, self.trained)),
            digits_excess=("three", np.resize(seen.residual_excess.values, 3)),
        )
        yield kit.control(
            "the best chain of width two in place of residual and of wider networks",
            "no wider than the input",
            id="chain",
            residual_bounded=("residual", np.resize(seen.disc_bounded.values, self.residuals)),
            wider=(seen.wider.dims, np.resize(seen.random.values, seen.wider.shape)),
            width_three=0 * seen.width_three + chain,
            folding=0 * seen.folding + chain,
        )

    def figure(self, law, seen, rivals):
        return panels_of_networks(self.width, law, seen)
