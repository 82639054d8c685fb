"""Optimizers of torch: which rule they follow, and what it divides each weight's step by."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest.measurement._moments import reliable
from steepest.measurement._rules import NAMES, NO_STEP, Optimizer, Peak, Rule
from steepest.measurement.adapters import Subject

SHARED = ("momentum", "dampening", "nesterov", "betas", "momentum_decay", "amsgrad", "centered")
"""What groups of weights must share: there is no limit here for several."""
RULES = {
    "torch.optim.sgd": Rule.MOMENTUM,
    "torch.optim.adam": Rule.ADAM,
    "torch.optim.adamw": Rule.ADAM,
    "torch.optim.adamax": Rule.ADAMAX,
    "torch.optim.radam": Rule.RADAM,
    "torch.optim.nadam": Rule.NADAM,
    "torch.optim.rmsprop": Rule.RMSPROP,
    "torch.optim.adagrad": Rule.ADAGRAD,
    "torch.optim.adadelta": Rule.ADADELTA,
}
"""The rule of a step, by the module that defines it: a class of another name may inherit it, and one of the same name
may have another."""
PEAKS = ("lr", "initial_lr", "max_lr")
"""Where groups of weights have a step of their schedule that may be its largest."""
WRAPPERS = ("accelerate.", "lightning.", "pytorch_lightning.", "torch.optim.lr_scheduler")
"""Packages whose wrappers of an optimizer step as it does."""
SECOND = {
    Rule.ADAM: "exp_avg_sq",
    Rule.AMSGRAD: "max_exp_avg_sq",
    Rule.ADAMAX: "exp_inf",
    Rule.RADAM: "exp_avg_sq",
    Rule.NADAM: "exp_avg_sq",
    Rule.RMSPROP: "square_avg",
    Rule.ADAGRAD: "sum",
    Rule.ADADELTA: "square_avg",
}
"""Where the state of each rule has what its steps are divided by."""


def unwrapped(given: Any) -> Any:
    """Return the optimizer inside of a wrapper that steps as it does, or of a schedule; several become one."""
    if isinstance(given, tuple | list) and given and all(map(_has_groups, map(unwrapped, given))):
        return Several(tuple(map(unwrapped, given)))
    inner = getattr(given, "optimizer", None)
    if inner is not None and type(given).__module__.startswith(WRAPPERS):
        return unwrapped(inner)
    return given


def _has_groups(given: Any) -> bool:
    return hasattr(given, "param_groups")


@dataclass(frozen=True)
class Several:
    """Optimizers that train parts of one model, each its own, as one of all their groups.

    Attributes:
        optimizers: of torch.
    """

    optimizers: tuple[Any, ...]

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """Return the groups of all."""
        return [group for optimizer in self.optimizers for group in optimizer.param_groups]

    @property
    def state(self) -> dict[Any, Any]:
        """Return what all keep of each parameter."""
        return {key: kept for optimizer in self.optimizers for key, kept in optimizer.state.items()}


def rule_of(given: Any) -> Rule | None:
    """Return the rule of an optimizer of torch, of which its step tells; None of any other, and of several rules."""
    if isinstance(given, Several):
        rules = {rule_of(optimizer) for optimizer in given.optimizers}
        return rules.pop() if len(rules) == 1 else None
    step = inspect.unwrap(type(given).step)
    rule = RULES.get(step.__module__)
    if rule == Rule.ADAM and given.param_groups[0].get("amsgrad"):
        return Rule.AMSGRAD
    return rule


def name_of(given: Any) -> str:
    """Return how an optimizer is called, or several."""
    if isinstance(given, Several):
        return " and ".join(dict.fromkeys(map(name_of, given.optimizers)))
    return type(given).__name__


def is_resting(given: Any) -> bool:
    """Tell whether this is an optimizer of torch whose schedule has set the step size to zero."""
    groups = getattr(unwrapped(given), "param_groups", [])
    return bool(groups) and all(float(group["lr"]) == 0 for group in groups)


def of_torch(
    given: Any,
    subject: Subject,
    lr: float | None,
    weight_decay: float | None,
    largest: Sequence[float] = (),
) -> Optimizer:
    """Read an optimizer of torch, or several of one rule.

    Args:
        given: the optimizer.
        subject: the model.
        lr: overrides its step size, and then its schedule counts for nothing.
        weight_decay: overrides its own.
        largest: step sizes of a schedule that keeps them to itself, as a cyclic one does.
    """
    read = _of_groups(given, subject, lr, weight_decay)
    peak = _peak(given.param_groups, largest, read.momentum) if lr is None else None
    return replace(read, not_held=_not_held(given.param_groups, subject), peak=peak)


def _peak(
    groups: Sequence[Mapping[str, Any]], largest: Sequence[float], momentum: float
) -> Peak | None:
    """Return where a schedule has its largest step, as far as it tells.

    Groups of weights have the first step of their schedule, which is the largest one unless that begins below, and of
    one cycle the largest. Where the momentum moves against the step, the peak has the least.
    """
    if not any("initial_lr" in group for group in groups):
        return None
    steps = [float(group[name]) for group in groups for name in PEAKS if name in group]
    steps += map(float, largest)
    least = groups[0].get("base_momentum", momentum)
    return Peak(max(steps), float(least)) if max(steps) else None


def _of_groups(
    given: Any, subject: Subject, lr: float | None, weight_decay: float | None
) -> Optimizer:
    kind = name_of(given)
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
    unknown = lambda why: Optimizer(lr, decay=decay, unknown=why)
    rule = rule_of(given)
    if rule is None:
        listed = "SGD, Adam and AdamW, " + ", ".join(NAMES[rule] for rule in list(NAMES)[1:])
        return unknown(f"no stable limit is known here for {kind}, only for torch's {listed}")
    if len({tuple(group.get(name) for name in SHARED) for group in groups}) != 1:
        return unknown(
            f"the groups of {kind} have several momenta, for which no limit is known here"
        )
    if any(group.get("maximize") for group in groups):
        return unknown(f"{kind} goes up, as maximize=True says, which no step size makes stable")
    scale = _relative(groups, steps, subject)
    base = Optimizer(lr, decay=decay, scale=scale, scheduled=scheduled, relative=scale, rule=rule)
    if rule == Rule.MOMENTUM:
        return _of_sgd(given, base)
    return _of_dividing(given, subject, base)


def _of_sgd(given: Any, base: Optimizer) -> Optimizer:
    """Complete what is known of torch's SGD."""
    group = given.param_groups[0]
    momentum = float(group["momentum"])
    rule = Rule.NESTEROV if group.get("nesterov") else Rule.MOMENTUM
    dampening = float(group.get("dampening") or 0.0) if momentum else 0.0
    buffers = [state.get("momentum_buffer") for state in given.state.values()]
    stepped = any(buffer is not None for buffer in buffers) if momentum else None
    return replace(base, momentum=momentum, rule=rule, dampening=dampening, stepped=stepped)


def _of_dividing(given: Any, subject: Subject, base: Optimizer) -> Optimizer:
    """Complete what is known of rules that divide each weight's step by a number of its own."""
    rule = base.kind
    first = given.param_groups[0]
    beta, beta_2 = map(float, first.get("betas", (first.get("momentum", 0.0), 0.999)))
    of_adamw = any(kind.__name__ == "AdamW" for kind in _kinds(given))
    decoupled = of_adamw or bool(first.get("decoupled_weight_decay"))
    eps = float(first["eps"])
    base = replace(base, momentum=beta, beta_2=beta_2, eps=eps, decoupled=decoupled)
    group_of = {id(w): group for group in given.param_groups for w in group["params"]}
    parameters = _parameters(subject)
    states = {name: given.state.get(weight, {}) for name, weight in parameters.items()}
    moving = [w for w in subject.weights if _has_stepped(states.get(w.name, {}), rule)]
    if not moving:
        stepped = any(_has_stepped(state, rule) for state in given.state.values())
        why = f"{name_of(given)} holds the moments of another model's weights"
        why = why if stepped else NO_STEP.replace("Adam", NAMES[rule], 1)
        return replace(base, scale=None, unknown=why, stepped=stepped)
    scale = np.full(subject.size, np.inf, subject.dtype)  # of weights that never had a gradient
    update = np.full(subject.size, np.nan, subject.dtype)
    for weight in moving:
        state = states[weight.name]
        steps = int(state["step"])
        divisor = _divisor(rule, state, group_of[id(parameters[weight.name])], steps)
        if divisor is None:
            why = "RAdam does not divide by second moments in its first steps"
            return replace(base, scale=None, unknown=why, stepped=True)
        scale[weight.place] = divisor
        if rule in (Rule.ADAM, Rule.AMSGRAD):
            update[weight.place] = _flat(state["exp_avg"]) / (1 - beta**steps) / divisor
    scale, left_out = reliable(scale, subject)
    if base.scale is not None:
        scale = scale * base.scale
    has_update = rule in (Rule.ADAM, Rule.AMSGRAD)
    taken = int(states[moving[0].name]["step"])
    ahead = _ahead(first, taken) if rule == Rule.NADAM else None
    return replace(
        base,
        scale=scale,
        left_out=left_out,
        stepped=True,
        steps=taken,
        update=update if has_update else None,
        ahead=ahead,
    )


def _kinds(given: Any) -> Sequence[type]:
    first = given.optimizers[0] if isinstance(given, Several) else given
    return type(first).__mro__


def _has_stepped(state: Mapping[str, Any], rule: Rule) -> bool:
    return SECOND[rule] in state and float(state["step"]) > 0


def _divisor(
    rule: Rule, state: Mapping[str, Any], group: Mapping[str, Any], steps: int
) -> NDArray | None:
    """Return what a rule divides the step of each weight of an array by; None where it does not divide yet."""
    second = _flat(state[SECOND[rule]])
    eps = float(group["eps"])
    if rule == Rule.ADAMAX:
        return second  # torch adds ε before it takes the maximum
    if rule == Rule.ADADELTA:
        return np.sqrt(second + eps) / np.sqrt(_flat(state["acc_delta"]) + eps)
    if rule == Rule.RMSPROP:
        mean = _flat(state["grad_avg"]) if group.get("centered") else 0.0
        return np.sqrt(second - mean**2) + eps
    if rule == Rule.ADAGRAD:
        return (np.sqrt(second) + eps) * (1 + steps * float(group["lr_decay"]))
    beta_2 = float(group["betas"][1])
    gone = beta_2**steps
    if rule == Rule.RADAM:
        rectified = _rectification(beta_2, steps)
        return (np.sqrt(second) + eps) / np.sqrt(1 - gone) / rectified if rectified else None
    return np.sqrt(second / (1 - gone)) + eps


def _rectification(beta_2: float, steps: int) -> float:
    """Return RAdam's factor for the few squares that v̂ is the mean of; 0 in the steps that do without.

    Source: Liu et al. 2020.
    """
    most = 2 / (1 - beta_2) - 1
    now = most - 2 * steps * beta_2**steps / (1 - beta_2**steps)
    if now <= 5:
        return 0.0
    return float(np.sqrt((now - 4) * (now - 2) * most / ((most - 4) * (most - 2) * now)))


def _ahead(group: Mapping[str, Any], steps: int) -> float:
    """Return μ of NAdam's next step, β₁(1 − 0.96^(ψt)/2) with torch's ψ."""
    beta = float(group["betas"][0])
    return beta * (1 - 0.5 * 0.96 ** ((steps + 1) * float(group["momentum_decay"])))


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
    groups = getattr(unwrapped(given), "param_groups", None)
    if not groups or not all("weight_decay" in group for group in groups):
        return None
    decays = [float(group["weight_decay"]) for group in groups]
    return min(decays), max(decays)


def _decay(groups: Sequence[dict[str, Any]]) -> float | tuple[float, float]:
    """Return the weight decay of torch's groups of weights, or the smallest and the largest of several."""
    decays = sorted({float(group.get("weight_decay", 0.0)) for group in groups})
    return decays[0] if len(decays) == 1 else (decays[0], decays[-1])
