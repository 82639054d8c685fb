"""What the figure of sawtooth shows."""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.expressivity.sawtooth.experiment import STEPS, on_grid
from steepest.geometry import zigzag

SHOWN = 4
"""Layers of the network that is drawn."""


def panels_of_sawtooth(law: xarray.Dataset, seen: xarray.Dataset) -> tuple[kit.Panel, ...]:
    """Draw a sawtooth, how its pieces double, and what few breakpoints leave of the deepest one."""
    steps = STEPS * 2**SHOWN
    x = np.arange(steps + 1) / steps
    depths = law["depth"].values
    every = np.arange(seen.sizes["break"])
    depth = int(law["error_depth"].values[-1])
    share = seen.every_share.values[-1]
    repaired = 2.0**depth * (1 - share[1:]) / every[1:]
    return (
        kit.panel(
            f"{SHOWN} layers of two neurons make {2 ** (SHOWN - 1)} teeth",
            "x",
            "output",
            kit.observed_curve(x, on_grid(zigzag(SHOWN), 0.0, 1.0, steps)),
        ),
        kit.panel(
            "Pieces double with each layer",
            "layers L",
            "pieces on [0, 1]",
            kit.observed_curve(depths, seen.pieces.values, "counted", kind="points"),
            kit.predicted_curve(depths, law.pieces.values, "2^L"),
            kit.rival_curve(depths, 1 + 2 * depths, "one layer of 2L neurons"),
            log="y",
        ),
        kit.panel(
            f"Few breakpoints leave most of the sawtooth of {depth} layers",
            "breakpoints n",
            "share of the variance left",
            kit.observed_curve(every, share, "best fit"),
            kit.bound_curve(
                every,
                1 - every / 2 ** (depth - 1),
                "no fit gets below 1 − n/2^(L−1)",
                forbidden="below",
                tall=0.08 * (every[-1] / 2 ** (depth - 1)),
            ),
            kit.rival_curve(every, 1 - every / 2**depth, "one piece a breakpoint, 1 − n/2^L"),
        ),
        kit.panel(
            "A breakpoint repairs between one piece and two",
            "breakpoints n",
            "pieces repaired by each",
            kit.observed_curve(every[1:], repaired, "best fit"),
            kit.bound_curve(
                every[1:], 0.0 * every[1:] + 2, "at most 2", forbidden="above", tall=0.06
            ),
            kit.rival_curve(every[1:], 0.0 * every[1:] + 1, "one"),
            ylim=(0.8, 2.2),
        ),
    )
