"""One process of several, whose measurement must wait for no other; imported only where torch is."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from steepest.core.errors import UserError

COLLECTIVES = ("c10d", "_c10d_functional", "_c10d_functional_autograd", "symm_mem", "_dtensor")
"""Namespaces of the operations in which processes wait for each other."""


def by_itself() -> AbstractContextManager[Any]:
    """Refuse what would wait for other processes, where there are several."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return nullcontext()
    return _NoCollectives() if torch.distributed.get_world_size() > 1 else nullcontext()


class _NoCollectives(TorchDispatchMode):
    """Raise instead of waiting: the other processes go on training, and never join."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace in COLLECTIVES:
            raise UserError(
                f"the model or loss waits for other processes ({func}), which do not take part in a measurement; "
                "measure a module that works in one process, or give the monitor neither loss nor data for first-order "
                "numbers only"
            )
        return func(*args, **(kwargs or {}))
