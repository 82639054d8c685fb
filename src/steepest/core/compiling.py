"""How programs that run once or a few times are compiled: quickly, rather than to run quickly."""

from importlib.metadata import version

KNOWN = ("0.9.", "0.10.")
"""Versions of jaxlib whose compiler has both generators of loops; options it does not know are errors."""


def quick_options(jaxlib: str) -> dict[str, int | bool]:
    """Return compiler options for programs whose compiling costs more than their arithmetic.

    Level 1 compiles in two thirds of the time. The older generator of loops takes another 2 to 15 % off a cold
    quick preset; its numbers differ in the last digits.

    Args:
        jaxlib: the version that compiles.

    >>> quick_options("0.10.2")
    {'xla_backend_optimization_level': 1, 'xla_cpu_use_fusion_emitters': False}
    >>> quick_options("0.12.0")
    {'xla_backend_optimization_level': 1}
    """
    options: dict[str, int | bool] = {"xla_backend_optimization_level": 1}
    if jaxlib.startswith(KNOWN):
        options["xla_cpu_use_fusion_emitters"] = False
    return options


ONCE = quick_options(version("jaxlib"))
"""The options for ``jax.jit``, of programs that no other program contains."""
