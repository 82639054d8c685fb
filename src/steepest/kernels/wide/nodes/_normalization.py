"""Layer normalization of each position, ``(K − m_p m'_q)/(s_p s'_q)`` and ``Θ/(s_p s'_q)``, or of several together."""

from typing import NamedTuple

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
from steepest.nn.layers._nodes import Normalize, NormalizeTogether


@rule_for(Normalize)
class OfNormalization(Local[Normalize]):
    """Means and deviations over the channels."""

    fills = True

    def degree(self, read):
        """Return zero: norms are divided out."""
        return 0

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
        return _divided(behind, read, spread, read.v, step.typical)._replace(v=0 * ones)

    def pairs(self, read, index, layout, one, two, pairing) -> Pairs:
        """Subtract means from K alone, and divide both kernels."""
        scale = one[1] * two[1]
        # E (z − m)(z' − m') = K − m m'; Θ is divided alone
        centred = Pairs(read[0].k - one[0] * two[0], read[0].theta)
        return centred.map(lambda kernel: kernel * scale)


class Together(NamedTuple):
    """What several positions have in common, arrays that spread over ``(*space, n)``.

    Attributes:
        mean: of their channels.
        spread: s², the variance of their channels.
        error: of s².
    """

    mean: Values
    spread: Values
    error: Values


@rule_for(NormalizeTogether)
class OfJointNormalization(Local[NormalizeTogether]):
    """Means and deviations over the channels of several positions."""

    def degree(self, read):
        """Return zero: norms are divided out."""
        return 0

    def arrays(self, dual) -> int:
        """Count three: mean, what is left of it, and one over the deviation."""
        return 3

    def numbers(self, step: Step) -> list[Values]:
        """Return m_p, d_p/s and 1/s.

        Raises:
            UserError: all channels of some positions are equal.
        """
        (read,) = step.read
        together = self._together(step)
        _need_spread(together.spread, self._mean(step, read.k), step.index)
        scale = step.xp.ones_like(read.k) / step.xp.sqrt(together.spread)
        return [read.mean, (read.mean - together.mean) * scale, scale]

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Divide by the variance of all; where that errs, so does what it divides, by half as much a position."""
        (read,) = step.read
        mean, left, _ = numbers
        _, spread, error = self._together(step)
        k = (read.k - mean**2) / spread + left**2
        theta = None if read.theta is None else read.theta / spread
        behind = Diagonal(k, theta, left)
        if not step.bounded:
            return behind
        divided = _divided(behind, read, spread, error, step.typical)
        return divided._replace(v=(read.v + k * error) / spread)

    def pairs(self, read, index, layout, one, two, pairing) -> Pairs:
        """Subtract the common means from K, and divide both kernels."""
        scale = one[2] * two[2]
        # E (z − m)(z' − m') = K − m_p m'_q + d_p d'_q
        k = (read[0].k - one[0] * two[0]) * scale + one[1] * two[1]
        return Pairs(k, None if read[0].theta is None else read[0].theta * scale)

    def _together(self, step: Step) -> Together:
        (read,) = step.read
        mean = self._mean(step, read.mean)
        spread = self._mean(step, read.k) - mean**2
        if step.exists is not None:  # where no position exists there is none
            there = self._mean(step, step.exists * 1.0) > 0
            spread = step.xp.where(there, spread, 1.0)
        error = self._mean(step, read.v) if step.bounded else 0 * spread
        return Together(mean, spread, error)

    def _mean(self, step: Step, values: Values) -> Values:
        """Average over the positions that exist; what does not is zero."""
        axes = self.node.dimensions
        if step.exists is None:
            return values.mean(axes, keepdims=True)
        counts = (step.exists * 1.0).sum(axes, keepdims=True)
        return values.sum(axes, keepdims=True) / step.xp.maximum(counts, 1)


def _divided(
    behind: Diagonal, read: Diagonal, spread: Values, error: Values, typical: float
) -> Diagonal:
    """Bound what is divided by s s', where s² errs by ``error``."""
    g = read.g / spread
    h = None if read.h is None else read.h / spread
    if error.any():
        # |K'[p, q]| ≤ √(K'[p, p] K'[q, q]), and Θ' likewise: what s and s' change is of rank one
        moved = of_variances(error / spread, np.ones_like(behind.k), typical)
        g = g + moved * behind.k
        h = h if h is None or behind.theta is None else h + moved * behind.theta
    return behind._replace(g=g, h=h)


def _spread(read: Diagonal, index: int) -> Values:
    spread = read.k - read.mean**2
    _need_spread(spread, read.k, index)
    return spread


def _need_spread(spread: Values, k: Values, index: int) -> None:
    if traced(spread):
        return
    bad = ~(np.asarray(spread) > 1e-12 * np.asarray(k))
    if bad.any():
        which = int(np.argmax(bad.reshape(-1, bad.shape[-1]).any(0)))
        raise UserError(
            f"layer normalization (node {index}) divides by zero: all channels are equal at some positions of row "
            f"{which} of the inputs; add biases by c_b, or fill what is empty there"
        )
