"""How a user's optimizer weighs the coordinates, and the curvature at which it is unstable."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest import optimizers
from steepest.core.errors import UserError

NO_STEP = "Adam has not taken a step, so that its second moments, which set the size of its steps, do not exist yet"


class Rule(StrEnum):
    """How gradients become steps."""

    MOMENTUM = "momentum"
    """Heavy-ball momentum; plain descent without."""
    NESTEROV = "nesterov"
    ADAM = "adam"
    """Adam, AdamW."""
    AMSGRAD = "amsgrad"
    ADAMAX = "adamax"
    RADAM = "radam"
    NADAM = "nadam"
    RMSPROP = "rmsprop"
    """Also with momentum."""
    ADAGRAD = "adagrad"
    ADADELTA = "adadelta"


NAMES = {
    Rule.ADAM: "Adam",
    Rule.AMSGRAD: "AMSGrad",
    Rule.ADAMAX: "Adamax",
    Rule.RADAM: "RAdam",
    Rule.NADAM: "NAdam",
    Rule.RMSPROP: "RMSprop",
    Rule.ADAGRAD: "Adagrad",
    Rule.ADADELTA: "Adadelta",
}
"""What rules are called that divide each weight's step by a number of its own."""
AVERAGING = (Rule.ADAM, Rule.AMSGRAD, Rule.ADAMAX, Rule.RADAM)
"""Those that step along an average of gradients, m ← β₁m + (1 − β₁)g."""


class Peak(NamedTuple):
    """Where the step of a schedule is largest, between warm-up and decay.

    Attributes:
        lr: the step size there; of the fastest group of weights.
        momentum: the momentum there, β or Adam's β₁.
    """

    lr: float
    momentum: float


@dataclass(frozen=True)
class Optimizer:
    """Step sizes of descent with momentum or of Adam.

    Attributes:
        lr: step size η, or None when it is not known; that of the fastest group, where groups of weights have several.
        momentum: momentum β, or Adam's β₁.
        scale: what each weight's step is divided by, shape ``(p,)``: ``√v̂ + ε`` of Adam, what stands there in rules
            like it, and η over the step size of the weight's group. The descent is that of ``P^{-1/2} H P^{-1/2}``.
            None where it is one for all weights.
        decay: weight decay λ of all weights; None when it is not known; a pair, its smallest and largest, when groups
            of weights have several.
        left_out: arrays of weights whose second moments are next to zero beside those of the others; their scale is
            infinite, so that they do not count.
        decoupled: whether the decay is AdamW's, ``w ← (1 − ηλ)w − …``, or else λw is added to the gradient.
        rule: how gradients become steps; None for Adam with a scale, and for momentum without.
        dampening: share of each gradient that torch's SGD leaves out of its momentum.
        unknown: why there is no limit to compare with, in a sentence; empty where there is one.
        scheduled: whether ``lr`` is the first of a schedule that has come to zero.
        stepped: whether it has taken a step; None where it does not tell, as SGD without momentum.
        steps: how many its averages are of; None where that is not known.
        peak: of its schedule; None where there is none, or where it does not tell.
        update: what its last step took from each weight over the step size of the weight's group, without decay, shape
            ``(p,)``: ``m̂/(√v̂ + ε)`` of Adam. NaN for weights that never had a gradient, None where it is not known.
        relative: largest step size over that of each weight's group, ``(p,)``; None where there is but one.
        not_held: arrays of weights that are in no group of it, so that it does not move them.
        beta_2: Adam's β₂.
        eps: its ε.
        ahead: by how much of the average NAdam is ahead, μ; None for β₁.
        passed_on: factor with which gradients reach the optimizer, as clipping shrinks them; what ``scale`` and
            ``update`` were divided by. 1 where nothing speaks for another.
    """

    lr: float | None = None
    momentum: float = 0.0
    scale: NDArray | None = None
    decay: float | tuple[float, float] | None = None
    decoupled: bool = False
    left_out: tuple[str, ...] = ()
    rule: Rule | None = None
    dampening: float = 0.0
    unknown: str = ""
    scheduled: bool = False
    stepped: bool | None = None
    steps: int | None = None
    peak: Peak | None = None
    update: NDArray | None = None
    relative: NDArray | None = None
    not_held: tuple[str, ...] = ()
    beta_2: float = 0.999
    eps: float = 1e-8
    ahead: float | None = None
    passed_on: float = 1.0

    def __post_init__(self) -> None:
        if self.lr is not None and not (np.isfinite(self.lr) and self.lr > 0):
            raise UserError(f"a step size is a finite number > 0, got lr={self.lr}")
        if not 0 <= self.momentum < 1:
            raise UserError(f"heavy-ball momentum lies in [0, 1), got momentum={self.momentum}")
        if isinstance(self.decay, float | int) and not (
            np.isfinite(self.decay) and self.decay >= 0
        ):
            raise UserError(f"a weight decay is a finite number ≥ 0, got weight_decay={self.decay}")

    @property
    def kind(self) -> Rule:
        """Return the rule: what was said, or what the scale tells.

        >>> Optimizer(0.1).kind, Optimizer(0.1, scale=np.ones(1)).kind
        (<Rule.MOMENTUM: 'momentum'>, <Rule.ADAM: 'adam'>)
        """
        if self.rule is not None:
            return self.rule
        return Rule.MOMENTUM if self.scale is None else Rule.ADAM

    @property
    def limit(self) -> float | None:
        """Return the largest curvature of the loss at which a quadratic does not diverge.

        ``2(1+β)/η`` of heavy-ball momentum, ``2(1+β)/((1+2β)η)`` of Nesterov's; of Adam's averaged gradients
        ``2(1+β₁)/((1−β₁)η)``, which is 38/η at β₁ = 0.9 (Cohen et al. 2021, 2022). A decay λ in the gradient adds λ to
        the curvature of SGD, which leaves ``2(1+β)/η − λ`` to the loss; AdamW's shrinks the limit by ``1 − ηλ/2``.

        >>> Optimizer(0.1, 0.9).limit, Optimizer(0.1, 0.9, np.ones(1)).limit, Optimizer(0.1, decay=0.5).limit
        (38.0, 380.0, 19.5)
        """
        if self.lr is None or self.unknown:
            return None
        largest = self.numerator / self.lr
        decay = self.one_decay
        if decay and self.decoupled:
            largest *= 1 - self.lr * decay / 2
        elif decay and self.scale is None:
            largest -= decay
        return round(largest, 12)

    @property
    def numerator(self) -> float:
        """Return the product of step size and largest stable curvature, without decay.

        >>> Optimizer(momentum=0.5).numerator
        3.0
        """
        return float(self.descends_by.turn)

    @property
    def descends_by(self) -> optimizers.Momentum | optimizers.Adam | optimizers.NAdam:
        """Return what is known of the rule in general."""
        if self.kind in AVERAGING:
            return optimizers.Adam(self.momentum)
        if self.kind == Rule.NADAM:
            return optimizers.NAdam(self.momentum, self.ahead)
        nesterov = self.kind == Rule.NESTEROV
        return optimizers.Momentum(self.momentum, nesterov, 0.0 if nesterov else self.dampening)

    @property
    def called(self) -> str:
        """Return what the rule is called, where it divides each weight's step by a number of its own; else nothing.

        >>> Optimizer(rule=Rule.RMSPROP).called, Optimizer().called
        ('RMSprop', '')
        """
        return NAMES.get(self.kind, "")

    @property
    def is_plain(self) -> bool:
        """Tell whether it is plain descent with one step size, as far as it is known."""
        is_known = not self.unknown and self.kind in (Rule.MOMENTUM, Rule.NESTEROV)
        return is_known and self.scale is None and self.momentum == 0

    @property
    def one_decay(self) -> float:
        """Return the weight decay that all weights share; 0 where it is not known or they share none."""
        return float(self.decay) if isinstance(self.decay, float | int) else 0.0

    def largest_step(self, curvature: float) -> float:
        """Return the step size at which this curvature of the loss, which is positive, is at the limit.

        >>> Optimizer().largest_step(4.0), Optimizer(momentum=0.9, decay=0.75).largest_step(3.05)
        (0.5, 1.0)
        """
        decay = self.one_decay
        if self.decoupled:
            return self.numerator / (curvature + self.numerator * decay / 2)
        return self.numerator / (curvature + (decay if self.scale is None else 0.0))

    @property
    def assumption(self) -> tuple[str, bool | None]:
        """Return what the limit assumes of weight decay, and whether it holds: None where that is not known."""
        if self.decay is None:
            return (
                "no weight decay, which is not known here: give the torch optimizer, or weight_decay=…",
                None,
            )
        if isinstance(self.decay, tuple):
            low, high = self.decay
            return (
                f"no weight decay; your optimizer decays some weights by {low:g} and others by {high:g}, "
                "which the limit leaves out",
                False,
            )
        if self.decay == 0:
            return "no weight decay", True
        return f"weight decay {self.decay:g} on all weights, which is counted here", True

    @property
    def law(self) -> str:
        """Return the limit as a formula."""
        if self.limit is None:
            return ""
        formula = self._formula
        if not self.one_decay:
            return formula
        if self.decoupled:
            return f"(1 − ηλ/2) {formula}"
        return f"{formula} − λ" if self.scale is None else formula

    @property
    def _formula(self) -> str:
        if self.kind in AVERAGING:
            return "38/η" if self.momentum == 0.9 else "2(1+β₁)/((1−β₁)η)"
        if self.kind == Rule.NADAM:
            return "2/((1−μ+μ(1−β₁)/(1+β₁))η)"
        if not self.momentum:
            return "2/η"
        if self.kind == Rule.NESTEROV:
            return "2(1+β)/((1+2β)η)"
        return "2(1+β)/((1−d)η)" if self.dampening else "2(1+β)/η"

    @property
    def descent(self) -> str:
        """Say what descends, in words.

        >>> Optimizer().descent, Optimizer(momentum=0.9, scale=np.ones(1)).descent
        ('plain descent', 'Adam with β₁ = 0.9')
        """
        if self.kind in AVERAGING or self.kind == Rule.NADAM:
            return f"{self.called} with β₁ = {self.momentum:g}"
        if self.called:
            return f"{self.called}{self.with_momentum}"
        return f"descent{self.with_momentum}" if self.momentum else "plain descent"

    @property
    def with_momentum(self) -> str:
        """Say which momentum, where there is some.

        >>> Optimizer(momentum=0.5, rule=Rule.NESTEROV).with_momentum
        " with Nesterov's momentum 0.5"
        """
        if not self.momentum:
            return ""
        whose = "Nesterov's " if self.kind == Rule.NESTEROV else ""
        return f" with {whose}momentum {self.momentum:g}"
