"""Steepest puts the theory of deep learning to the test.

>>> import steepest
>>> steepest.run("catapult", multiple=5.0).verdict.value  # out of the theorem's range: nothing is run
'out-of-range'

Names are loaded when first used, so that importing the package is quick and imports no JAX. What is stable, and how
names go away, is in ``docs/api_stability.md``.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steepest.app.api import check as check
    from steepest.app.api import cite as cite
    from steepest.app.api import exercise as exercise
    from steepest.app.api import run as run
    from steepest.app.api import sweep as sweep
    from steepest.app.api import trials as trials
    from steepest.app.api import watch as watch
    from steepest.catalogue import catalogue as claims  # the module of this name can be called
    from steepest.engine.results import Result as Result
    from steepest.kit import Claim as Claim
    from steepest.measurement import Monitor as Monitor
    from steepest.measurement import Report as Report
    from steepest.measurement import compare as compare
    from steepest.measurement import measure as measure
    from steepest.measurement import read_report as read_report
    from steepest.measurement import width_check as width_check

__version__ = "0.2.0"
__all__ = [
    "Claim",
    "Monitor",
    "Report",
    "Result",
    "check",
    "cite",
    "claims",
    "compare",
    "exercise",
    "measure",
    "read_report",
    "run",
    "sweep",
    "trials",
    "watch",
    "width_check",
]

_HOMES = {
    "steepest.app.api": ("check", "cite", "exercise", "run", "sweep", "trials", "watch"),
    "steepest.kit": ("Claim",),
    "steepest.engine.results": ("Result",),
    "steepest.measurement": (
        "Monitor",
        "Report",
        "compare",
        "measure",
        "read_report",
        "width_check",
    ),
}
"""Where each public name is defined."""


def __getattr__(name: str) -> Any:
    if name == "claims":
        return importlib.import_module("steepest.claims")
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'steepest' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
