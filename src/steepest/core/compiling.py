"""How programs that run once or a few times are compiled: quickly, rather than to run quickly."""

import functools
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

KNOWN = ("0.9.", "0.10.")
"""Versions of jaxlib whose compiler has both generators of loops; options it does not know are errors."""


def quick_options(jaxlib: str, backend: str) -> dict[str, int | bool]:
    """Return compiler options for programs whose compiling costs more than their arithmetic.

    Level 1 compiles in two thirds of the time. The older generator of loops takes another 2 to 15 % off a cold
    quick preset; its numbers differ in the last digits. Both are measured on the CPU, and other backends may know
    neither, so that their programs are compiled as usual.

    Args:
        jaxlib: the version that compiles.
        backend: what it compiles for, as ``jax.default_backend()`` says.

    >>> quick_options("0.10.2", "cpu")
    {'xla_backend_optimization_level': 1, 'xla_cpu_use_fusion_emitters': False}
    >>> quick_options("0.12.0", "cpu")
    {'xla_backend_optimization_level': 1}
    >>> quick_options("0.10.2", "gpu")
    {}
    """
    if backend != "cpu":
        return {}
    options: dict[str, int | bool] = {"xla_backend_optimization_level": 1}
    if jaxlib.startswith(KNOWN):
        options["xla_cpu_use_fusion_emitters"] = False
    return options


def compile_quickly(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function as ``jax.jit`` does, with the quick options; no other program may contain it.

    Which backend there is, is asked at the first call: asking starts it, and importing a module must not.

    Args:
        function: pure JAX, from arrays to arrays, in any pytrees.
        **options: passed on to ``jax.jit``, such as ``static_argnums``.

    >>> float(compile_quickly(lambda x: x**2)(3.0))
    9.0
    """

    @functools.cache
    def program() -> Callable[..., Any]:
        import jax

        quick = quick_options(version("jaxlib"), jax.default_backend())
        return jax.jit(function, compiler_options=quick, **options)

    @functools.wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        return program()(*arguments, **named)

    return run
