"""The user's optimizer: the step that the curvature is compared with, and how it weighs the coordinates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest import optimizers
from steepest.core.errors import UserError
from steepest.measurement.adapters import Subject

RELIABLE = 1e-4  # of the typical √v̂: the moments of an array below it are rounding, or those of another loss

MOMENTA = ("momentum", "dampening", "nesterov", "betas")
"""What groups of weights must share: there is no limit here for several."""
NO_STEP = "Adam has not taken a step, so that its second moments, which set the size of its steps, do not exist yet"


class Rule(StrEnum):
    """How gradients become steps."""

    MOMENTUM = "momentum"
    """Heavy-ball momentum; plain descent without."""
    NESTEROV = "nesterov"
    ADAM = "adam"


@dataclass(frozen=True)
class Optimizer:
    """Step sizes of descent with momentum or of Adam.

    Attributes:
        lr: step size η, or None when it is not known; that of the fastest group, where groups of weights have several.
        momentum: momentum β, or Adam's β₁.
        scale: what each weight's step is divided by, shape ``(p,)``: ``√v̂ + ε`` of Adam, and η over the step size of
            the weight's group. The descent is that of ``P^{-1/2} H P^{-1/2}``. None where it is one for all weights.
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
        update: what its last step took from each weight over the step size of the weight's group, without decay, shape
            ``(p,)``: ``m̂/(√v̂ + ε)`` of Adam. NaN for weights that never had a gradient, None where it is not known.
        relative: largest step size over that of each weight's group, ``(p,)``; None where there is but one.
        not_held: arrays of weights that are in no group of it, so that it does not move them.
        beta_2: Adam's β₂.
        eps: its ε.
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
    update: NDArray | None = None
    relative: NDArray | None = None
    not_held: tuple[str, ...] = ()
    beta_2: float = 0.999
    eps: float = 1e-8

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
    def descends_by(self) -> optimizers.Momentum | optimizers.Adam:
        """Return what is known of the rule in general."""
        if self.kind == Rule.ADAM:
            return optimizers.Adam(self.momentum)
        nesterov = self.kind == Rule.NESTEROV
        return optimizers.Momentum(self.momentum, nesterov, 0.0 if nesterov else self.dampening)

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
        if self.kind == Rule.ADAM:
            return "38/η" if self.momentum == 0.9 else "2(1+β₁)/((1−β₁)η)"
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
        if self.kind == Rule.ADAM:
            return f"Adam with β₁ = {self.momentum:g}"
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


def optimizer_of(
    given: Any,
    subject: Subject,
    lr: float | None,
    momentum: float,
    weight_decay: float | None = None,
) -> Optimizer:
    """Read the training settings from what users have.

    Of an optimizer whose limit cannot be told, such as Adam before its first step, it is said why.

    Args:
        given: None; a torch optimizer (SGD, Adam, AdamW); or an optax state that holds Adam's moments, whose step size
            is ``lr`` and whose β₁, β₂, ε are optax's usual 0.9, 0.999 and 1e-8, unless the state holds them
            (``optax.inject_hyperparams``).
        subject: the model; Adam's second moments are brought into its order.
        lr: overrides the optimizer's.
        momentum: without an optimizer.
        weight_decay: overrides that of a torch optimizer; an optax state does not say it.

    Raises:
        UserError: something that is no optimizer; numbers that make no sense.
    """
    if given is None:
        return Optimizer(lr, momentum, decay=weight_decay)
    if hasattr(given, "param_groups"):
        read = _of_torch(given, subject, lr, weight_decay)
        return replace(read, not_held=_not_held(given.param_groups, subject))
    if isinstance(given, tuple | list):
        return _of_optax(given, subject, lr, momentum, weight_decay)
    raise UserError(
        f"an optimizer is one of torch (SGD, Adam, AdamW) or an optax state with Adam's moments, got "
        f"{type(given).__name__}; for descent with momentum give lr and momentum"
    )


def _of_optax(
    given: Any, subject: Subject, lr: float | None, momentum: float, weight_decay: float | None
) -> Optimizer:
    settings = _hyperparameters(given)
    lr = settings.get("learning_rate") if lr is None else lr
    moments = _adam_state(given)
    if moments is None:
        why = ""
        if not momentum:
            why = "this optax state holds no moments of Adam, and of its momentum nothing is known; say momentum="
        return Optimizer(lr, momentum, decay=weight_decay, unknown=why)
    steps = int(moments.count)
    beta = settings.get("b1", 0.9)
    if not steps:
        return Optimizer(
            lr, beta, decay=weight_decay, rule=Rule.ADAM, unknown=NO_STEP, stepped=False
        )
    try:
        second = subject.flatten(moments.nu, missing=np.inf)
    except UserError as trouble:
        why = f"the moments of this optax state are those of another model: {trouble}"
        return Optimizer(lr, beta, decay=weight_decay, rule=Rule.ADAM, unknown=why)
    scale = _scale(second, steps, settings.get("b2", 0.999), settings.get("eps", 1e-8))
    first = subject.flatten(moments.mu, missing=np.nan)  # NaN: not moved by it
    update = first / (1 - beta**steps) / scale
    not_held = tuple(
        weight.name for weight in subject.weights if np.isinf(second[weight.place]).all()
    )
    scale, left_out = _reliable(scale, subject)
    return Optimizer(
        lr,
        beta,
        scale,
        weight_decay,
        decoupled=True,
        left_out=left_out,
        stepped=True,
        update=update,
        not_held=not_held,
    )


def is_resting(given: Any) -> bool:
    """Tell whether this is an optimizer of torch whose schedule has set the step size to zero."""
    groups = getattr(given, "param_groups", [])
    return bool(groups) and all(float(group["lr"]) == 0 for group in groups)


def _of_torch(
    given: Any, subject: Subject, lr: float | None, weight_decay: float | None
) -> Optimizer:
    kind = type(given).__name__
    groups = given.param_groups
    decay = _decay(groups) if weight_decay is None else weight_decay
    steps = [float(group["lr"]) for group in groups]
    scheduled = lr is None and is_resting(given)
    if scheduled:
        steps = [float(group.get("initial_lr", 0.0)) for group in groups]
    if lr is None and not max(steps):
        return Optimizer(
            decay=decay, unknown="the step size is 0, so that there is nothing to compare"
        )
    lr = max(steps) if lr is None else lr
    momenta = {tuple(group.get(name) for name in MOMENTA) for group in groups}
    if len(momenta) != 1:
        return Optimizer(
            lr,
            decay=decay,
            unknown=f"the groups of {kind} have several momenta, for which no limit is known here",
        )
    scale = _relative(groups, steps, subject)
    base = Optimizer(lr, decay=decay, scale=scale, scheduled=scheduled, relative=scale)
    if kind == "SGD":
        return _of_sgd(given, base)
    if kind in ("Adam", "AdamW"):
        return _of_adam(given, subject, base)
    return Optimizer(
        lr,
        decay=decay,
        unknown=f"no stable limit is known here for {kind}, only for SGD, Adam and AdamW",
    )


def _of_sgd(given: Any, base: Optimizer) -> Optimizer:
    """Complete what is known of torch's SGD."""
    group = given.param_groups[0]
    momentum = float(group["momentum"])
    rule = Rule.NESTEROV if group.get("nesterov") else Rule.MOMENTUM
    dampening = float(group.get("dampening") or 0.0) if momentum else 0.0
    buffers = [state.get("momentum_buffer") for state in given.state.values()]
    stepped = any(buffer is not None for buffer in buffers) if momentum else None
    return replace(base, momentum=momentum, rule=rule, dampening=dampening, stepped=stepped)


def _of_adam(given: Any, subject: Subject, base: Optimizer) -> Optimizer:
    """Complete what is known of torch's Adam or AdamW."""
    kind = type(given).__name__
    first = given.param_groups[0]
    beta = float(first["betas"][0])
    # newer versions of torch let Adam be AdamW by an option
    decoupled = kind == "AdamW" or bool(first.get("decoupled_weight_decay"))
    beta_2 = float(first["betas"][1])
    eps = float(first["eps"])
    settings = {"beta_2": beta_2, "eps": eps, "decoupled": decoupled}
    base = replace(base, momentum=beta, rule=Rule.ADAM, **settings)
    moment = "max_exp_avg_sq" if first.get("amsgrad") else "exp_avg_sq"
    states = {
        name: given.state.get(parameter, {}) for name, parameter in _parameters(subject).items()
    }
    moving = [weight for weight in subject.weights if moment in states.get(weight.name, {})]
    if not moving:
        stepped = any(moment in state for state in given.state.values())
        why = f"{kind} holds the moments of another model's weights" if stepped else NO_STEP
        return replace(base, scale=None, unknown=why, stepped=stepped)
    scale = np.full(subject.size, np.inf, subject.dtype)  # of weights that never had a gradient
    update = np.full(subject.size, np.nan, subject.dtype)
    for weight in moving:
        state = states[weight.name]
        steps = int(state["step"])
        scale[weight.place] = _scale(_flat(state[moment]), steps, beta_2, eps)
        update[weight.place] = _flat(state["exp_avg"]) / (1 - beta**steps) / scale[weight.place]
    scale, left_out = _reliable(scale, subject)
    if base.scale is not None:
        scale = scale * base.scale
    return replace(base, scale=scale, left_out=left_out, stepped=True, update=update)


def _flat(tensor: Any) -> NDArray:
    """Return a tensor of torch as a flat array in double precision."""
    return tensor.detach().cpu().double().numpy().ravel()


def _parameters(subject: Subject) -> dict[str, Any]:
    """Return a module's parameters by name; other models have none."""
    module = getattr(subject, "module", None)
    return {} if module is None else dict(module.named_parameters())


def _relative(
    groups: Sequence[dict[str, Any]], steps: Sequence[float], subject: Subject
) -> NDArray | None:
    """Return the largest step size over that of each weight's group; None if there is but one.

    Weights of no group, or of one whose step size is 0, do not move: infinite.
    """
    if len(set(steps)) == 1:
        return None
    named = _parameters(subject)
    step_of = {
        id(parameter): step
        for group, step in zip(groups, steps, strict=True)
        for parameter in group["params"]
    }
    scale = np.full(subject.size, np.inf, subject.dtype)
    for weight in subject.weights:
        step = step_of.get(id(named.get(weight.name)), 0.0)
        if step:
            scale[weight.place] = max(steps) / step
    return scale


def _not_held(groups: Sequence[dict[str, Any]], subject: Subject) -> tuple[str, ...]:
    """Name the subject's arrays of weights that are in no group."""
    held = {id(parameter) for group in groups for parameter in group["params"]}
    named = _parameters(subject)
    if not named:  # no module of torch
        return ()
    return tuple(
        weight.name
        for weight in subject.weights
        if weight.name in named and id(named[weight.name]) not in held
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
    moving = scale[np.isfinite(scale)]
    typical = float(np.sqrt(np.mean(np.square(moving, dtype=float))))
    left_out = tuple(name for name, size in sizes.items() if size < RELIABLE * typical)
    kept = scale.copy()
    for weight in subject.weights:
        if weight.name in left_out:
            kept[weight.place] = np.inf
    return kept, left_out


def _hyperparameters(state: Any) -> dict[str, float]:
    """Return the numbers that ``optax.inject_hyperparams`` keeps in a state; none without it."""
    settings = getattr(state, "hyperparams", None)
    if isinstance(settings, Mapping):
        # through its shortest decimal: the 0.9 of single precision is 0.8999999762 in double
        return {n: float(str(np.asarray(v))) for n, v in settings.items() if np.ndim(v) == 0}
    if isinstance(state, tuple | list):
        parts = [_hyperparameters(part) for part in state]
        return next((part for part in parts if part), {})
    return {}


def _adam_state(state: Any) -> Any:
    """Find the part of an optax state that has Adam's moments, or None."""
    if all(hasattr(state, name) for name in ("count", "mu", "nu")):
        return state
    parts: Sequence[Any] = ()
    if isinstance(state, tuple | list):
        parts = state
    elif isinstance(state, Mapping):  # of optax.multi_transform
        parts = list(state.values())
    return next((adam for part in parts if (adam := _adam_state(part)) is not None), None)
