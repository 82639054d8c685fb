"""Layer normalization at each position: ``(K − m_p m'_q)/(s_p s'_q)`` and ``Θ/(s_p s'_q)``."""

import numpy as np

from steepest.core.errors import UserError
from steepest.core.given import traced
from steepest.kernels.wide._rule import (
    Diagonal,
    Local,
    Pairs,
    Step,
    Values,
    of_variances,
    rule_for,
)
from steepest.nn.layers._nodes import Normalize


@rule_for(Normalize)
class OfNormalization(Local[Normalize]):
    """Means and deviations over the channels."""

    fills = True

    def arrays(self, dual) -> int:
        """Count two: mean, and one over the deviation."""
        return 2

    def numbers(self, step: Step) -> list[Values]:
        """Return mean, and one over the deviation.

        Raises:
            UserError: all channels are equal at some positions.
        """
        (read,) = step.read
        return [read.mean, 1 / step.xp.sqrt(_spread(read, step.index))]

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Divide by the channels' variance; where that errs, so does what it divides, by half as much a position."""
        (read,) = step.read
        spread = read.k - read.mean**2
        ones = step.xp.ones_like(spread)
        behind = Diagonal(ones, None if read.theta is None else read.theta / spread, 0 * ones)
        if not step.bounded:
            return behind
        g = read.g / spread
        v = read.v / spread
        h = None if read.h is None else read.h / spread
        if v.any():
            moved = of_variances(v, ones, step.typical)
            g = g + moved
            h = h if h is None or behind.theta is None else h + moved * behind.theta
        return behind._replace(g=g, h=h, v=0 * ones)

    def pairs(self, read, index, layout, one, two, pairing) -> Pairs:
        """Subtract means from K alone, and divide both kernels."""
        scale = one[1] * two[1]
        # E (z − m)(z' − m') = K − m m'; Θ is divided alone
        centred = Pairs(read[0].k - one[0] * two[0], read[0].theta)
        return centred.map(lambda kernel: kernel * scale)


def _spread(read: Diagonal, index: int) -> Values:
    spread = read.k - read.mean**2
    if traced(spread):
        return spread
    bad = ~(np.asarray(spread) > 1e-12 * np.asarray(read.k))
    if bad.any():
        which = int(np.argmax(bad.reshape(-1, bad.shape[-1]).any(0)))
        raise UserError(
            f"layer normalization (node {index}) divides by zero: all channels are equal at some positions of row "
            f"{which} of the inputs; add biases by c_b, or fill what is empty there"
        )
    return spread
