"""The exponential of normalized signals: ``K' = √(K_pp K_qq) e^{γ (ρ + s)}`` and ``Θ' = γ e^{γ (ρ + s)} Θ``."""

import jax.numpy as jnp

from steepest.kernels.wide._rule import (
    ROUNDING,
    Diagonal,
    Local,
    Pairs,
    Step,
    Values,
    of_variances,
    rule_for,
)
from steepest.nn.layers._nodes import ExpNormalize


@rule_for(ExpNormalize)
class OfExponential(Local[ExpNormalize]):
    """An exponential of the correlation; a signal of variance zero gives zero."""

    def degree(self, read):
        """Keep the degree: correlations do not depend on norms."""
        return read[0]

    def arrays(self, dual) -> int:
        """Count two: the deviation, and one over it."""
        return 2

    def numbers(self, step: Step) -> list[Values]:
        """Return the deviation, and one over it; both are zero where there is no signal."""
        (read,) = step.read
        xp = step.xp
        live = read.k > 0
        deviation = xp.sqrt(xp.where(live, read.k, 1.0))
        return [xp.where(live, deviation, 0.0), xp.where(live, 1 / deviation, 0.0)]

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Take ρ = 1, and bounds by the derivatives of both kernels there, which are the largest."""
        (read,) = step.read
        deviation, inverse = numbers
        gamma = self.node.gamma
        shift = self.node.shift
        top = step.xp.exp(gamma * (1 + shift))
        theta = None if read.theta is None else gamma * top * read.theta
        # E e^{√γ u} = e^{γ/2}, times e^{γ (s − 1)/2}
        behind = Diagonal(top * read.k, theta, step.xp.exp(gamma * shift / 2) * deviation)
        if not step.bounded:
            return behind
        # |∂K'/∂K| ≤ γ e^{γ (1 + s)}; exponentials amplify roundings of ρ by γ
        rounding = ROUNDING * step.eps * (1 + gamma)
        g = top * (gamma * read.g + rounding * read.k)
        relative = read.v * inverse**2
        if read.v.any():
            # ∂K'/∂log K_pp = ½ K' (1 − γ ρ)
            g = g + of_variances((1 + gamma) * top * relative * deviation, deviation, step.typical)
        v = top * read.v
        if theta is None or read.h is None:
            return behind._replace(g=g, v=v)
        # ∂Θ'/∂ρ = γ² e^{γ (ρ + s)} Θ, |Δρ| ≤ √(g_p g_q/(K_pp K_qq)), and ½ ρ v/K of each variance
        h = gamma * top * read.h + theta * (gamma * read.g * inverse**2 + rounding)
        if read.v.any():
            h = h + theta * of_variances(gamma * relative, 0 * relative + 1.0, step.typical)
        return behind._replace(g=g, h=h, v=v)

    def pairs(self, read, index, layout, one, two, pairing) -> Pairs:
        """Compute the exponential of the correlation."""
        (first,) = read
        rho = jnp.clip(first.k * (one[1] * two[1]), -1.0, 1.0)
        exponential = jnp.exp(self.node.gamma * (rho + self.node.shift))
        k = one[0] * two[0] * exponential
        theta = None if first.theta is None else self.node.gamma * exponential * first.theta
        return Pairs(k, theta)
