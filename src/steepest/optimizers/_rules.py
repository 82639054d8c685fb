"""Rules by which gradients become steps: the curvature at which each is unstable, and the size of its updates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError

Numbers = float | NDArray
"""One number, or an array of them that goes with the others."""


@dataclass(frozen=True)
class Momentum:
    """Descent with momentum: v ← βv + (1 − d)(g + λw), w ← w − ηv; Nesterov's rule takes g + λw + βv for v.

    Attributes:
        beta: β; without, this is plain descent.
        nesterov: whether it is Nesterov's rule.
        dampening: d, the share of each gradient that is left out.
    """

    beta: Numbers = 0.0
    nesterov: bool = False
    dampening: float = 0.0

    def __post_init__(self) -> None:
        _check_part("momentum β", self.beta)
        _check_part("dampening", self.dampening)
        if self.nesterov and self.dampening:
            raise UserError("Nesterov's rule has no dampening; got both")

    @property
    def turn(self) -> Numbers:
        """Return the product of step size and curvature at which steps to and fro neither grow nor shrink.

        On ½hw² two successive steps give z² − (1 + β − (1 − d)ηh)z + β, and z² − (1 + β)(1 − ηh)z + β(1 − ηh) under
        Nesterov's rule. The root that comes to −1 does so at this ηh.

        Source: Cohen et al. 2021; derived again here.

        >>> Momentum().turn, Momentum(0.5).turn, Momentum(0.5, nesterov=True).turn
        (2.0, 3.0, 1.5)
        """
        if self.nesterov:
            # 1 + (1 + β)(1 − ηh) + β(1 − ηh) = 0, the polynomial at z = −1
            return 2 * (1 + self.beta) / (1 + 2 * self.beta)
        return 2 * (1 + self.beta) / (1 - self.dampening)  # 1 + (1 + β − (1 − d)ηh) + β = 0

    def edge(self, lr: Numbers, decay: float = 0.0) -> Numbers:
        """Return the largest curvature of the risk that a step size bears; a decay in the gradient adds to curvature.

        >>> round(Momentum(0.9).edge(0.1), 9), Momentum().edge(0.1, decay=0.5)
        (38.0, 19.5)
        """
        return self.turn / lr - decay  # η(h + λ) is at the turn

    def largest_step(self, curvature: Numbers, decay: float = 0.0) -> Numbers:
        """Return the step size whose edge is at a curvature.

        >>> round(Momentum(0.9).largest_step(38.0), 9)
        0.1
        """
        return self.turn / (curvature + decay)

    def update_size(self, mean: Numbers = 0.0, deviation: Numbers = 1.0) -> Numbers:
        """Return the root mean square of v, after many steps of gradients that are independent of each other.

        v is Σ a_k g_{t−k} with a_k = (1 − d)βᵏ; under Nesterov's rule a_0 = 1 + β and a_k = β^{k+1}. Its mean square is
        (Σ a_k)² of the squared mean, and Σ a_k² of the variance.

        Args:
            mean: of a weight's gradients.
            deviation: their standard deviation.

        >>> round(float(Momentum(0.6).update_size()), 9), float(Momentum(0.5).update_size(1.0, 0.0))
        (1.25, 2.0)
        """
        # Σ a_k; under Nesterov's rule 1 + β + β²/(1 − β) is 1/(1 − β) too
        sums = (1 - self.dampening) / (1 - self.beta)
        squares = (1 - self.dampening) ** 2 / (1 - self.beta**2)  # Σ a_k²
        if self.nesterov:
            # a_0², then β^{2k+2} from k = 1 on
            squares = (1 + self.beta) ** 2 + self.beta**4 / (1 - self.beta**2)
        return np.sqrt((sums * mean) ** 2 + squares * np.square(deviation))


@dataclass(frozen=True)
class Adam:
    """Adam, and AdamW: w ← (1 − ηλ)w − η m̂/(√v̂ + ε), with averages m of gradients and v of their squares.

    Attributes:
        beta1: β₁ of m.
        beta2: β₂ of v.
    """

    beta1: Numbers = 0.9
    beta2: Numbers = 0.999

    def __post_init__(self) -> None:
        _check_part("β₁", self.beta1)
        _check_part("β₂", self.beta2)

    @property
    def turn(self) -> Numbers:
        """Return the product of step size and curvature, in Adam's own coordinates, at which steps keep their size.

        The curvature is the largest eigenvalue of D^(−½)HD^(−½), D = √v̂ + ε. With D at rest a step is one of momentum
        whose gradients have the factor 1 − β₁.

        Source: Cohen et al. 2022; derived again here.

        >>> round(Adam(0.9).turn, 9)
        38.0
        """
        return 2 * (1 + self.beta1) / (1 - self.beta1)

    def edge(self, lr: Numbers, decay: float = 0.0) -> Numbers:
        """Return the largest curvature in Adam's own coordinates that a step size bears; decay is AdamW's.

        With q = 1 − ηλ two successive steps give z² − (q + β₁ − (1 − β₁)ηh)z + qβ₁, which is zero at z = −1 for
        ηh = (1 + q)(1 + β₁)/(1 − β₁).

        >>> round(Adam(0.9).edge(0.1), 9), round(Adam(0.9).edge(0.1, decay=2.0), 9)
        (380.0, 342.0)
        """
        return (1 - lr * decay / 2) * self.turn / lr  # 1 + q = 2 − ηλ

    def largest_step(self, curvature: Numbers, decay: float = 0.0) -> Numbers:
        """Return the step size whose edge is at a curvature in Adam's own coordinates.

        >>> round(Adam(0.9).largest_step(342.0, decay=2.0), 9)
        0.1
        """
        return self.turn / (curvature + self.turn * decay / 2)  # from (1 − ηλ/2) turn = ηh

    def update_size(self, signal: Numbers = 0.0) -> Numbers:
        """Return the root mean square of m̂/√v̂ for β₂ → 1: √((s² + ρ)/(1 + s²)), ρ = (1 − β₁)/(1 + β₁).

        For the next order in 1 − β₂ see :func:`update_size_of_adam`.

        Args:
            signal: s, the mean of a weight's gradient over its standard deviation from batch to batch.

        >>> round(float(Adam(0.9).update_size()), 4), float(Adam(0.0).update_size(3.0))
        (0.2294, 1.0)
        """
        of_noise = (1 - self.beta1) / (1 + self.beta1)  # Σ a_k² of a_k = (1 − β₁)β₁ᵏ
        square = np.square(signal)
        return np.sqrt((square + of_noise) / (1 + square))


@dataclass(frozen=True)
class NAdam:
    """Adam with Nesterov's momentum: w ← w − η ((1 − μ)g + μm)/(√v̂ + ε), where m has g already.

    Attributes:
        beta1: β₁ of m.
        ahead: μ, which torch lets rise to β₁; None for β₁.
    """

    beta1: Numbers = 0.9
    ahead: Numbers | None = None

    def __post_init__(self) -> None:
        _check_part("β₁", self.beta1)

    @property
    def turn(self) -> Numbers:
        """Return the product of step size and curvature, in Adam's own coordinates, at which steps keep their size.

        To and fro, m is (1 − β₁)/(1 + β₁) of a gradient, so that a step is 1 − μ + μ(1 − β₁)/(1 + β₁) of it, which is
        twice the distance from the minimum at the edge.

        Source: Dozat 2016 for the rule; derived here.

        >>> round(NAdam(0.9).turn, 6), NAdam(0.9, 0.0).turn
        (13.571429, 2.0)
        """
        ahead = self.beta1 if self.ahead is None else self.ahead
        # on ½hw² at the edge: ηh times this share is 2
        return 2 / (1 - ahead + ahead * (1 - self.beta1) / (1 + self.beta1))


@dataclass(frozen=True)
class Sam:
    """Sharpness-aware minimization by descent: w ← w − η∇L(w + ρ∇L/‖∇L‖).

    Attributes:
        radius: ρ.
    """

    radius: Numbers

    def __post_init__(self) -> None:
        if not (np.asarray(self.radius) > 0).all():
            raise UserError(f"a radius ρ is positive, got {self.radius}")

    def edge(self, lr: Numbers, gradient: Numbers) -> Numbers:
        """Return the curvature λ at which steps neither grow nor shrink: ηλ(1 + ρλ/‖∇L‖) = 2.

        Args:
            lr: η.
            gradient: ‖∇L‖.

        Source: Long and Bartlett 2024.

        >>> round(float(Sam(0.05).edge(0.1, 0.5)), 9)
        10.0
        """
        ratio = self.radius / gradient  # ρ/‖∇L‖
        # the positive root of (ρη/‖∇L‖) λ² + ηλ − 2
        return (np.sqrt(1 + 8 * ratio / lr) - 1) / (2 * ratio)

    def gradient(self, lr: Numbers, curvature: Numbers) -> Numbers:
        """Return ‖∇L‖ that steps on a parabola come to, ηρλ²/(2 − ηλ), whose edge is then at its curvature.

        Raises:
            UserError: a curvature of 2/η and more, where plain descent diverges already.

        Source: Bartlett, Long and Bousquet 2023, for parabolas; derived again here.

        >>> round(float(Sam(0.05).gradient(0.1, 10.0)), 9)
        0.5
        """
        product = np.multiply(lr, curvature)
        if not (product < 2).all():
            raise UserError(
                f"steps come to rest only below ηλ = 2, got {float(np.max(product)):.3g}: choose a smaller step size"
            )
        # ηλ(1 + ρλ/‖∇L‖) = 2 solved for ‖∇L‖
        return self.radius * product * curvature / (2 - product)


def _check_part(name: str, value: Numbers) -> None:
    """Refuse what is not in [0, 1)."""
    values = np.asarray(value)
    if not ((values >= 0) & (values < 1)).all():
        raise UserError(f"{name} lies in [0, 1), got {value}")
