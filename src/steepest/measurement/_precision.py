"""Double precision of JAX, where JAX takes part: a model of torch may be measured without it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def double_precision() -> Iterator[None]:
    """Let JAX compute in float64 if it is imported already; whoever imports it later says so for themselves."""
    jax = sys.modules.get("jax")
    if jax is None:
        yield
        return
    with jax.enable_x64(True):
        yield
