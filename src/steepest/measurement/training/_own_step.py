"""What a training step of the reader shows by itself: modes, units, outputs and gradients, heard by hooks for one step.

The hooks are set after one step and taken away after the next, so that a module has none while it is looked at, saved
or compiled. Nothing is calculated that the step does not calculate anyway, besides sums over what it holds. Modules
that are compiled, and weights that are spread over processes, are left alone: hooks would change their programs.
"""

import functools
import math
import operator
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from steepest.measurement._report import Reading
from steepest.measurement.adapters import is_sharded, is_torch_module, unwrapped
from steepest.measurement.training._names import (
    EVALUATION,
    FROZEN_STATISTICS,
    IDLE,
    LEFT_OVER,
    RANK,
    REPEATS,
    SATURATED,
    SHARES,
    SIZE,
)

ENDS = {"Tanh": -1.0, "Sigmoid": 0.0, "Hardtanh": -1.0, "Hardsigmoid": 0.0}
"""Activations that end at one, and where they begin."""
NEAR = 0.01  # of the end, within which an activation is saturated
LOOKS = 5  # batches in a row in which a unit that is dead is zero
CALLS = 100_000  # of modules, after which hooks leave by themselves
ROWS = 256  # examples at most of which the features' rank is told
SUM = 1e-3  # from one, of outputs that are probabilities
SHARE = 0.001  # of the time since the first step, which hooks may take
BEGIN = 15  # steps, from which on
FREE = 12  # steps are listened to in any case, so that a short training is heard too
NORMALIZING = ("_BatchNorm", "_InstanceNorm")


class Heard(NamedTuple):
    """What one training step has shown; on its device until it is read.

    Attributes:
        idle: share of each layer's inputs that have been zero on all examples of the last batches.
        saturated: share of each activation's values at an end of its range.
        in_evaluation: whether the module itself was in evaluation mode while gradients were taken.
        frozen_statistics: normalizing layers that were so.
        rank: effective rank of the features, (tr C)²/tr C² of their covariance C; None where there are none.
        size: root mean square of the outputs.
        shares: number of outputs that are shares and sum to one; 0 where they are something else.
        repeats: share of integer inputs that are the largest output at their place; None where there are none.
        left_over: share of a gradient that the step used and that did not come into it in this step, by norms; more
            than zero where gradients of earlier steps are still in it. None where it is not known.
    """

    idle: dict[str, float]
    saturated: dict[str, float]
    in_evaluation: bool
    frozen_statistics: tuple[str, ...]
    rank: float | None
    size: float | None
    shares: int
    repeats: float | None
    left_over: float | None


class OwnStep:
    """Listens to one training step at a time, as long as this takes a small share of the training's time.

    Args:
        clock: seconds.

    Attributes:
        spent: seconds that listening has taken.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._started = clock()
        self._model: Any = None
        self._weight: Any = None  # an array that is trained, whose gradient is looked at
        self._version = -1  # of this array at the last call
        self._moved = (False, False)  # whether the last two intervals between calls have moved it
        self.spent = self._last = 0.0
        self._count = 0  # of steps that were listened to
        self._handles: list[Any] = []
        weakref.finalize(self, _take_away, self._handles)
        self._zero: dict[str, deque[Any]] = {}  # masks of the last batches, by layer
        self._forget()

    def _forget(self) -> None:
        # what is listened to, by the identity of the module
        self._parts: dict[int, tuple[str, Any]] = {}
        self._calls = 0
        self._idle: dict[str, Any] = {}
        self._ends: dict[str, list[Any]] = {}
        self._frozen: list[str] = []
        self._in_evaluation = False
        self._outputs: Any = None
        self._repeats: Any = None
        self._features: Any = None
        self._came_in: list[Any] = []  # the sum of the gradients that came in since they were zero
        # the last activation, and a weak reference to what it returned: its graph must not live on
        self._ending: tuple[str, Callable[[], Any]] = ("", _nothing)

    def follow(self, model: Any) -> None:
        """Note whether the weights have moved since the last call; to be called in every one."""
        if model is not self._model:
            module, self._model, self._weight = unwrapped(model), model, None
            self._moved = (False, False)
            if is_torch_module(module) and not is_sharded(module):
                weights = [w for w in module.parameters() if w.requires_grad and _is_plain(w)]
                # directions of a few numbers are all alike, and large arrays cost
                self._weight = min(weights, key=_far_from_typical, default=None)
        if self._weight is not None:
            # torch counts the changes in place of each tensor
            self._moved = (self._moved[1], self._weight._version != self._version)
            self._version = self._weight._version

    def listen(self, model: Any) -> None:
        """Set hooks that last until the next call of ``leave``, or for many calls of modules."""
        self.leave()
        self._forget()
        begun = self._clock()
        module = unwrapped(model)
        if not is_torch_module(module) or has_compiled() or is_sharded(module):
            return
        if any(getattr(part, "_compiled_call_impl", None) for part in module.modules()):
            return
        import torch

        self._parts = {id(part): (name, part) for name, part in module.named_modules()}
        # hooks for all modules, and not of this one: a module that is saved now would be saved with its own
        hooks = torch.nn.modules.module
        self._handles += [
            hooks.register_module_forward_pre_hook(_while_it_lives(self._before)),
            hooks.register_module_forward_hook(_while_it_lives(self._after)),
        ]
        if not _are_several_processes():  # there gradients are averages over processes
            self._hook_gradient()
        self._count += 1
        self._last = self._clock() - begun

    def affords(self, step: int) -> bool:
        """Tell whether another step like the last is within the share of the time, or one of the first that are free.

        Steps at the very start tell little: there the weights are what chance has made them.
        """
        if self._count < FREE:
            return step >= BEGIN
        return self.spent + self._last <= SHARE * (self._clock() - self._started)

    def leave(self) -> None:
        """Take all hooks away."""
        _take_away(self._handles)
        self._parts = {}

    def heard(self) -> Heard | None:
        """Take the hooks away and return what was heard; None where no training step ran through the module."""
        if not self._handles:
            return None
        begun = self._clock()
        self.leave()
        heard = self._read()
        self._last += self._clock() - begun
        self.spent += self._last
        return heard

    def _read(self) -> Heard | None:
        """Bring what was heard to the host."""
        if self._outputs is None and not self._idle:
            return None
        idle = {name: self._share_idle(name, mask) for name, mask in self._idle.items()}
        saturated = {name: float(sum(shares) / len(shares)) for name, shares in self._ends.items()}
        rank = None
        if self._features is not None:
            squares = (self._features**2).sum()
            trace = self._features.diagonal().sum()
            rank = float(trace**2 / squares) if float(squares) > 0 else None
        size, is_share, count = self._outputs or (None, False, 0)
        shares = count if bool(is_share) else 0
        return Heard(
            idle,
            saturated,
            self._in_evaluation,
            tuple(dict.fromkeys(self._frozen)),
            rank,
            None if size is None else float(size),
            shares,
            None if self._repeats is None else float(self._repeats),
            self._left_over(),
        )

    def _share_idle(self, name: str, mask: Any) -> float:
        """Return the share of a layer's inputs that have been zero in each of the last batches."""
        masks = self._zero.setdefault(name, deque(maxlen=LOOKS))
        if masks and masks[-1].shape != mask.shape:
            masks.clear()
        masks.append(mask)
        always = masks[0]
        for other in list(masks)[1:]:
            always = always & other
        return float(always.float().mean()) if len(masks) == LOOKS else 0.0

    def _left_over(self) -> float | None:
        """Return how much of the gradient that was used did not come into it in this step.

        Clipping and the removal of a scale only shorten it: of g, what is beyond c times what came in, c ≤ 1. Where
        batches are accumulated and the calls are more than the steps, some calls do not move the weights.
        """
        weight = self._weight
        if weight is None or not self._came_in or not all(self._moved):
            return None
        if weight.grad is None or weight.grad.is_sparse:
            return None
        used, came_in = weight.grad.float().flatten(), self._came_in[0].flatten()
        size, square = float(used.norm()), float(came_in @ came_in)
        if not size > 0 or not math.isfinite(size) or not 0 < square < math.inf:
            return None
        shortened = min(1.0, float(used @ came_in) / square)
        return float((used - shortened * came_in).norm()) / size

    def _before(self, part: Any, given: tuple[Any, ...]) -> None:
        """Look at what a part of the module is given, and at its mode."""
        begun = self._clock()
        self._calls += 1
        # nobody asks for what is heard, or what comes is about to be compiled, hooks and all
        if self._calls == CALLS or type(part).__name__ == "OptimizedModule":
            self.leave()
        self._guarded(self._heard_before, part, given)
        self._last += self._clock() - begun

    def _guarded(self, hear: Callable[..., None], part: Any, *given: Any) -> None:
        """Hear what a part of the module does in a training step; what goes wrong only ends the listening."""
        try:
            name = self._name(part)
            if name is not None:
                hear(name, part, *given)
        except Exception:
            self.leave()
            self._forget()

    def _heard_before(self, name: str, part: Any, given: tuple[Any, ...]) -> None:
        if name == "":
            self._frozen = []  # an attack on the inputs may come before, in another mode
        names = [kind.__name__ for kind in type(part).__mro__]
        if "Linear" in names or "_ConvNd" in names:
            self._heard_inputs(name, -1 if "Linear" in names else 1, given)
        elif any(kind in names for kind in NORMALIZING) and part.running_mean is not None:
            self._frozen += [name] * (not part.training)

    def _after(self, part: Any, given: Any, out: Any) -> None:
        """Look at what a part of the module returns."""
        begun = self._clock()
        self._guarded(self._heard_after, part, given, out)
        self._last += self._clock() - begun

    def _heard_after(self, name: str, part: Any, given: tuple[Any, ...], out: Any) -> None:
        if type(part).__name__ in ENDS:
            self._heard_activations(name, ENDS[type(part).__name__], out)
        if name == "":
            self._in_evaluation = not part.training
            self._heard_outputs(given, out)

    def _name(self, part: Any) -> str | None:
        """Return the name of a part of the module in a training step; None of anything else."""
        name, listed = self._parts.get(id(part), ("", None))
        return name if listed is part and _is_recorded() else None

    def _heard_inputs(self, name: str, axis: int, given: tuple[Any, ...]) -> None:
        x: Any = given[0] if given else None
        # inputs without a derivative are data, whose empty pixels are no units
        if not _is_dense(x) or x.grad_fn is None or x.ndim < 2:
            return
        x = x.detach()
        zero = (x.movedim(axis, 0).flatten(1) == 0).all(1)
        self._idle[name] = zero & self._idle[name] if name in self._idle else zero
        if x.ndim == 2 and len(x) > 2:
            rows = x[:ROWS].float()
            rows = rows - rows.mean(0)
            self._features = rows @ rows.T / len(rows)  # the Gram matrix has C's eigenvalues

    def _heard_activations(self, name: str, lower: float, out: Any) -> None:
        if not _is_dense(out) or out.grad_fn is None:
            return
        self._ending = (name, weakref.ref(out))
        width = 1.0 - lower
        out = out.detach()
        at_end = (out > 1 - NEAR * width) | (out < lower + NEAR * width)
        self._ends.setdefault(name, []).append(at_end.float().mean())

    def _heard_outputs(self, given: tuple[Any, ...], returned: Any) -> None:
        logits = getattr(returned, "logits", returned)
        out: Any = logits[0] if isinstance(logits, tuple | list) and logits else logits
        activation, last = self._ending
        ending = last()
        if ending is not None and ending is out:  # targets at the ends are there to be met
            self._ends.pop(activation, None)
        self._ending = ("", _nothing)
        if not _is_dense(out) or not out.numel():
            return
        out = out.detach().float()
        is_share, count = False, 0
        if out.ndim > 1:
            # classes stand last, or second as losses of images and sequences want them
            axes = [axis for axis in (1, out.ndim - 1) if out.shape[axis] > 1]
            errors: list[Any] = [(out.sum(axis) - 1).abs().max() for axis in dict.fromkeys(axes)]
            count = out.shape[axes[0]] if axes else 0
            sums_to_one = _any_of([error < SUM for error in errors])
            is_share = sums_to_one & (out >= 0).all() if errors else False
        self._outputs = ((out**2).mean() ** 0.5, is_share, count)
        x: Any = given[0] if given else None
        is_integer = hasattr(x, "is_floating_point") and not x.is_floating_point() and x.ndim > 1
        if is_integer and x.shape == out.shape[:-1] and out.shape[-1] > 2:
            # beyond what repeats itself from one place to the next anyway, as an image's background
            usual = (x[:, 1:] == x[:, :-1]).float().mean() if x.shape[1] > 1 else 0.0
            self._repeats = (out.argmax(-1) == x).float().mean() - usual

    def _hook_gradient(self) -> None:
        """Listen to what comes into the gradient of one array of weights."""
        if self._weight is None:
            return

        from torch.utils.hooks import unserializable_hook

        came_in = self._came_in
        weak = weakref.ref(self._weight)
        on_the_way: list[Any] = []

        @unserializable_hook  # a weight that is saved now is saved without it
        def comes_in(slope: Any) -> None:
            weight = weak()
            if weight is None or slope.is_sparse or not _is_dense(slope):
                return
            slope = slope.detach().float().clone()
            if weight.grad is None or not came_in:
                on_the_way[:] = [slope]
            else:  # what has been set to zero since begins anew
                on_the_way[:] = [slope + came_in[0] * (weight.grad != 0).any()]

        @unserializable_hook
        def has_come_in(_: Any) -> None:
            came_in[:] = on_the_way  # not so where derivatives are only returned

        self._handles.append(self._weight.register_hook(comes_in))
        self._handles.append(self._weight.register_post_accumulate_grad_hook(has_come_in))


def _any_of(conditions: list[Any]) -> Any:
    """Return whether any of some conditions holds, on their device."""
    return functools.reduce(operator.or_, conditions, False)


def _nothing() -> None:
    """Stand for a reference to nothing."""


def _take_away(handles: list[Any]) -> None:
    """Remove hooks."""
    for handle in handles:
        handle.remove()
    handles.clear()


def _while_it_lives(method: Callable[..., None]) -> Callable[..., None]:
    """Return a hook that keeps nothing alive: a monitor that is forgotten takes its hooks along."""
    weak = weakref.WeakMethod(method)

    def hook(*given: Any) -> None:
        bound = weak()
        if bound is not None:
            bound(*given)

    return hook


def has_compiled() -> bool:
    """Tell whether this process has compiled anything of torch: hooks would have it compiled anew."""
    dynamo = sys.modules.get("torch._dynamo")
    return bool(dynamo is not None and dynamo.utils.counters["frames"])


def _far_from_typical(weight: Any) -> float:
    """Return how far the size of an array is from some hundred numbers, by factors."""
    return abs(math.log(weight.numel() / 256))


def _is_recorded() -> bool:
    """Tell whether this is a step that trains: an evaluation takes no derivatives, and a tracer or vmap no numbers."""
    import torch

    traces = getattr(torch.jit, "is_tracing", bool)() or torch.compiler.is_compiling()
    if traces or not torch.is_grad_enabled():
        return False
    maps = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", lambda: None)
    return maps() is None


def _is_dense(value: Any) -> bool:
    """Tell whether a value is a plain tensor of real numbers; proxies of tracers are of classes of their own."""
    import torch

    is_plain = type(value) in (torch.Tensor, torch.nn.Parameter)
    return is_plain and value.layout == torch.strided and value.is_floating_point()


def _is_plain(weight: Any) -> bool:
    """Tell whether a weight has a gradient of its own that is an array of real numbers."""
    return weight.is_leaf and _is_dense(weight) and weight.numel() > 0


def _are_several_processes() -> bool:
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    with suppress(Exception):
        return bool(
            distributed and distributed.is_initialized() and distributed.get_world_size() > 1
        )
    return False


def readings_of(heard: Heard) -> list[Reading]:
    """Return what was heard as numbers; of layers the largest, with all among its parts."""
    by_layer = ((IDLE, heard.idle), (SATURATED, heard.saturated))
    readings = [
        Reading(name, max(parts.values()), parts=parts) for name, parts in by_layer if parts
    ]
    single = (
        (RANK, heard.rank),
        (SIZE, heard.size),
        (LEFT_OVER, heard.left_over),
        (REPEATS, heard.repeats),
    )
    return readings + [Reading(name, value) for name, value in single if value is not None]


def facts_of(heard: Heard) -> dict[str, Any]:
    """Return what a record says of what was heard besides numbers; nothing of what is as usual."""
    facts: dict[str, Any] = {}
    if heard.in_evaluation:
        facts[EVALUATION] = True
    if heard.frozen_statistics:
        facts[FROZEN_STATISTICS] = list(heard.frozen_statistics)
    if heard.shares:
        facts[SHARES] = heard.shares
    return facts
