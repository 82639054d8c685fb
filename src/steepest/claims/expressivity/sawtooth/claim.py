"""On [0, 1] L layers of two ReLUs make 2^L pieces; n ReLUs in one layer leave 1 − n/2^(L−1) of the variance, or more.

The tent g(x) = 2σ(x) − 4σ(x − ½) applied L times is a sawtooth of 2^(L−1) teeth. A function with n breakpoints has
none on all but n teeth, where no straight line is better than a constant. One hidden layer makes the sawtooth exactly
from 2^L neurons on, where L layers need 2L.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Control,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Prediction,
    Rival,
    UserError,
    Within,
    agreement,
    bound,
    idle,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
    same_lengths,
)
from steepest.claims.expressivity.sawtooth.experiment import (
    STEPS,
    Depth,
    Neurons,
    SawtoothPoint,
    count_pieces,
    count_spikes,
    few_neurons,
    on_grid,
    printed_network,
    shallow_neurons,
    shares,
    teeth,
)
from steepest.geometry import zigzag

HALF = 0.5  # counts are whole numbers
MOST = 2**16  # pieces on a grid
SHALLOW = (1, 2, 3)
"""Depths at which all ways to turn the neurons of a shallow network can be tried."""


@dataclass(frozen=True)
class Sawtooth(Claim):
    """Sawtooth networks on grids, and the best fits of few straight pieces to them. Nothing is random."""

    # L of the networks of two neurons a layer [layers]
    depths: tuple[Annotated[int, Within(1, 14)], ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    # w of other networks, in neurons a layer [neurons]
    widths: tuple[Annotated[int, Within(3, 100)], ...] = (3, 4, 5)
    # L of each of those [layers]
    width_depths: tuple[Annotated[int, Within(1, 12)], ...] = (4, 3, 3)
    error_depths: tuple[Depth, ...] = (6, 7)  # L of the sawtooth that is approximated [layers]
    # n, neurons of the one layer, or breakpoints, that approximate it [neurons]
    neurons: tuple[Neurons, ...] = (1, 2, 4, 8, 16, 31)

    kind = "theorem"
    headline = ("pieces", "neurons", "share")
    statement = (
        r"g(x)=2\sigma(x)-4\sigma(x-\frac{1}{2}),\qquad \#\mathrm{pieces}\;\mathrm{of}\;g^{\circ L}=2^L,\qquad "
        r"\min_{h:\,n\,\mathrm{breaks}}\frac{\lVert g^{\circ L}-h\rVert_2^2}{\mathrm{Var}\,g^{\circ L}}"
        r"\ge 1-\frac{n}{2^{L-1}}"
    )
    source = "Lecture of 5 December in [@hanin2022], theorem A; [@telgarsky2016]"
    corrections = (
        "The proof gives f_L “L spikes and so 2 × 2^L regions”. It has 2^(L−1) spikes; pieces are 2^L on [0, 1] and "
        "2^L + 2 on the line. The theorem's 2^L is right on [0, 1] only.",
        "Theorem A takes depth 2L and 3L − 1 neurons. The inner σ(x) and the outer σ change nothing on [0, 1], where L "
        "hidden layers of two neurons, 2L in all, give the same function.",
    )
    remarks = (
        "With two neurons a layer breakpoints are multiples of 2^(−L), and everything on the grid is exact in floating "
        "point. Pieces are counted by second differences.",
        "The share is the optimum over all functions of n + 1 straight pieces, joined or not, by dynamic programming: "
        "no shallow network of n neurons, however trained, comes closer on the points. The points are such that the "
        "bound is exact on them: the variance of each tooth is that of the whole.",
        "The bound is not attained. A breakpoint pays for two pieces in the bound; the optimum gets 1.33 for each of "
        "the first two, at the ends, and 1.15 on average for 31 of them, as the figure shows.",
        "One breakpoint fewer than pieces is not enough neurons: 2^L − 1 neurons at the 2^L − 1 breakpoints have jumps "
        "of slope ±2^(L+1), so that the slope at the left end is a multiple of 2^(L+1), and cannot be 2^L. For L ≤ 3 "
        "all ways to turn them are tried.",
        "That descent finds such networks is not claimed.",
    )
    full = {"depths": tuple(range(1, 15)), "error_depths": (6, 7, 8)}
    tiny = {
        "depths": (1, 2, 3),
        "widths": (3, 4),
        "width_depths": (2, 2),
        "error_depths": (4,),
        "neurons": (1, 3),
    }
    out_of_scope = {"neurons": (40,)}
    point = SawtoothPoint

    def check_fields(self) -> None:
        same_lengths(self, "widths", "width_depths")
        for width, depth in zip(self.widths, self.width_depths, strict=True):
            if width**depth > MOST:
                raise UserError(
                    f"{depth} layers of {width} neurons make {width**depth} pieces, and at most {MOST} are counted; "
                    "take fewer layers"
                )

    def hypotheses(self, setting: Any) -> list[Hypothesis]:
        return [few_neurons(max(self.neurons), min(self.error_depths))]

    def predict(self, setting: Any) -> Prediction:
        depths = np.array(self.depths)
        return Prediction(
            pieces=("depth", 2**depths),
            line=("depth", 2**depths + 2),
            spikes=("depth", 2 ** (depths - 1)),
            zigzag=("width", np.array(self.widths) ** np.array(self.width_depths)),
            neurons=("small", 2 ** np.array(SHALLOW)),
            share=("error_depth neuron", self.bounds(1.0)),
        )

    def bounds(self, teeth_each: float) -> np.ndarray:
        """Return the share that is left if a neuron repairs so many teeth, shape ``(depths, neurons)``."""
        every = 2.0 ** (np.array(self.error_depths) - 1)
        return 1 - teeth_each * np.array(self.neurons) / every[:, None]

    def observe(self, setting: Any, key: Key) -> Observation:
        inside = []
        line = []
        apart = []
        for depth in self.depths:
            steps = STEPS * 2**depth
            values = on_grid(zigzag(depth), 0.0, 1.0, steps)
            printed = printed_network(depth)
            inside.append(values)
            line.append(count_pieces(on_grid(printed, -1.0, 2.0, 3 * steps)))
            apart.append(np.abs(on_grid(printed, 0.0, 1.0, steps) - values).max())
        others = [
            count_pieces(on_grid(zigzag(depth, width), 0.0, 1.0, STEPS * width**depth))
            for width, depth in zip(self.widths, self.width_depths, strict=True)
        ]
        most = max(self.neurons)
        left = [shares(teeth(depth), most) for depth in self.error_depths]
        grid = np.linspace(-1, 1, 1001)
        chosen = np.array(self.neurons)
        return Observation(
            pieces=("depth", [count_pieces(values) for values in inside]),
            spikes=("depth", [count_spikes(values) for values in inside]),
            line=("depth", line),
            apart=("depth", apart),
            zigzag=("width", others),
            neurons=("small", [shallow_neurons(depth) for depth in SHALLOW]),
            every_share=("error_depth break", left),
            share=("error_depth neuron", np.array(left)[:, chosen]),
            smooth=("neuron", shares(grid**2, most)[chosen]),
        )

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        labels = {
            "pieces": "pieces on [0, 1]",
            "line": "pieces on the line of the printed network",
            "spikes": "spikes",
            "zigzag": "pieces with w neurons a layer",
            "neurons": f"neurons that one hidden layer needs, L ≤ {SHALLOW[-1]}",
        }
        counts = [
            agreement(
                name,
                np.abs(observed[name] - predicted[name]).max(),
                HALF,
                label=f"{label}: largest miss",
            )
            for name, label in labels.items()
        ]
        return [
            *counts,
            bound(
                "share",
                (observed["share"] - predicted["share"]).min(),
                at_least=0.0,
                label="share of the variance that n breakpoints leave, over its bound: least",
            ),
            idle(
                agreement(
                    "same",
                    observed["apart"].max(),
                    0.0,
                    label="printed network less that of 2L neurons, on [0, 1]",
                ),
                "two forms of one function, in exact arithmetic",
            ),
        ]

    def rivals(self, setting: Any, predicted: Prediction) -> list[Rival]:
        depths = np.array(self.depths)
        widths = np.array(self.widths)
        layers = np.array(self.width_depths)
        small = np.array(SHALLOW)
        return [
            Rival(
                "printed",
                predicted.replace(
                    pieces=("depth", 2 * 2**depths),
                    line=("depth", 2 * 2**depths),
                    spikes=("depth", depths),
                ),
                "as printed in the proof",
                label="L spikes and 2 × 2^L regions",
            ),
            Rival(
                "ends_forgotten",
                predicted.replace(line=("depth", 2**depths)),
                "the number of the theorem, which does not say where",
                label="2^L pieces on the line",
            ),
            Rival(
                "bound_attained",
                predicted.replace(
                    pieces=("depth", 3**depths), zigzag=("width", (widths + 1) ** layers)
                ),
                "a layer of w neurons multiplies pieces by at most w + 1",
                label="(w + 1)^L pieces",
            ),
            Rival(
                "pieces_add",
                predicted.replace(
                    pieces=("depth", 1 + 2 * depths), zigzag=("width", 1 + widths * layers)
                ),
                "each neuron bends once",
                label="1 + wL pieces",
            ),
            Rival(
                "one_fewer",
                predicted.replace(neurons=("small", 2**small - 1)),
                "a shallow network of n neurons has up to n + 1 pieces",
                label="one hidden layer of 2^L − 1 neurons does it",
            ),
            Rival(
                "one_piece_each",
                predicted.replace(share=("error_depth neuron", self.bounds(0.5))),
                "a breakpoint adds one straight piece, and repairs one of the 2^L",
                label="n breakpoints leave at least 1 − n/2^L",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        smooth = np.broadcast_to(observed["smooth"], observed["share"].shape)
        return [
            Control(
                "parabola",
                observed.replace(share=("error_depth neuron", smooth)),
                "on a smooth function the error of n pieces falls like n⁻⁴",
                label="x² on [−1, 1] in place of the sawtooth",
            )
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        depths = np.array(self.depths)
        shown = 4
        x = np.arange(STEPS * 2**shown + 1) / (STEPS * 2**shown)
        every = np.arange(observed["every_share"].shape[1])
        last = len(self.error_depths) - 1
        depth = self.error_depths[last]
        share = observed["every_share"][last]
        gains = 2.0**depth * (1 - share[1:]) / every[1:]
        return (
            panel(
                f"L = {shown} layers of two neurons",
                "x",
                "output",
                observed_curve(x, on_grid(zigzag(shown), 0.0, 1.0, STEPS * 2**shown)),
            ),
            panel(
                "Pieces double with each layer",
                "L",
                "pieces on [0, 1]",
                observed_curve(depths, observed["pieces"], kind="points"),
                predicted_curve(depths, predicted["pieces"], "2^L"),
                rival_curve(depths, 1 + 2 * depths, "1 + 2L"),
                log="y",
            ),
            panel(
                f"What n breakpoints leave at L = {depth}",
                "n",
                "share of the variance",
                observed_curve(every, share, "optimum"),
                predicted_curve(every, 1 - every / 2 ** (depth - 1), "1 − n/2^(L−1)"),
                rival_curve(every, 1 - every / 2**depth, "1 − n/2^L"),
                ylim=(0, 1.05),
            ),
            panel(
                "What a breakpoint repairs",
                "n",
                "pieces that are repaired, per breakpoint",
                observed_curve(every[1:], gains, "optimum"),
                predicted_curve(every[1:], 0.0 * every[1:] + 2, "2, at most"),
                rival_curve(every[1:], 0.0 * every[1:] + 1, "1"),
                ylim=(0.8, 2.2),
            ),
        )
