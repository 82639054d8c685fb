"""The user's optimizer, read from what users have."""

from typing import Any

from steepest.core.errors import UserError
from steepest.measurement._optimizer_of_torch import decays_of as decays_of
from steepest.measurement._optimizer_of_torch import is_resting as is_resting
from steepest.measurement._optimizer_of_torch import of_torch, unwrapped
from steepest.measurement._rules import Optimizer as Optimizer
from steepest.measurement._rules import Rule as Rule
from steepest.measurement.adapters import Subject


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
        given: None; an optimizer of torch, its wrapper or its schedule, or a list of several that train parts of a
            model; or a pair ``(transformation, state)`` of optax, or what holds both as ``tx`` and ``opt_state``. A
            state of optax alone does not tell its rule.
        subject: the model; second moments are brought into its order.
        lr: overrides the optimizer's.
        momentum: without an optimizer.
        weight_decay: overrides the optimizer's.

    Raises:
        UserError: something that is no optimizer; numbers that make no sense.
    """
    if given is None:
        return Optimizer(lr, momentum, decay=weight_decay)
    inner = unwrapped(given)
    if hasattr(inner, "param_groups"):
        return of_torch(inner, subject, lr, weight_decay, getattr(given, "max_lrs", ()))
    given = inner
    if isinstance(given, tuple | list) or (hasattr(given, "tx") and hasattr(given, "opt_state")):
        from steepest.measurement._optimizer_of_optax import of_optax  # it brings JAX along

        return of_optax(given, subject, lr, momentum, weight_decay)
    raise UserError(
        "an optimizer is one of torch, a list of such, or a pair (transformation, state) of optax, got "
        f"{type(given).__name__}; for descent with momentum give lr and momentum"
    )


def with_transformation(transformation: Any, state: Any) -> Any:
    """Return the pair of optax, where a transformation was given before and its state now; else what is given now."""
    is_transformation = hasattr(transformation, "init") and hasattr(transformation, "update")
    is_state = not hasattr(state, "tx") and not hasattr(state, "param_groups")
    has_its_own = isinstance(state, tuple | list) and len(state) == 2 and hasattr(state[0], "init")
    return (transformation, state) if is_transformation and is_state and not has_its_own else state
