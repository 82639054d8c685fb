"""Steepest puts the theory of deep learning to the test.

>>> import steepest
>>> steepest.run("catapult", multiple=5.0).verdict.value  # out of the theorem's range: nothing is run
'out-of-range'

Names are loaded when first used, so that importing the package is quick and imports no JAX.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steepest import claims as claims
    from steepest.app.api import exercise as exercise
    from steepest.app.api import run as run
    from steepest.app.api import sweep as sweep
    from steepest.app.api import trials as trials
    from steepest.app.api import watch as watch
    from steepest.measurement import Monitor as Monitor
    from steepest.measurement import compare as compare
    from steepest.measurement import measure as measure
    from steepest.measurement import width_check as width_check

__version__ = "0.1.0"
__all__ = [
    "Monitor",
    "claims",
    "compare",
    "exercise",
    "measure",
    "run",
    "sweep",
    "trials",
    "watch",
    "width_check",
]


def __getattr__(name: str) -> Any:
    if name == "claims":
        return importlib.import_module("steepest.claims")
    if name in ("measure", "Monitor", "compare", "width_check"):
        return getattr(importlib.import_module("steepest.measurement"), name)
    if name in __all__:
        return getattr(importlib.import_module("steepest.app.api"), name)
    raise AttributeError(f"module 'steepest' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
