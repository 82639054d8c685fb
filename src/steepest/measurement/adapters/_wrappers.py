"""What a training puts around a module of torch, or does to its weights: parallel and compiled wrappers, shards."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any

WRAPPERS = {
    "torch.nn.parallel.distributed.DistributedDataParallel": "module",
    "torch.nn.parallel.data_parallel.DataParallel": "module",
    "torch._dynamo.eval_frame.OptimizedModule": "_orig_mod",
    "torch.optim.swa_utils.AveragedModel": "module",
}
"""Where each kind of wrapper keeps the module that it calls."""
SHARDING = "FullyShardedDataParallel"
"""The class that keeps flat shards of weights as plain tensors; other shards are a kind of tensor of their own."""


def is_torch_module(model: Any) -> bool:
    """Tell whether this is a module of torch, without importing torch."""
    return any(kind.__module__ == "torch.nn.modules.module" for kind in type(model).__mro__)


def unwrapped(model: Any) -> Any:
    """Return the module inside of parallel, compiling and averaging wrappers; anything else as it is."""
    while (inner := _inside(model)) is not None:
        model = inner
    return model


@contextmanager
def bare(module: Any) -> Iterator[None]:
    """Let the wrappers among the parts of a module only call what they wrap, and compile nothing.

    A data-parallel wrapper sends buffers to other processes in its forward pass and prepares for a backward pass of the
    training; a compiling one would compile the measurement into the training's cache.
    """
    with ExitStack() as undone:
        for part in module.modules():
            inner = _inside(part)
            if inner is not None:
                undone.callback(_restore, part, "forward" in vars(part), vars(part).get("forward"))
                # in the dictionary itself: some wrappers hand attributes on to what they wrap
                vars(part)["forward"] = inner.__call__
        if "torch._dynamo" in sys.modules:
            import torch

            undone.enter_context(torch.compiler.set_stance("force_eager"))
        yield


@contextmanager
def own_buffers(module: Any, precision: Any) -> Iterator[None]:
    """Let the parts of a module write on copies of their buffers in a precision, and put the buffers themselves back.

    Put back by copying, they would break the graph of what was calculated with them.
    """
    copied = lambda b: b.to(precision, copy=True) if b.is_floating_point() else b.clone()
    before = [(part, dict(part._buffers)) for part in module.modules() if part._buffers]
    try:
        for part, buffers in before:
            part._buffers.update(
                {name: None if b is None else copied(b) for name, b in buffers.items()}
            )
        yield
    finally:
        for part, buffers in before:
            part._buffers.clear()
            part._buffers.update(buffers)


@contextmanager
def without_checkpoints() -> Iterator[None]:
    """Keep what checkpointing would calculate again: in a backward pass it would take the module's own weights.

    It also hides second derivatives. It is replaced by its entry points, as those who call it have bound its name.
    """
    checkpoint = sys.modules.get("torch.utils.checkpoint")
    entries = {
        "CheckpointFunction": _Plain,
        "_checkpoint_without_reentrant_generator": _once,
    }
    before = {name: getattr(checkpoint, name) for name in entries if hasattr(checkpoint, name)}
    try:
        for name in before:
            setattr(checkpoint, name, entries[name])
        yield
    finally:
        for name, entry in before.items():
            setattr(checkpoint, name, entry)


class _Plain:
    """Calls a function as it is, in the place of the one that would call it again."""

    @staticmethod
    def apply(function: Any, preserve: bool, *given: Any) -> Any:
        return function(*given)


def _once(*given: Any, **named: Any) -> Iterator[None]:
    """Surround the call by nothing."""
    yield


def is_sharded(model: Any) -> bool:
    """Tell whether this process holds only a part of the weights of a module, or of a pair ``(apply, params)``."""
    if not is_torch_module(model):
        pair = isinstance(model, tuple | list) and len(model) == 2 and "jax" in sys.modules
        return pair and any(not is_addressable(leaf) for leaf in _leaves(model[1]))
    if any(type(part).__name__ == SHARDING for part in model.modules()):
        return True
    return any(is_distributed(weight) for weight in model.parameters())


def is_distributed(tensor: Any) -> bool:
    """Tell whether a tensor of torch is spread over processes, whose every operation may wait for the others."""
    return hasattr(tensor, "to_local") and hasattr(tensor, "device_mesh")


def local(tensor: Any) -> Any:
    """Return a tensor without its derivative: of one that is spread over processes the part of this process."""
    detached = tensor.detach()
    return detached.to_local() if is_distributed(detached) else detached


def is_addressable(array: Any) -> bool:
    """Tell whether this process reaches all of an array of JAX; programs on others need all processes."""
    return getattr(array, "is_fully_addressable", True)


def _leaves(params: Any) -> list[Any]:
    import jax

    return jax.tree.leaves(params)


def _inside(model: Any) -> Any:
    """Return what a wrapper wraps; None of anything else."""
    attribute = _kept_under(type(model))
    return None if attribute is None else getattr(model, attribute)


@lru_cache(maxsize=256)
def _kept_under(wrapper: type) -> str | None:
    """Return the attribute under which a wrapper of this class keeps what it wraps."""
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in wrapper.__mro__)
    return next((WRAPPERS[name] for name in names if name in WRAPPERS), None)


def _restore(part: Any, had_its_own: bool, forward: Any) -> None:
    """Put the forward pass of a wrapper back."""
    if had_its_own:
        vars(part)["forward"] = forward
    else:
        del vars(part)["forward"]
