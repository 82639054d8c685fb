"""The optimizers of a training, found by the steps that they take, and what they say of their groups of weights."""

import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from steepest.measurement.adapters import is_torch_module, unwrapped
from steepest.measurement.training._own_step import has_compiled

CALLS = 3  # of the monitor, in which an optimizer must have stepped


class Group(NamedTuple):
    """What an optimizer does with some weights."""

    lr: float
    decay: float
    """λ of its weight decay."""
    decoupled: bool
    """Whether the decay is AdamW's, or else is added to the gradient."""


class OwnOptimizers:
    """Finds the optimizers of torch that hold a module's weights, by the steps that they take.

    Attributes:
        found: optimizers that have stepped.
        over: whether they are waited for no more.
    """

    def __init__(self) -> None:
        self.found: list[Any] = []
        self.over = False
        self._handle: Any = None
        self._calls = 0

    def look_for(self, model: Any) -> None:
        """Wait for the next steps of an optimizer; after some calls no more."""
        self._calls += 1
        if self._calls > CALLS or self.found:
            self.over = True
            self.leave()
            return
        module = unwrapped(model)
        if self._handle is not None or not is_torch_module(module) or has_compiled():
            return
        from torch.optim.optimizer import register_optimizer_step_post_hook

        weights = {id(weight) for weight in module.parameters()}
        stepping = self.found

        def stepped(optimizer: Any, *_: Any) -> None:
            held = (weight for group in optimizer.param_groups for weight in group["params"])
            if any(id(weight) in weights for weight in held) and optimizer not in stepping:
                stepping.append(optimizer)

        self._handle = register_optimizer_step_post_hook(stepped)
        weakref.finalize(self, self._handle.remove)  # a monitor may be called once and forgotten

    def leave(self) -> None:
        """Wait no more."""
        if self._handle is not None:
            self._handle.remove()
        self._handle = None


def groups_by_array(optimizer: Any, model: Any) -> dict[str, Group]:
    """Return what an optimizer of torch, or several, do with each array of weights, by its name."""
    module = unwrapped(model)
    if not is_torch_module(module):
        return {}
    names = {id(weight): name for name, weight in module.named_parameters()}
    return {
        names[id(weight)]: group
        for group, weights in _groups(optimizer)
        for weight in weights
        if id(weight) in names
    }


def decay_over_update(
    groups: dict[str, Group],
    names: Sequence[str],
    weights: np.ndarray,
    updates: np.ndarray,
    gradients: np.ndarray | None,
) -> float | None:
    """Return how large the part of the decay is in the updates, by norms.

    A decoupled decay takes ηλw from the weights w in each step, beside the norm of the update; any other decay adds λw
    to the gradient, beside the gradient's own norm.

    Args:
        groups: by array.
        names: of the arrays.
        weights: norms, shape ``(arrays,)``.
        updates: norms of the last update.
        gradients: norms of the gradients that were used; None where they are not known.

    >>> group = {"w": Group(0.1, 0.5, True)}
    >>> round(decay_over_update(group, ["w"], np.array([2.0]), np.array([0.2]), None), 9)
    0.5
    """
    kept = [groups.get(name) for name in names]
    decays = np.array([group.decay if group else 0.0 for group in kept])
    if not decays.any():
        return None
    decoupled = all(group.decoupled for group in kept if group is not None and group.decay)
    if decoupled:
        steps = np.array([group.lr if group else 0.0 for group in kept])
        taken, whole = steps * decays * weights, updates
    elif gradients is not None:
        taken, whole = decays * weights, gradients
    else:
        return None
    size = float(np.hypot.reduce(whole))
    return float(np.hypot.reduce(taken)) / size if np.isfinite(size) and size > 0 else None


def _groups(optimizer: Any) -> Iterator[tuple[Group, Sequence[Any]]]:
    """Yield the groups of weights of one optimizer or of several."""
    several = optimizer if isinstance(optimizer, list | tuple) else [optimizer]
    for one in several:
        decoupled = "AdamW" in [kind.__name__ for kind in type(one).__mro__]
        for group in getattr(one, "param_groups", ()):
            decay = group.get("weight_decay") or 0.0
            is_its_own = decoupled or bool(group.get("decoupled_weight_decay"))
            yield Group(float(group["lr"]), float(decay), is_its_own), group["params"]
