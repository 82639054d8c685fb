"""An activation: ``K' = E σ(u)σ(v)`` and ``Θ' = E σ'(u)σ'(v) Θ``."""

import numpy as np

from steepest.core.errors import UserError
from steepest.kernels.wide._rule import (
    Diagonal,
    Local,
    Pairs,
    Step,
    Values,
    of_variances,
    rule_for,
)
from steepest.kernels.wide.duals import Bends, Expansion, Singles, Tolerances
from steepest.nn.activations import homogeneity
from steepest.nn.layers._nodes import Activate


@rule_for(Activate)
class OfActivation(Local[Activate]):
    """Expectations of a Gaussian pair."""

    fills = True

    def degree(self, read):
        """Multiply by the power of a homogeneous activation."""
        power = homogeneity(self.node.activation)
        return None if power is None else power * read[0]

    def arrays(self, dual) -> int:
        """Count what the expectations need at each position."""
        assert dual is not None
        return dual.arrays

    def numbers(self, step: Step) -> list[Values]:
        """Return what the expectations need at each position."""
        assert step.dual is not None
        return step.dual.sides(step.read[0].k, step.xp)

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Take the expectations of single positions, and bounds by their derivatives."""
        dual = step.dual
        (read,) = step.read
        assert dual is not None
        if not step.bounded:
            value, slope, mean = dual.moments(read.k, step.xp)
            return Diagonal(value, None if read.theta is None else slope * read.theta, mean)
        assert not isinstance(dual, Expansion)
        _need_variance(step, dual.tolerances(step.eps))
        singles = dual.singles(read.k)
        theta = None if read.theta is None else singles.slope * read.theta
        behind = Diagonal(singles.value, theta, singles.mean)
        bends = dual.bends(read.k) if read.v.any() else None
        return _bounded(behind, read, singles, dual.tolerances(step.eps), bends, step.typical)

    def pairs(self, read, index, layout, one, two, pairing) -> Pairs:
        """Compute the expectations of pairs."""
        assert pairing is not None
        k, theta = read[0]
        value, slope = pairing.pair(k, one, two)
        if theta is None:
            return Pairs(layout.settle(value)[0], None)
        settled = layout.settle(value, slope * theta)
        return Pairs(settled[0], settled[1])


def _need_variance(step: Step, errors: Tolerances) -> None:
    """Raise a UserError where signals cancel to what is rounded, whose angle at a corner is anything."""
    (read,) = step.read
    if not errors.corner:
        return
    # variances are computed in float64, in whatever precision pairs are
    rounded = read.v * (np.finfo(float).eps / step.eps)
    lost = (rounded > 0) & (read.k <= rounded)
    if lost.any():
        which = int(np.argmax(lost.reshape(-1, lost.shape[-1]).any(0)))
        raise UserError(
            f"signals of row {which} of the inputs cancel at some position before node {step.index}, whose activation "
            "has a corner, so that there is no tangent kernel; use a smooth activation, biases by c_b or another matrix"
        )


def _bounded(
    behind: Diagonal,
    read: Diagonal,
    singles: Singles,
    errors: Tolerances,
    bends: Bends | None,
    typical: float,
) -> Diagonal:
    # |ΔE σσ| ≤ √(E σ'² E σ'²) |ΔK| by Cauchy and Schwarz, plus the expectation's own error
    smooth = not errors.jump
    g = errors.value * singles.value
    if smooth:
        g = g + singles.slope * read.g
    else:
        g = g + errors.jump * _relative_root(read.g, read.k)
    v = np.zeros_like(read.v)
    if bends is not None and smooth:
        g = g + of_variances(np.sqrt(bends.value) * read.v, np.sqrt(singles.value), typical)
        # d E σ²/dK = E σ'² + E σσ''
        v = (singles.slope + np.sqrt(bends.value * singles.value)) * read.v
    elif bends is not None:
        g = g + _root_of_variances(read, errors.jump, typical)
    if read.theta is None or read.h is None:
        return behind._replace(g=g, v=v)
    # Δ(E σ'σ' Θ) = E σ'σ' ΔΘ + Θ ΔE σ'σ', to first order
    h = singles.slope * read.h + errors.slope * singles.slope * read.theta
    if errors.corner:
        h = h + errors.corner * _relative_root(read.g, read.k) * read.theta
    # |ΔE σ'σ'| ≤ √(E σ''² E σ''²) |ΔK|, beside corners
    h = h + singles.curvature * read.g * read.theta
    if bends is not None:
        h = h + _turned(read, bends, singles, errors, typical) * read.theta
    return behind._replace(g=g, h=h, v=v)


def _turned(
    read: Diagonal, bends: Bends, singles: Singles, errors: Tolerances, typical: float
) -> Values:
    """Return what errors of variances change in ``E σ'σ'``.

    With a corner |Δρ| is ``½ (w_p + w_q)`` with w = v/K, at most, of which the root is ``√(w_p/2) + √(w_q/2)`` at most.
    """
    if bends.slope is not None:
        return of_variances(np.sqrt(bends.slope) * read.v, np.sqrt(singles.slope), typical)
    return _root_of_variances(read, errors.corner, typical)


def _relative_root(errors: Values, variances: Values) -> Values:
    """Return √(g/K), zero where no signal is.

    ``|Δρ| ≤ √(g_p g_q/(K_pp K_qq))``, and ``b √|Δρ|`` is the root of such a product: of rank one.
    """
    return np.sqrt(np.divide(errors, variances, out=np.zeros_like(errors), where=variances > 0))


def _root_of_variances(read: Diagonal, law: float, typical: float) -> Values:
    """Return what errors of variances change where an expectation is only sure to ``law √|Δρ|``."""
    root = _relative_root(read.v, read.k) / np.sqrt(2)
    return 2 * law * of_variances(root, np.ones_like(root), typical**0.5)
