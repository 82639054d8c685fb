"""The user's optimizer: the step that the curvature is compared with, and how it weighs the coordinates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement.adapters import Subject

RELIABLE = 1e-4  # of the typical √v̂: the moments of an array below it are rounding, or those of another loss


@dataclass(frozen=True)
class Optimizer:
    """Step sizes of descent with momentum or of Adam.

    Attributes:
        lr: step size η, or None when it is not known.
        momentum: heavy-ball momentum β, or Adam's β₁.
        scale: of Adam, ``√v̂ + ε`` for every weight, shape ``(p,)``; the descent is that of ``P^{-1/2} H P^{-1/2}``.
        decay: weight decay λ of all weights; None when it is not known; a pair, its smallest and largest, when groups
            of weights have several.
        left_out: arrays of weights whose second moments are next to zero beside those of the others; their scale is
            infinite, so that they do not count.
        decoupled: whether the decay is AdamW's, ``w ← (1 − ηλ)w − …``, or else λw is added to the gradient.
    """

    lr: float | None = None
    momentum: float = 0.0
    scale: NDArray | None = None
    decay: float | tuple[float, float] | None = None
    decoupled: bool = False
    left_out: tuple[str, ...] = ()

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
    def limit(self) -> float | None:
        """Return the largest curvature of the loss at which a quadratic does not diverge.

        ``2(1+β)/η`` of heavy-ball momentum; of Adam's averaged gradients ``2(1+β₁)/((1−β₁)η)``, which is 38/η at
        β₁ = 0.9 (Cohen et al. 2022). A decay λ in the gradient adds λ to the curvature of SGD, which leaves
        ``2(1+β)/η − λ`` to the loss; AdamW's shrinks the limit by the factor ``1 − ηλ/2``.

        >>> Optimizer(0.1, 0.9).limit, Optimizer(0.1, 0.9, np.ones(1)).limit, Optimizer(0.1, decay=0.5).limit
        (38.0, 380.0, 19.5)
        """
        if self.lr is None:
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
        average = 1 if self.scale is None else 1 - self.momentum
        return 2 * (1 + self.momentum) / average

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
        if self.lr is None:
            return ""
        if self.scale is not None:
            formula = "38/η" if self.momentum == 0.9 else "2(1+β₁)/((1−β₁)η)"
        else:
            formula = "2(1+β)/η" if self.momentum else "2/η"
        if not self.one_decay:
            return formula
        if self.decoupled:
            return f"(1 − ηλ/2) {formula}"
        return f"{formula} − λ" if self.scale is None else formula


def optimizer_of(
    given: Any,
    subject: Subject,
    lr: float | None,
    momentum: float,
    weight_decay: float | None = None,
) -> Optimizer:
    """Read the training settings from what users have.

    Args:
        given: None; a torch optimizer (SGD, Adam, AdamW); or an optax state that holds Adam's moments, whose step size
            is ``lr`` and whose β₁, β₂, ε are optax's usual 0.9, 0.999 and 1e-8.
        subject: the model; Adam's second moments are brought into its order.
        lr: overrides the optimizer's.
        momentum: without an optimizer.
        weight_decay: overrides that of a torch optimizer; an optax state does not say it.

    Raises:
        UserError: another optimizer; one that has not taken a step; moments of another model.
    """
    if given is None:
        return Optimizer(lr, momentum, decay=weight_decay)
    if hasattr(given, "param_groups"):
        return _of_torch(given, subject, lr, weight_decay)
    moments = _adam_state(given)
    if moments is None:
        raise UserError(
            f"an optimizer is one of torch (SGD, Adam, AdamW) or an optax state with Adam's moments, got "
            f"{type(given).__name__}; for descent with momentum give lr and momentum"
        )
    steps = int(moments.count)
    second = subject.flatten(moments.nu)
    scale = _scale(second, steps, 0.999, 1e-8)
    scale, left_out = _reliable(scale, subject)
    return Optimizer(lr, 0.9, scale, weight_decay, decoupled=True, left_out=left_out)


def is_resting(given: Any) -> bool:
    """Tell whether this is an optimizer of torch whose schedule has set the step size to zero."""
    groups = getattr(given, "param_groups", [])
    return bool(groups) and all(float(group["lr"]) == 0 for group in groups)


def _of_torch(
    given: Any, subject: Subject, lr: float | None, weight_decay: float | None
) -> Optimizer:
    kind = type(given).__name__
    groups = given.param_groups
    if len({(group["lr"], group.get("momentum"), group.get("betas")) for group in groups}) != 1:
        raise UserError(
            f"{kind} has groups with several step sizes; there is one stable limit for one step size"
        )
    first = groups[0]
    lr = float(first["lr"]) if lr is None else lr
    decay = _decay(groups) if weight_decay is None else weight_decay
    if kind == "SGD":
        if first.get("nesterov") or first.get("dampening"):
            raise UserError(
                "the stable limit is for momentum without Nesterov's correction or dampening"
            )
        return Optimizer(lr, float(first["momentum"]), decay=decay)
    if kind not in ("Adam", "AdamW") or first.get("amsgrad"):
        raise UserError(
            f"no stable limit is known here for {kind}; give SGD, Adam or AdamW, or lr and momentum alone"
        )
    module = getattr(subject, "module", None)
    named = {} if module is None else dict(module.named_parameters())
    states = {name: given.state.get(parameter, {}) for name, parameter in named.items()}
    missing = [
        weight.name for weight in subject.weights if "exp_avg_sq" not in states.get(weight.name, {})
    ]
    if missing:
        raise UserError(
            f"{kind} holds no moments of {missing[0]!r}: it has not taken a step, or has another model's"
        )
    second = subject.flatten(
        {weight.name: states[weight.name]["exp_avg_sq"] for weight in subject.weights}
    )
    steps = int(states[subject.weights[0].name]["step"])
    scale = _scale(second, steps, float(first["betas"][1]), float(first["eps"]))
    scale, left_out = _reliable(scale, subject)
    return Optimizer(
        lr,
        float(first["betas"][0]),
        scale,
        decay,
        # newer versions of torch let Adam be AdamW by an option
        decoupled=kind == "AdamW" or bool(first.get("decoupled_weight_decay")),
        left_out=left_out,
    )


def decays_of(given: Any) -> tuple[float, float] | None:
    """Return the smallest and the largest weight decay of an optimizer's groups of weights; None if it does not say.

    Args:
        given: an optimizer of torch; of anything else nothing is known.
    """
    groups = getattr(given, "param_groups", None)
    if not groups or not all("weight_decay" in group for group in groups):
        return None
    decays = [float(group["weight_decay"]) for group in groups]
    return min(decays), max(decays)


def _decay(groups: Sequence[dict[str, Any]]) -> float | tuple[float, float]:
    """Return the weight decay of torch's groups of weights, or the smallest and the largest of several."""
    decays = sorted({float(group.get("weight_decay", 0.0)) for group in groups})
    return decays[0] if len(decays) == 1 else (decays[0], decays[-1])


def _scale(second: NDArray, steps: int, beta: float, eps: float) -> NDArray:
    """Return ``√v̂ + ε`` with the bias of the start corrected."""
    return np.sqrt(second / (1 - beta**steps)) + eps


def _reliable(scale: NDArray, subject: Subject) -> tuple[NDArray, tuple[str, ...]]:
    """Leave out arrays of weights that had next to no gradient in training: an infinite scale, and their names.

    Biases before batch normalization have no gradient in training mode but one in evaluation mode, where curvature is
    measured: their moments are not those of the loss that is measured, and would give a curvature without bound.
    """
    sizes = {
        weight.name: float(np.sqrt(np.mean(np.square(scale[weight.place], dtype=float))))
        for weight in subject.weights
    }
    typical = float(np.sqrt(np.mean(np.square(scale, dtype=float))))
    left_out = tuple(name for name, size in sizes.items() if size < RELIABLE * typical)
    kept = scale.copy()
    for weight in subject.weights:
        if weight.name in left_out:
            kept[weight.place] = np.inf
    return kept, left_out


def _adam_state(state: Any) -> Any:
    """Find the part of an optax state that has Adam's moments, or None."""
    if all(hasattr(state, name) for name in ("count", "mu", "nu")):
        return state
    if isinstance(state, tuple | list):
        return next((adam for part in state if (adam := _adam_state(part)) is not None), None)
    return None
