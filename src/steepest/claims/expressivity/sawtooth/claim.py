"""A ReLU network with L layers of two neurons can have 2^L linear pieces on [0, 1].

One layer of n ReLUs leaves at least 1 − n/2^(L−1) of the variance of this network's output unexplained. The tent g(x) =
2σ(x) − 4σ(x − ½) applied L times is a sawtooth of 2^(L−1) teeth. A function with n breakpoints is straight on all but n
teeth, and on a tooth no straight line is better than a constant. One hidden layer makes the sawtooth exactly from 2^L
neurons on, while L layers need 2L.
"""

from typing import Annotated

import numpy as np
import xarray

from steepest import kit
from steepest.claims.expressivity.sawtooth.experiment import (
    Depth,
    Neurons,
    SawtoothPoint,
    count_all,
    few_neurons,
    shallow_neurons,
    shares,
    teeth,
)
from steepest.claims.expressivity.sawtooth.figure import panels_of_sawtooth

MOST = 2**16  # pieces on a grid
SHALLOW = (1, 2, 3)
"""Depths at which all ways to turn the neurons of a shallow network can be tried."""
WHOLE = 0.5
"""Counts are whole numbers: less than this is no miss."""


@kit.claim
class Sawtooth(kit.Claim[None]):
    """Sawtooth networks on grids, and the best fits of few straight pieces to them. Nothing is random."""

    depths: tuple[Annotated[int, kit.Within(1, 14)], ...] = kit.param(
        (1, 2, 3, 4, 5, 6, 7, 8),
        "L of the networks of two neurons a layer",
        unit="layers",
        scope=kit.choices((1, 2, 3, 4, 5, 6, 7, 8), (2, 4, 8, 12), (1, 3, 5, 7, 9)),
    )
    widths: tuple[Annotated[int, kit.Within(3, 100)], ...] = kit.param(
        (3, 4, 5), "w of other networks, in neurons a layer", unit="neurons"
    )
    width_depths: tuple[Annotated[int, kit.Within(1, 12)], ...] = kit.param(
        (4, 3, 3),
        "L of each of those",
        unit="layers",
        scope=kit.choices((4, 3, 3), (5, 4, 4), (2, 4, 5), why="pieces are counted up to 65536"),
    )
    error_depths: tuple[Depth, ...] = kit.param(
        (5, 8),
        "L of the sawtooth that is approximated",
        unit="layers",
        scope=kit.choices((5, 8), (5, 7, 8), why="most neurons must nearly repair the shallower"),
    )
    neurons: tuple[Neurons, ...] = kit.param(
        (1, 2, 4, 8, 15),
        "n, neurons of the one layer, or breakpoints, that approximate it",
        unit="neurons",
        scope=kit.choices((1, 2, 4, 8, 15), (1, 3, 5, 9, 15), why="with 16 teeth 16 say nothing"),
    )

    kind = "theorem"
    says = {
        "L layers of two neurons can have 2^L linear pieces": "pieces",
        "One layer of n ReLUs leaves at least 1 − n/2^(L−1) of the variance": "share",
    }
    tiny = {
        "depths": (1, 2, 3),
        "widths": (3, 4),
        "width_depths": (2, 2),
        "error_depths": (3, 5),
        "neurons": (1, 3),
    }
    full = {"depths": tuple(range(1, 15))}
    out_of_scope = {"neurons": (40,)}
    point = SawtoothPoint

    def axes(self):
        return {
            "depth": self.depths,
            "width": self.widths,
            "small": SHALLOW,
            "error_depth": self.error_depths,
            "neuron": self.neurons,
        }

    def check_fields(self) -> None:
        """Refuse networks with too many pieces to count."""
        kit.same_lengths(self, "widths", "width_depths")
        for width, depth in zip(self.widths, self.width_depths, strict=True):
            if width**depth > MOST:
                raise kit.UserError(
                    f"{depth} layers of {width} neurons make {width**depth} pieces, and at most {MOST} are counted; "
                    "take fewer layers"
                )

    def setting(self, key):
        return None

    def hypotheses(self, setting):
        yield few_neurons(max(self.neurons), min(self.error_depths))

    def predict(self, setting):
        depths = np.array(self.depths)
        teeth_of = 2.0 ** (np.array(self.error_depths) - 1)
        return kit.law(
            pieces=("depth", 2**depths),
            line=("depth", 2**depths + 2),
            spikes=("depth", 2 ** (depths - 1)),
            zigzag=("width", np.array(self.widths) ** np.array(self.width_depths)),
            neurons=("small", 2 ** np.array(SHALLOW)),
            share=("error_depth neuron", 1 - np.array(self.neurons) / teeth_of[:, None]),
        )

    def observe(self, setting, key):
        most = max(self.neurons)
        every = np.array([shares(teeth(depth), most) for depth in self.error_depths])
        chosen = np.array(self.neurons)
        parabola = shares(np.linspace(-1, 1, 1001) ** 2, most)[chosen]
        return kit.seen(
            **count_all(self.depths, self.widths, self.width_depths),
            neurons=("small", [shallow_neurons(depth) for depth in SHALLOW]),
            every_share=("error_depth break", every),
            share=("error_depth neuron", every[:, chosen]),
            parabola=("neuron", parabola),
        )

    def judge(self, law, seen):
        labels = {
            "pieces": "pieces on [0, 1]",
            "line": "pieces on the line of the printed network",
            "spikes": "spikes",
            "zigzag": "pieces with w neurons a layer",
            "neurons": f"neurons that one hidden layer needs, L ≤ {SHALLOW[-1]}",
        }
        counts = [
            kit.follows(name, law[name], seen[name], WHOLE, absolute=True, label=label)
            for name, label in labels.items()
        ]
        share = kit.at_least(
            "share", law.share, seen.share, label="share of the variance that n breakpoints leave"
        )
        yield from counts
        yield share

    def rivals(self, setting, law):
        depth = law["depth"]
        width = law["width"]
        layers = xarray.DataArray(
            np.array(self.width_depths), coords={"width": width}, dims="width"
        )
        yield kit.rival(
            "L spikes and 2 × 2^L regions",
            "as printed in the proof",
            id="printed",
            pieces=2 * law.pieces,
            line=2 * law.pieces,
            spikes=depth,
        )
        yield kit.rival(
            "2^L pieces on the line",
            "the number of the theorem, which does not say where",
            line=law.pieces,
        )
        yield kit.rival(
            "(w + 1)^L pieces",
            "a layer of w neurons multiplies pieces by at most w + 1",
            pieces=3**depth,
            zigzag=(width + 1) ** layers,
        )
        yield kit.rival(
            "1 + wL pieces",
            "each neuron bends once",
            pieces=1 + 2 * depth,
            zigzag=1 + width * layers,
        )
        yield kit.rival(
            "one hidden layer of 2^L − 1 neurons does it",
            "a shallow network of n neurons has up to n + 1 pieces",
            neurons=law.neurons - 1,
        )
        yield kit.rival(
            "n breakpoints leave at least 1 − n/2^L",
            "a breakpoint adds one straight piece, and repairs one of the 2^L",
            share=(1 + law.share) / 2,
        )

    def controls(self, seen):
        yield kit.control(
            "x² on [−1, 1] in place of the sawtooth",
            "on a smooth function the error of n pieces falls like n⁻⁴",
            share=seen.parabola.broadcast_like(seen.share),
        )
        yield kit.control(
            "tents of height ½",
            "what a half as high tent gives lies below its bend, so that other layers bend nothing",
            pieces=seen.low_pieces,
            line=seen.low_line,
            spikes=seen.low_spikes,
        )

    def figure(self, law, seen, rivals):
        return panels_of_sawtooth(law, seen)
