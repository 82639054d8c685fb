"""The expectations of one activation for all pairs of positions, from few numbers at each position.

Four ways: scale-invariant σ through the angle; a closed form of both variances; σ by pieces between knots, through
integrals over an angle; a Hermite series (Mehler 1866), whose coefficients are numbers at each position. Each says how
large its error can be, in units of ``√(E σ(u)² E σ(v)²)``. Where JAX traces variances, the series' coefficients are
integrals (``Expansion``) instead of tables (``Series``).

What pairs need beside these numbers is a ``Pairing``: programs are compiled for it, whatever the variances.
"""

import math

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels.duals._expectations import at_rest
from steepest.kernels.wide.duals._closed import Closed
from steepest.kernels.wide.duals._piecewise import FARTHEST, UNKNOWN, Piecewise, Wedges
from steepest.kernels.wide.duals._scale_invariant import ScaleInvariant
from steepest.kernels.wide.duals._series import (
    Expansion,
    Mehler,
    NoSeriesError,
    Series,
    covering_series,
    on_grid,
    parity,
)
from steepest.kernels.wide.duals._tables import FLOOR
from steepest.nn.activations import Activation, closed_form, homogeneous_slopes, jumps, pieces_of

Dual = ScaleInvariant | Closed | Piecewise | Series | Expansion
Pairing = ScaleInvariant | Closed | Wedges | Mehler


def has_series(activation: Activation) -> bool:
    """Tell whether expectations of an activation are summed as a Hermite series."""
    return (
        closed_form(activation) is None
        and not activation.kinks
        and homogeneous_slopes(activation) is None
    )


def dual_of(
    activation: Activation,
    variances: NDArray[np.float64] | None,
    tolerance: float,
    room: float = 1.05,
) -> Dual:
    """Choose the way of an activation at these variances, and at those larger or smaller by the factor ``room``.

    Of None, which stands for variances that JAX traces, the way is one at any variances.

    Raises:
        UserError: where no way meets the tolerance.
    """
    slopes = homogeneous_slopes(activation)
    if slopes is not None:
        empty = variances is None or not variances.all()
        return ScaleInvariant(*slopes, at_rest(activation)[1], empty=empty)
    jump = any(value for _, value, _ in jumps(activation))
    if closed_form(activation) is not None and not jump:
        return Closed(activation)
    if activation.kinks:
        return _of_kinks(activation, variances, room)
    if variances is None:
        return Expansion(activation, *parity(activation))
    live = variances[variances > 0]
    high = float(live.max(initial=0.0)) or 1.0
    low = max(float(live.min(initial=high)), FLOOR * high)
    empty = len(live) < variances.size
    try:
        return covering_series(activation, *on_grid(low / room, high * room), tolerance, empty)
    except NoSeriesError:  # the range itself asks for less
        return covering_series(activation, low / room, high * room, tolerance, empty)


def _of_kinks(
    activation: Activation, variances: NDArray[np.float64] | None, room: float
) -> Piecewise:
    """Choose the way of an activation with corners or jumps."""
    pieces = pieces_of(activation)
    split = None if pieces is None else pieces.split()
    if split is not None:
        if variances is None:
            return Piecewise(activation, UNKNOWN, empty=True)
        high = float(variances.max(initial=0.0)) or 1.0
        least = float(variances.min(where=variances > 0, initial=high))
        if split.gap > FARTHEST * math.sqrt(least * room):
            raise UserError(
                f"{activation.name} is zero up to {split.gap:g}, more than {FARTHEST:g} deviations of signals of the "
                f"variance {least:.3g}, so that next to nothing is left of them; use a larger c_w or c_b"
            )
        # few programs serve many inputs: their numbers of nodes follow from powers of two
        high = 2.0 ** math.ceil(math.log2(room * high))
        return Piecewise(activation, high, empty=not variances.all())
    raise UserError(
        f"{activation.name} has corners or jumps, and is neither cubic between its kinks nor given by pieces: its "
        "kernel between positions is not known to a tolerance; give it pieces, as piecewise does, use a smooth "
        "activation, or mlp() without positions"
    )
