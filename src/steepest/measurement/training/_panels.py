"""Pictures of a monitored training: each quantity over the steps, with its limit and its error."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steepest.core.panels import Curve, Panel, context_curve, observed_curve, panel, predicted_curve

if TYPE_CHECKING:
    from steepest.measurement.training._run import Series, TrainingRun

FIRST = (
    "risk",
    "sharpness",
    "preconditioned sharpness",
    "batch sharpness",
)
"""Drawn before all others."""
WIDE = 20.0  # ratio of largest and smallest number from which an axis is logarithmic
EVEN = 5.0  # the last step over the middle one, from which the steps were spaced by factors


def training_panels(run: "TrainingRun") -> tuple[Panel, ...]:
    """Return one panel for each quantity that was measured more than once, those of stability first."""
    names = [name for name in FIRST if name in run.names]
    names += [name for name in run.names if name not in FIRST]
    drawn = [_panel(run, run[name]) for name in names if np.isfinite(run[name].values).sum() > 1]
    if (
        "lr" in run.columns
        and len(np.unique(run.columns["lr"][np.isfinite(run.columns["lr"])])) > 1
    ):
        curve = observed_curve(run.steps, run.columns["lr"])
        drawn.append(panel("Step size", "training step", "step size η", curve, log=_spaced(run)))
    return tuple(drawn)


def _panel(run: "TrainingRun", series: "Series") -> Panel:
    curves: list[Curve] = []
    if np.isfinite(series.over_examples).any():
        ends = series.over_examples.T
        curves.append(context_curve(run.steps, ends, "95 % for other examples like these"))
    curves.append(observed_curve(run.steps, series.values, series.name))
    if np.isfinite(series.compared).any():
        label = series.theory if series.bounds or series.name == "risk" else "theory"
        curves.append(predicted_curve(run.steps, series.compared, _short(label)))
    warned = np.isin(run.steps, [step for step, _ in run.warnings])
    if warned.any() and series.name in FIRST:
        marks = np.where(warned, series.values, np.nan)
        curves.append(Curve(run.steps, marks, "warned", "rival", "points"))
    log = _spaced(run) + ("y" if _is_wide(series) else "")
    return panel(
        series.name[:1].upper() + series.name[1:], "training step", series.name, *curves, log=log
    )


def _short(theory: str) -> str:
    """Return a law without its number, which changes along the training.

    >>> _short("2.303 for a constant guess"), _short("2/η")
    ('constant guess', '2/η')
    """
    return "constant guess" if theory.endswith("for a constant guess") else theory


def _spaced(run: "TrainingRun") -> str:
    """Return ``"x"`` where the steps were spaced by factors, so that their axis is logarithmic."""
    steps: NDArray = run.steps[run.steps > 0]
    return "x" if len(steps) > 4 and steps[-1] > EVEN * np.median(steps) else ""


def _is_wide(series: "Series") -> bool:
    """Tell whether all numbers are positive and far apart."""
    both = np.concatenate([series.values, series.compared])
    finite = both[np.isfinite(both)]
    return bool(len(finite)) and finite.min() > 0 and finite.max() > WIDE * finite.min()
