"""What a monitored training shows, in at most five lines, each with the quantity that it rests on."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steepest.measurement._report import Finding, FindingId
from steepest.measurement.training._faults import faults
from steepest.measurement.training._learning import is_fresh, learning, newest, of_losses
from steepest.measurement.training._names import FIRST_ORDER

if TYPE_CHECKING:
    from steepest.measurement.training._run import TrainingRun

MOST = 5
EDGE = 0.8  # of its limit, from which a curvature that has risen to it is at the edge
ABOVE = (
    2.0  # times its limit: long trainings at the edge stay below, catapults of some steps go beyond
)
LOST = (FindingId.NOTHING_LEARNED, FindingId.FORGOTTEN, FindingId.LEAPT)
SHARPNESS = ("sharpness", "preconditioned sharpness", "batch sharpness")


def training_findings(run: "TrainingRun") -> tuple[Finding, ...]:
    """Draw at most five findings from the records of a training, those to act on first.

    What was measured longer ago than a tenth of the training says nothing of its end, and no finding rests on it.
    """
    rules: list[Callable[[TrainingRun], Finding | None]] = [
        _divergence,
        _failures,
        _warnings,
        _learned,
        _step,
        _movement,
        _errors,
        _absent,
        _stale,
    ]
    drawn = [finding for rule in rules if (finding := rule(run)) is not None]
    if not _is_divergence(run.records[-1]):
        drawn = [*faults(run), *drawn]
    if any(finding.sign == "!" and finding.id in LOST for finding in drawn):
        # of a network that has nothing to lose a small curvature tells nothing
        drawn = [
            finding for finding in drawn if finding.sign == "!" or finding.evidence not in SHARPNESS
        ]
    rank = {"!": 0, "?": 1, "✓": 2}
    return tuple(sorted(drawn, key=lambda finding: rank[finding.sign])[:MOST])


def _divergence(run: "TrainingRun") -> Finding | None:
    """Say at which step the weights, or the risk, ceased to be finite, if they are not finite now."""
    bad = [_is_divergence(record) for record in run.records]
    if not bad[-1]:
        return None
    start = len(bad) - bad[::-1].index(False) if False in bad else 0
    steps = run.steps
    trouble = run.records[start].get("trouble", "the weights are not finite")
    if not start:
        return Finding(
            "!", f"diverged before the first record: {trouble}", "trouble", FindingId.DIVERGED
        )
    warned = [step for step, _ in run.warnings if step < steps[start]]
    announced = f"; announced at step {warned[0]}" if warned else ""
    return Finding(
        "!",
        f"diverged by step {steps[start]}: last good step {steps[start - 1]}{announced}. Go back to a checkpoint "
        "before it, with a smaller step",
        "trouble",
        FindingId.DIVERGED,
    )


def _is_divergence(record: dict) -> bool:
    return record.get("diverged") is True


def _failures(run: "TrainingRun") -> Finding | None:
    """Say how many measurements failed for other reasons than divergence."""
    failed = [r for r in run.records if "trouble" in r and not _is_divergence(r)]
    if not failed:
        return None
    kept = "kept " * bool(run.left_out)  # nothing is known of what a very long log leaves out
    return Finding(
        "?",
        f"{len(failed)} of {len(run.records)} {kept}measurements failed, the last at step {failed[-1]['step']}: "
        f"{failed[-1]['trouble']}",
        "trouble",
        FindingId.NOT_MEASURED,
    )


def _warnings(run: "TrainingRun") -> Finding | None:
    """Say a warning of the last record, or that an earlier one did not come true."""
    if not run.warnings or _is_divergence(run.records[-1]):
        return None
    step, text = run.warnings[-1]
    if step == run.steps[-1]:
        since = _since(np.isin(run.steps, [warned for warned, _ in run.warnings]))
        return Finding(
            "!", f"warned since step {run.steps[since]}: {text}", "warnings", FindingId.WARNED
        )
    first = run.warnings[0][0]
    when = f"at step {step}" if step == first else f"between steps {first} and {step}"
    warned = f"the monitor warned {when}, and not since"
    before = of_losses(run, until=first)
    course = newest(run)
    if course is None:
        text = f"{warned}; no loss or risk has been recorded since that tells what came of it"
        return Finding("?", text, "warnings", FindingId.NO_LONGER_WARNED)
    now = f"{course.name} is {course.end.value:.3g} at step {course.end.step}"
    usual = course.start if before is None or before.name != course.name else before.end
    if course.end.is_above(usual):
        text = f"{warned}; the {now}, and was {usual.value:.3g} at step {usual.step}: go back to a checkpoint before it"
        return Finding("!", text, "warnings", FindingId.WARNED)
    return Finding("?", f"{warned}; the {now}", "warnings", FindingId.NO_LONGER_WARNED)


def _learned(run: "TrainingRun") -> Finding | None:
    """Say what was learned, unless the training has diverged."""
    return None if _is_divergence(run.records[-1]) else learning(run)


def _stale(run: "TrainingRun") -> Finding | None:
    """Say what was measured so long ago that it says nothing of now, and how it is measured again."""
    if _is_divergence(run.records[-1]):
        return None
    measured = np.array([bool(set(r["quantities"]) - set(FIRST_ORDER)) for r in run.records])
    if not measured.any() or is_fresh(run, measured):
        return None
    last = run.records[int(np.flatnonzero(measured)[-1])]
    names = [name for name in last["quantities"] if name not in FIRST_ORDER]
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    listed = ", ".join(names[:2]) if more else " and ".join(names)
    return Finding(
        "?",
        f"{listed}{more} last measured at step {last['step']} of {run.steps[-1]}, too long ago to tell how the "
        "training stands: call the monitor with now=True after the last step, or give it a larger budget",
        "not_measured",
        FindingId.STALE,
    )


def _step(run: "TrainingRun") -> Finding | None:
    """Say where the step is beside the largest stable one, by the law that binds at the last record, and since when."""
    limited = [run[name] for name in SHARPNESS if name in run.names and run[name].bounds]
    limited = [series for series in limited if is_fresh(run, np.isfinite(series.ratio))]
    if not limited or _is_divergence(run.records[-1]):
        return None
    series = max(limited, key=lambda series: _last(series.ratio))
    measured = np.isfinite(series.ratio)
    steps = run.steps[measured]
    ratio = series.ratio[measured]
    beyond = series.least_ratio[measured] > ABOVE
    near = (ratio >= EDGE) & ~beyond
    law = f"{series.name} over {series.theory}"
    if beyond[-1]:
        start = steps[_since(beyond)]
        since = f", above {ABOVE:g} times since step {start}" if start < steps[-1] else ""
        return Finding(
            "!",
            f"the step is {ratio[-1]:.3g} times the largest stable one at step {steps[-1]} ({law}){since}: expect "
            "spikes or divergence",
            series.name,
            FindingId.STEP_TOO_LARGE,
        )
    if near[-1]:
        middle = float(np.median(ratio[_since(near) :]))
        return Finding(
            "?",
            f"at the edge of stability since step {steps[_since(near)]}: {series.name} {middle:.3g} of "
            f"{series.theory}, where long trainings often stay",
            series.name,
            FindingId.STEP_AT_THE_EDGE,
        )
    most = int(ratio.argmax())
    peak = ""
    # Adam's moments of the first steps are those of few gradients, and say little of its limit
    if ratio[most] >= EDGE and series.name != "preconditioned sharpness":
        peak = f"; the most was {ratio[most]:.3g} times, at step {steps[most]}"
    if ratio[-1] <= 0:
        text = (
            f"no direction curves upwards at step {steps[-1]}: every step is stable to second order"
        )
        return Finding("✓", text + peak, series.name, FindingId.STEP_STABLE)
    text = (
        f"the step is {ratio[-1]:.2g} of the largest stable one at step {steps[-1]} ({law}){peak}"
    )
    return Finding("✓", text, series.name, FindingId.STEP_STABLE)


def _movement(run: "TrainingRun") -> Finding | None:
    """Say how far the weights have moved, and whether the kernel went along."""
    name = "relative change of the weights"
    if name not in run.names or not is_fresh(run, np.isfinite(run[name].values)):
        return None
    moved = _last(run[name].values)
    if not moved > 0:
        return None
    text = f"weights have moved by {moved:.0%} of their size since the first record"
    kernel = "relative change of the tangent kernel"
    if kernel in run.names and np.isfinite(_last(run[kernel].values)):
        text += f", the tangent kernel by {_last(run[kernel].values):.0%}"
    return Finding("✓", text, name, FindingId.MOVED)


def _errors(run: "TrainingRun") -> Finding | None:
    """Say how the error rate has changed."""
    if "error rate" not in run.names:
        return None
    values = run["error rate"].values
    finite = values[np.isfinite(values)]
    if len(finite) < 2 or not is_fresh(run, np.isfinite(values)):
        return None
    return Finding(
        "✓" if finite[-1] < finite[0] else "?",
        f"the error rate went from {finite[0]:.1%} to {finite[-1]:.1%}",
        "error rate",
        FindingId.ERROR_RATES,
    )


def _absent(run: "TrainingRun") -> Finding | None:
    """Say what was asked for and could not be measured, if it still cannot."""
    missing = run.records[-1].get("not_measured")
    if not isinstance(missing, dict) or not missing:
        return None
    name, why = next(iter(missing.items()))
    why = str(why).removeprefix("not measured: ")
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return Finding(
        "?", f"{name}{more} could not be measured: {why}", "not_measured", FindingId.NOT_MEASURED
    )


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
