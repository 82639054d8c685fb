"""Everything of a reader's that measuring might touch, taken down bit for bit."""

import os
import random
import signal
import sys
import warnings
from collections import deque
from types import FunctionType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np
import torch
from torch import nn

PLAIN = (int, float, complex, str, bytes, bool, type(None), range, slice, torch.dtype, torch.device)


def of(thing: Any, place: str = "", seen: dict | None = None) -> dict[str, Any]:
    """Return every number, binding and flag that is reachable from a thing, by its place."""
    seen = {} if seen is None else seen
    if isinstance(thing, PLAIN):
        return {place: thing if thing == thing else repr(thing)}
    if id(thing) in seen:
        return {place: f"as {seen[id(thing)]}"}
    seen[id(thing)] = place
    lines = {place: (type(thing).__name__, id(thing))}
    for name, part in _parts(thing):
        lines |= of(part, f"{place}.{name}", seen)
    seen[f"alive {place}"] = thing  # so that no other thing takes its place in memory
    return lines


def _parts(thing: Any) -> list[tuple[Any, Any]]:
    if isinstance(thing, torch.Tensor):
        flags = (str(thing.dtype), tuple(thing.shape), thing.requires_grad, type(thing).__name__)
        bits = thing.detach().contiguous().flatten().view(torch.uint8).cpu().numpy().tobytes()
        grad = thing.grad if thing.is_leaf else None
        return [("flags", repr(flags)), ("bits", bits), ("grad", grad), *vars(thing).items()]
    if isinstance(thing, torch.Generator):
        return [("state", thing.get_state().numpy().tobytes())]
    if isinstance(thing, np.random.Generator):
        return [("state", repr(thing.bit_generator.state))]
    if isinstance(thing, np.ndarray):
        return [("array", thing.tobytes()), ("flags", repr((thing.dtype, thing.shape)))]
    if isinstance(thing, jax.Array):
        raw = (
            jax.random.key_data(thing)
            if jax.dtypes.issubdtype(thing.dtype, jax.dtypes.prng_key)
            else thing
        )
        return [("array", np.asarray(raw).tobytes()), ("flags", str(thing.dtype))]
    if isinstance(thing, dict):
        return [
            ("keys", repr(list(map(_named, thing)))),
            *((_named(k), v) for k, v in list(thing.items())),
        ]
    if isinstance(thing, list | tuple):
        return [("length", len(thing)), *enumerate(thing)]
    if isinstance(thing, deque):
        return list(enumerate(thing))
    if isinstance(thing, set | frozenset):
        return [("set", repr(sorted(map(repr, thing))))]
    if isinstance(thing, FunctionType):
        cells = zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True)
        return [(name, cell.cell_contents) for name, cell in cells]
    if isinstance(thing, MethodType):
        return [("self", thing.__self__)]
    if isinstance(thing, type | ModuleType) or not hasattr(thing, "__dict__"):
        return []
    return list(vars(thing).items())


def _named(key: Any) -> str:
    return (
        key
        if isinstance(key, str)
        else f"{type(key).__name__} {id(key) if hasattr(key, '__dict__') else key}"
    )


def around() -> dict[str, Any]:
    """Return the state of the process: random numbers, defaults of torch, JAX, warnings and the system."""
    import matplotlib

    of_module = nn.modules.module
    hooks = [name for name in vars(of_module) if name.startswith("_global_") and "hooks" in name]
    return {
        "random of python": random.getstate(),
        "random of numpy": repr(np.random.get_state()),
        "random of torch": torch.get_rng_state().numpy().tobytes(),
        "default dtype": torch.get_default_dtype(),
        "threads": torch.get_num_threads(),
        "deterministic": (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        "gradients": (
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.is_anomaly_enabled(),
        ),
        "autocast": (
            torch.autocast.__enter__,
            torch.is_autocast_enabled("cpu"),
            torch.get_autocast_dtype("cpu"),
        ),
        "attention": (
            torch.backends.mha.get_fastpath_enabled(),
            torch.backends.cuda.flash_sdp_enabled(),
            torch.backends.cuda.math_sdp_enabled(),
        ),
        "checkpointing": vars(sys.modules["torch.utils.checkpoint"])["CheckpointFunction"],
        "stance": repr(getattr(sys.modules.get("torch._dynamo.eval_frame"), "_stance", None)),
        "hooks of all modules": [list(getattr(of_module, name)) for name in hooks],
        "warnings": list(warnings.filters),
        "jax": {name: repr(value) for name, value in jax.config.values.items()},
        "jax in this thread": (
            jax.config.jax_enable_x64,
            jax.config.jax_default_matmul_precision,
            jax.config.jax_default_device,
            jax.config.jax_compilation_cache_dir,
        ),
        "default device": torch.get_default_device(),
        "precision of products": torch.get_float32_matmul_precision(),
        "cudnn": (torch.backends.cudnn.enabled, torch.backends.cudnn.deterministic),
        "compiler": {
            name: getattr(sys.modules.get("torch._dynamo.config"), name, None)
            for name in ("recompile_limit", "suppress_errors", "verbose")
        },
        "environment": dict(os.environ),
        "matplotlib": repr(dict(matplotlib.rcParams)),
        "folder": os.getcwd(),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "numpy errors": np.geterr(),
        "printing": (np.get_printoptions(), torch._tensor_str.PRINT_OPTS.precision),
        "excepthook": sys.excepthook,
        "recursion": sys.getrecursionlimit(),
        "path": list(sys.path),
    }


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """List the places where two of these differ."""
    return sorted(
        place
        for place in before.keys() | after.keys()
        if before.get(place, before) != after.get(place, after)
    )
