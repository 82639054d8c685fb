"""What a monitored training shows, in at most five lines, each with the quantity that it rests on."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steepest.measurement._health import LEARNED
from steepest.measurement._report import Finding, FindingId

if TYPE_CHECKING:
    from steepest.measurement.training._run import TrainingRun

MOST = 5
EDGE = 0.8  # of its limit, from which a curvature that has risen to it is at the edge
ABOVE = (
    2.0  # times its limit: long trainings at the edge stay below, catapults of some steps go beyond
)
SMALL = 0.05  # of it: a larger step may train faster
RISEN = 1.5  # times the lowest risk, from which a higher one at the end is worth a line
YOUNG = 100  # steps, before which a network that has learned nothing is no finding to act on
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
    if any(finding.sign == "!" and finding.evidence == "risk" for finding in drawn):
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
    trouble = str(run.records[start]["trouble"])
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
    return Finding(
        "?",
        f"a divergence was announced {when}, and no longer is",
        "warnings",
        FindingId.NO_LONGER_WARNED,
    )


def _risk(run: "TrainingRun") -> Finding | None:
    """Say what the risk has come to, beside a constant guess and beside its lowest."""
    if "risk" not in run.names or _is_divergence(run.records[-1]):
        return None
    series = run["risk"]
    measured = np.isfinite(series.values)
    if not measured.any():
        return None
    steps = run.steps[measured]
    risks = series.values[measured]
    guess = float(series.compared[measured][-1])
    if (
        risks[-1] >= (1 - LEARNED) * guess
    ):  # NaN is a guess that is not known, which nothing is above
        return _nothing(steps, risks, guess)
    beside = "" if np.isnan(guess) else f", that of a constant guess is {guess:.3g}"
    if len(risks) < 2:
        return Finding(
            "✓",
            f"the risk is {risks[-1]:.3g} at step {steps[-1]}{beside}",
            "risk",
            FindingId.LEARNED,
        )
    way = f"from {risks[0]:.3g} at step {steps[0]} to {risks[-1]:.3g} at step {steps[-1]}"
    if risks[-1] > risks[0]:
        return Finding("?", f"the risk has risen {way}{beside}", "risk", FindingId.RISK_RISEN)
    lowest = int(risks.argmin())
    if risks[-1] > RISEN * risks[lowest]:
        above = f"; its lowest was {risks[lowest]:.3g}, at step {steps[lowest]}"
        return Finding(
            "?",
            f"the risk has fallen {way}{above}{beside}",
            "risk",
            FindingId.RISK_ABOVE_ITS_LOWEST,
        )
    return Finding("✓", f"the risk has fallen {way}{beside}", "risk", FindingId.LEARNED)


def _nothing(steps: NDArray, risks: NDArray, guess: float) -> Finding:
    """Say that the risk is that of a constant guess, and whether it once was lower."""
    lowest = int(risks.argmin())
    now = f"{risks[-1]:.3g} at step {steps[-1]}, that of a constant guess is {guess:.3g}"
    if risks[lowest] >= FORGOT * guess:
        young = steps[-1] < YOUNG
        sign, yet = ("?", " yet") if young else ("!", "")
        return Finding(
            sign,
            f"nothing has been learned{yet}: the risk is {now}",
            "risk",
            FindingId.NOTHING_LEARNED,
        )
    if risks[-2] < (1 - LEARNED) * guess:
        return Finding(
            "!",
            f"the risk has leapt from {risks[-2]:.3g} at step {steps[-2]} to {now}: a spike, or the loss of what was "
            "learned, which the next records tell",
            "risk",
            FindingId.LEAPT,
        )
    return Finding(
        "!",
        f"what was learned is lost: the risk was {risks[lowest]:.3g} at step {steps[lowest]} and is {now}. Go back to "
        "a checkpoint, with a smaller step",
        "risk",
        FindingId.FORGOTTEN,
    )


def _step(run: "TrainingRun") -> Finding | None:
    """Say where the step is beside the largest stable one, by the law that binds at the last record, and since when."""
    limited = [run[name] for name in SHARPNESS if name in run.names and run[name].bounds]
    limited = [series for series in limited if np.isfinite(series.ratio).any()]
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
    if ratio[-1] < SMALL and not peak and series.name == "sharpness":
        return Finding(
            "?", f"{text}: a larger one may train faster", series.name, FindingId.STEP_SMALL
        )
    return Finding("✓", text, series.name, FindingId.STEP_STABLE)


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
    return Finding("✓", text, name, FindingId.MOVED)


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
