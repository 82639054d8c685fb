"""Announce a divergence: from records, whose curvature is far above its limit or whose risk climbs, and from each step.

The rules of records need data to measure on; those of steps need the losses of the batches and the updates of weights
that a training has at hand anyway.
"""

import math
from typing import Any

from steepest.measurement.training._alarms import Alarm, Rule
from steepest.measurement.training._first_order import StepNumbers
from steepest.measurement.training._losses import Losses

# Fixed on the seeds 0 to 4 of benchmarks/divergence, before any other seed was run. Trainings that end well pass
# through catapults, in which a step multiplies a deviation by up to 6.6, and a batch's own by 3.8; the risk then climbs
# for one record, to four times its lowest and by 0.6 of that of a constant guess.
GROWTH = 8.0  # of a deviation along the sharpest direction of all examples, in one step
BATCH_GROWTH = 5.0  # of a deviation along the gradients of the batches
RISEN = 2.0  # times the lowest risk so far
CLIMB = 0.5  # of the risk of a constant guess, above the lowest
RECORDS = 2  # in a row with such a risk
FRESH = 1  # steps at most before the first record of a training that begins with it
QUIET = 8  # steps in which an alarm of steps is not said again


def growth(ratio: float, momentum: float = 0.0) -> float:
    """Return the factor by which one step multiplies a deviation on a quadratic, at this multiple of its limit.

    Descent with heavy-ball momentum β is ``w ← (1 + β − ηλ) w − β w'``; at ``ηλ = 2(1+β) r`` its larger root is −1 for
    r = 1. Without momentum the factor is ``|1 − ηλ| = |2r − 1|``.

    >>> growth(1.0), growth(4.5), round(growth(1.0, 0.9), 9), round(growth(2.7, 0.9), 2)
    (1.0, 8.0, 1.0, 8.25)
    """
    trace = 1 + momentum - 2 * (1 + momentum) * ratio
    spread = trace * trace - 4 * momentum
    if spread < 0:  # complex roots, whose product is β
        return math.sqrt(momentum)
    return (abs(trace) + math.sqrt(spread)) / 2


class Course:
    """What earlier records have shown, as far as warnings need it."""

    def __init__(self) -> None:
        self.lowest: tuple[float, int] | None = None  # risk, and its step
        self.scale = math.nan  # risk of the first record, if the training began with it
        self.high = 0  # records in a row with a risk far above it
        self.guess: float | None = None  # the risk of a constant guess, once a record has it
        self.losses = Losses()
        self.silent_until: dict[Rule, int] = {}

    def alarms(self, record: dict[str, Any]) -> list[Alarm]:
        """Return the alarms that a new record gives, and remember what later ones need.

        Args:
            record: of the monitor, with ``step`` and ``quantities``; records must come in their order.
        """
        candidates = [
            _curvature(record),
            _batches(record),
            self._risk(record["quantities"].get("risk"), record["step"]),
        ]
        return [alarm for alarm in candidates if alarm is not None]

    def alarms_of_step(self, numbers: StepNumbers) -> list[Alarm]:
        """Return the alarms of one step; steps must come in their order."""
        raised = self.losses.alarms(numbers, self.guess)
        return [alarm for alarm in raised if self._is_new(alarm.rule, numbers.step)]

    def calm(self) -> float:
        """Return the largest loss of a batch that can wait some steps until it is looked at."""
        return self.losses.calm(self.guess)

    def _is_new(self, rule: Rule, step: int) -> bool:
        """Tell whether an alarm of a step has not been said while its reason lasts."""
        is_new = step > self.silent_until.get(rule, -1)
        self.silent_until[rule] = step + QUIET
        return is_new

    def _risk(self, entry: dict[str, Any] | None, step: int) -> Alarm | None:
        if entry is None or entry["value"] is None:
            return None
        risk = entry["value"]
        if self.lowest is None or risk < self.lowest[0]:
            self.lowest = (risk, step)
        low, when = self.lowest
        if math.isnan(self.scale):
            # where a constant guess is not known, the start of a training is next to one
            self.scale = risk if step <= FRESH else math.inf
        self.guess = entry["compared"] or None
        guess = self.guess or self.scale
        is_high = risk >= RISEN * low and risk - low >= CLIMB * guess
        self.high = self.high + 1 if is_high else 0
        if self.high < RECORDS:
            return None
        beside = "that of a constant guess is" if entry["compared"] else "at the start it was"
        return Alarm(
            Rule.RISK,
            f"the risk has climbed from {low:.3g} at step {when} to {risk:.3g}, {beside} {guess:.3g}: expect that what "
            "was learned is lost. Lower the step, or go back to a checkpoint",
        )


def _curvature(record: dict[str, Any]) -> Alarm | None:
    """Compare the sharpness with its limit; of Adam it has none, and the preconditioned one leaps in early steps."""
    entry = record["quantities"].get("sharpness")
    ratio = least_ratio(entry)
    if entry is None or ratio is None or ratio < 1:
        return None
    factor = growth(ratio, record.get("momentum", 0.0))
    if factor < GROWTH:
        return None
    return Alarm(
        Rule.CURVATURE,
        f"the step is {ratio:.3g} times the largest stable one (sharpness {entry['value']:.3g}, {entry['theory']} is "
        f"{entry['compared']:.3g}): it multiplies a deviation along the sharpest direction by {factor:.3g}. Expect "
        "divergence: lower the step, or warm it up",
    )


def _batches(record: dict[str, Any]) -> Alarm | None:
    """Compare the batch sharpness with 2(1+β)/η, the limit of momentum at any noise; 2/η without."""
    entry = record["quantities"].get("batch sharpness")
    of_all = record["quantities"].get("sharpness")
    if entry is None or of_all is None or of_all["compared"] is None or "lr" not in record:
        return None
    momentum = record.get("momentum", 0.0)
    limit = 2 * (1 + momentum) / record["lr"]
    ratio = least_ratio({**entry, "compared": limit})
    if ratio is None or ratio < 1 or growth(ratio, momentum) < BATCH_GROWTH:
        return None
    law = "2(1+β)/η" if momentum else "2/η"
    return Alarm(
        Rule.BATCHES,
        f"the step is {ratio:.3g} times the largest stable one of its batches (batch sharpness {entry['value']:.3g}, "
        f"{law} is {limit:.3g}). Expect divergence: lower the step, or take larger batches",
    )


def least_ratio(entry: dict[str, Any] | None) -> float | None:
    """Return the lower end of a quantity's interval over its limit, or None where one of them is not known.

    >>> least_ratio({"value": 5.0, "interval": [4.0, 6.0], "compared": 2.0})
    2.0
    """
    if entry is None or entry["value"] is None or not entry["compared"] or entry["compared"] < 0:
        return None
    low = entry["value"] if entry["interval"] is None else entry["interval"][0]
    return None if low is None else low / entry["compared"]
