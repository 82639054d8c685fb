"""The user's optimizer: the step that the curvature is compared with, and how it weighs the coordinates."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement.adapters import Subject


@dataclass(frozen=True)
class Optimizer:
    """Step sizes of descent with momentum or of Adam.

    Attributes:
        lr: step size η, or None when it is not known.
        momentum: heavy-ball momentum β, or Adam's β₁.
        scale: of Adam, ``√v̂ + ε`` for every weight, shape ``(p,)``; the descent is that of ``P^{-1/2} H P^{-1/2}``.
    """

    lr: float | None = None
    momentum: float = 0.0
    scale: NDArray | None = None

    def __post_init__(self) -> None:
        if self.lr is not None and not (np.isfinite(self.lr) and self.lr > 0):
            raise UserError(f"a step size is a finite number > 0, got lr={self.lr}")
        if not 0 <= self.momentum < 1:
            raise UserError(f"heavy-ball momentum lies in [0, 1), got momentum={self.momentum}")

    @property
    def limit(self) -> float | None:
        """Return the largest curvature at which a quadratic does not diverge.

        ``2(1+β)/η`` of heavy-ball momentum; of Adam's averaged gradients ``2(1+β₁)/((1−β₁)η)``, which is 38/η at
        β₁ = 0.9 (Cohen et al. 2022).

        >>> Optimizer(0.1, 0.9).limit, Optimizer(0.1, 0.9, np.ones(1)).limit
        (38.0, 380.0)
        """
        if self.lr is None:
            return None
        average = 1 if self.scale is None else 1 - self.momentum
        return round(2 * (1 + self.momentum) / (average * self.lr), 12)

    @property
    def law(self) -> str:
        """Return the limit as a formula."""
        if self.lr is None:
            return ""
        if self.scale is not None:
            return "38/η" if self.momentum == 0.9 else "2(1+β₁)/((1−β₁)η)"
        return "2(1+β)/η" if self.momentum else "2/η"


def optimizer_of(given: Any, subject: Subject, lr: float | None, momentum: float) -> Optimizer:
    """Read the training settings from what users have.

    Args:
        given: None; a torch optimizer (SGD, Adam, AdamW); or an optax state that holds Adam's moments, whose step size
            is ``lr`` and whose β₁, β₂, ε are optax's usual 0.9, 0.999 and 1e-8.
        subject: the model; Adam's second moments are brought into its order.
        lr: overrides the optimizer's.
        momentum: without an optimizer.

    Raises:
        UserError: another optimizer; one that has not taken a step; moments of another model.
    """
    if given is None:
        return Optimizer(lr, momentum)
    if hasattr(given, "param_groups"):
        return _of_torch(given, subject, lr)
    moments = _adam_state(given)
    if moments is None:
        raise UserError(
            f"an optimizer is one of torch (SGD, Adam, AdamW) or an optax state with Adam's moments, got "
            f"{type(given).__name__}; for descent with momentum give lr and momentum"
        )
    steps = int(moments.count)
    second = subject.flatten(moments.nu)
    return Optimizer(lr, 0.9, _scale(second, steps, 0.999, 1e-8))


def _of_torch(given: Any, subject: Subject, lr: float | None) -> Optimizer:
    kind = type(given).__name__
    groups = given.param_groups
    if len({(group["lr"], group.get("momentum"), group.get("betas")) for group in groups}) != 1:
        raise UserError(
            f"{kind} has groups with several step sizes; there is one stable limit for one step size"
        )
    first = groups[0]
    lr = float(first["lr"]) if lr is None else lr
    if kind == "SGD":
        if first.get("nesterov") or first.get("dampening"):
            raise UserError(
                "the stable limit is for momentum without Nesterov's correction or dampening"
            )
        return Optimizer(lr, float(first["momentum"]))
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
    return Optimizer(
        lr,
        float(first["betas"][0]),
        _scale(second, steps, float(first["betas"][1]), float(first["eps"])),
    )


def _scale(second: NDArray, steps: int, beta: float, eps: float) -> NDArray:
    """Return ``√v̂ + ε`` with the bias of the start corrected."""
    return np.sqrt(second / (1 - beta**steps)) + eps


def _adam_state(state: Any) -> Any:
    """Find the part of an optax state that has Adam's moments, or None."""
    if all(hasattr(state, name) for name in ("count", "mu", "nu")):
        return state
    if isinstance(state, tuple | list):
        return next((adam for part in state if (adam := _adam_state(part)) is not None), None)
    return None
