"""Programs that run once: compiled quickly rather than to run quickly."""

from collections.abc import Callable
from typing import Any

from steepest.core.compiling import compile_quickly


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function for a program that runs once or a few times, as a claim's experiment does.

    One program for a whole experiment costs less than many small ones: operations around it that are not compiled with
    it are compiled one by one, at twenty milliseconds each and more.

    Args:
        function: pure JAX, from arrays to arrays, in any pytrees.
        **options: passed on to ``jax.jit``, such as ``static_argnames``.

    >>> import jax.numpy as jnp
    >>> float(compiled(lambda x: x**2)(jnp.array(3.0)))
    9.0
    """
    return compile_quickly(function, **options)
