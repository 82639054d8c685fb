"""What a monitored training shows, in at most five lines, each with the quantity that it rests on."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steepest.measurement._health import LEARNED
from steepest.measurement._report import Finding

if TYPE_CHECKING:
    from steepest.measurement._training_run import Series, TrainingRun

MOST = 5
EDGE = 0.8  # of its limit, from which a curvature that has risen to it is at the edge
ABOVE = 1.4  # times its limit, more than long trainings at the edge have
SMALL = 0.05  # of it: a larger step would train faster
RISEN = 1.5  # times the lowest risk, from which a higher one at the end is worth a line
FORGOT = 0.9  # of the risk of a constant guess; what had less had learned something
SHARPNESS = ("sharpness", "preconditioned sharpness", "batch sharpness")


def training_findings(run: "TrainingRun") -> tuple[Finding, ...]:
    """Draw at most five findings from the records of a training, those to act on first."""
    rules: list[Callable[[TrainingRun], Finding | None]] = [
        _divergence,
        _failures,
        _warnings,
        _risk,
        _step,
        _movement,
        _errors,
        _absent,
    ]
    drawn = [finding for rule in rules if (finding := rule(run)) is not None]
    rank = {"!": 0, "?": 1, "✓": 2}
    return tuple(sorted(drawn, key=lambda finding: rank[finding.sign])[:MOST])


def _divergence(run: "TrainingRun") -> Finding | None:
    """Say at which step the weights, or the risk, ceased to be finite, if they are not finite now."""
    bad = [_is_divergence(record) for record in run.records]
    if not bad[-1]:
        return None
    start = len(bad) - bad[::-1].index(False) if False in bad else 0
    steps = run.steps
    trouble = str(run.records[start]["trouble"])
    if not start:
        return Finding("!", f"diverged before the first record: {trouble}", "trouble")
    warned = [step for step, _ in run.warnings if step < steps[start]]
    announced = f"; announced at step {warned[0]}" if warned else ""
    return Finding(
        "!",
        f"diverged by step {steps[start]}: last good step {steps[start - 1]}{announced}. Go back to a checkpoint "
        "before it, with a smaller step",
        "trouble",
    )


def _is_divergence(record: dict) -> bool:
    return "not finite" in str(record.get("trouble", ""))


def _failures(run: "TrainingRun") -> Finding | None:
    """Say how many measurements failed for other reasons than divergence."""
    failed = [r for r in run.records if "trouble" in r and not _is_divergence(r)]
    if not failed:
        return None
    return Finding(
        "?",
        f"{len(failed)} of {len(run.records)} measurements failed, the last at step {failed[-1]['step']}: "
        f"{failed[-1]['trouble']}",
        "trouble",
    )


def _warnings(run: "TrainingRun") -> Finding | None:
    """Say a warning of the last record, or that an earlier one did not come true."""
    if not run.warnings or _is_divergence(run.records[-1]):
        return None
    step, text = run.warnings[-1]
    if step == run.steps[-1]:
        since = _since(np.isin(run.steps, [warned for warned, _ in run.warnings]))
        return Finding("!", f"warned since step {run.steps[since]}: {text}", "warnings")
    first = run.warnings[0][0]
    when = f"at step {step}" if step == first else f"between steps {first} and {step}"
    return Finding("?", f"a divergence was announced {when}, and no longer is", "warnings")


def _risk(run: "TrainingRun") -> Finding | None:
    """Say what the risk has come to, beside a constant guess and beside its lowest."""
    if "risk" not in run.names:
        return None
    series = run["risk"]
    place = np.flatnonzero(np.isfinite(series.values))
    if not len(place) or _is_divergence(run.records[-1]):
        return None
    first = float(series.values[place[0]])
    last = float(series.values[place[-1]])
    step = run.steps[place[-1]]
    guess = float(series.compared[place[-1]])
    lowest = place[np.argmin(series.values[place])]
    low = float(series.values[lowest])
    if last >= (1 - LEARNED) * guess:
        if low < FORGOT * guess:
            text = (
                f"what was learned is lost: the risk was {low:.3g} at step {run.steps[lowest]} and is {last:.3g} at step "
                f"{step}, that of a constant guess is {guess:.3g}. Go back to a checkpoint, with a smaller step"
            )
        else:
            text = (
                f"nothing has been learned by step {step}: the risk is {last:.3g}, that of a constant guess {guess:.3g}"
            )
        return Finding("!", text, "risk")
    beside = "" if np.isnan(guess) else f", that of a constant guess is {guess:.3g}"
    if len(place) < 2:
        return Finding("✓", f"the risk is {last:.3g} at step {step}{beside}", "risk")
    fall = f"from {first:.3g} at step {run.steps[place[0]]} to {last:.3g} at step {step}"
    if last > first:
        return Finding("?", f"the risk has risen {fall}{beside}", "risk")
    if last > RISEN * low:
        above = f"; its lowest was {low:.3g}, at step {run.steps[lowest]}"
        return Finding("?", f"the risk has fallen {fall}{above}{beside}", "risk")
    return Finding("✓", f"the risk has fallen {fall}{beside}", "risk")


def _step(run: "TrainingRun") -> Finding | None:
    """Say where the step is beside the largest stable one, by the law that binds at the last record, and since when."""
    candidates = [run[name] for name in SHARPNESS if name in run.names and run[name].bounds]
    known = [(series, series.ratio) for series in candidates if np.isfinite(series.ratio).any()]
    if not known or _is_divergence(run.records[-1]):
        return None
    series, ratio = max(known, key=lambda pair: _last(pair[1]))
    place = np.flatnonzero(np.isfinite(ratio))
    ratio = ratio[place]
    steps = run.steps[place]
    now = float(ratio[-1])
    beyond = series.least_ratio[place] > ABOVE
    if beyond[-1]:
        return Finding(
            "!",
            f"the step is {now:.2g} times the largest stable one at step {steps[-1]} ({series.name} over {series.theory}), "
            f"above {ABOVE:g} times since step {steps[_since(beyond)]}: expect spikes or divergence",
            series.name,
        )
    near = (ratio >= EDGE) & (series.least_ratio[place] <= ABOVE)
    if near[-1]:
        start = _since(near)
        middle = float(np.median(ratio[start:]))
        return Finding(
            "?",
            f"at the edge of stability since step {steps[start]}: {series.name} {middle:.3g} of {series.theory}, where "
            "long trainings often stay",
            series.name,
        )
    most = int(np.argmax(ratio))
    # moments of the first steps are those of few gradients, and say little of the limit
    peak = "" if series.name.startswith("preconditioned") or ratio[most] < EDGE else (
        f"; the most was {ratio[most]:.2g} times, at step {steps[most]}"
    )
    text = (
        f"the step is {now:.2g} of the largest stable one at step {steps[-1]} ({series.name} over {series.theory}){peak}"
    )
    if now <= 0:
        text = f"no direction curves upwards at step {steps[-1]}: every step is stable to second order{peak}"
    elif now < SMALL and not peak:
        return Finding("?", f"{text}: a larger one would train faster", series.name)
    return Finding("✓", text, series.name)


def _movement(run: "TrainingRun") -> Finding | None:
    """Say how far the weights have moved, and whether the kernel went along."""
    name = "relative change of the weights"
    if name not in run.names:
        return None
    moved = _last(run[name].values)
    if not moved > 0:
        return None
    text = f"weights have moved by {moved:.0%} of their size since the first record"
    kernel = "relative change of the tangent kernel"
    if kernel in run.names and np.isfinite(_last(run[kernel].values)):
        text += f", the tangent kernel by {_last(run[kernel].values):.0%}"
    return Finding("✓", text, name)


def _errors(run: "TrainingRun") -> Finding | None:
    """Say how the error rate has changed."""
    if "error rate" not in run.names:
        return None
    values = run["error rate"].values
    finite = values[np.isfinite(values)]
    if len(finite) < 2:
        return None
    return Finding(
        "✓" if finite[-1] < finite[0] else "?",
        f"the error rate went from {finite[0]:.1%} to {finite[-1]:.1%}",
        "error rate",
    )


def _absent(run: "TrainingRun") -> Finding | None:
    """Say what was asked for and could not be measured, if it still cannot."""
    missing = run.records[-1].get("not_measured")
    if not isinstance(missing, dict) or not missing:
        return None
    name, why = next(iter(missing.items()))
    why = str(why).removeprefix("not measured: ")
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return Finding("?", f"{name}{more} could not be measured: {why}", "not_measured")


def _since(holds: NDArray[np.bool_]) -> int:
    """Return the place from which on something has held until the end, where it holds.

    >>> _since(np.array([True, False, True, True]))
    2
    """
    others = np.flatnonzero(~holds)
    return int(others[-1]) + 1 if len(others) else 0


def _last(values: NDArray) -> float:
    """Return the last finite number; NaN where there is none."""
    finite = values[np.isfinite(values)]
    return float(finite[-1]) if len(finite) else float("nan")
