"""Announce a divergence from what a monitor has recorded: curvature far above its limit, or a risk that climbs."""

import math
from typing import Any, NamedTuple

# Fixed on the seeds 0 to 4 of benchmarks/divergence, before any other seed was run. Trainings that end well pass through
# catapults: up to 3.8 times the limit of all examples, where a step multiplies a deviation by 6.6, and 2.4 times that of
# the batches.
GROWTH = 8.0  # of a deviation along the sharpest direction, in one step
BATCH = 3.0  # times the limit of the batches
RISEN = 4.0  # times the lowest risk so far
CLIMB = 0.75  # of the risk of a constant guess, above the lowest


class Alarm(NamedTuple):
    """A sign that the training is about to be lost."""

    rule: str
    """``"curvature"``, ``"batches"`` or ``"risk"``."""
    text: str
    """What was seen and what to try, in one or two sentences."""


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

    def alarms(self, record: dict[str, Any]) -> list[Alarm]:
        """Return the alarms that a new record gives, and remember what later ones need.

        Args:
            record: of the monitor, with ``step`` and ``quantities``; records must come in their order.
        """
        quantities = record["quantities"]
        candidates = [
            _curvature(quantities.get("sharpness"), record.get("momentum", 0.0)),
            _batches(quantities.get("batch sharpness")),
            self._risk(quantities.get("risk"), record["step"]),
        ]
        return [alarm for alarm in candidates if alarm is not None]

    def _risk(self, entry: dict[str, Any] | None, step: int) -> Alarm | None:
        if entry is None or entry["value"] is None:
            return None
        risk = entry["value"]
        if self.lowest is None or risk < self.lowest[0]:
            self.lowest = (risk, step)
            return None
        low, when = self.lowest
        guess = entry["compared"]
        # without a constant guess to compare with, a risk near zero would be a scale of nothing
        if guess is None or risk < RISEN * low or risk - low < CLIMB * guess:
            return None
        return Alarm(
            "risk",
            f"the risk has climbed from {low:.3g} at step {when} to {risk:.3g}, that of a constant guess is {guess:.3g}. "
            "Expect divergence: lower the step, or go back to a checkpoint",
        )


def _curvature(entry: dict[str, Any] | None, momentum: float) -> Alarm | None:
    ratio = least_ratio(entry)
    if entry is None or ratio is None or growth(ratio, momentum) < GROWTH:
        return None
    return Alarm(
        "curvature",
        f"the step is {ratio:.2g} times the largest stable one (sharpness {entry['value']:.3g}, {entry['theory']} is "
        f"{entry['compared']:.3g}): one step multiplies a deviation along the sharpest direction by "
        f"{growth(ratio, momentum):.2g}. Expect divergence: lower the step, or warm it up",
    )


def _batches(entry: dict[str, Any] | None) -> Alarm | None:
    ratio = least_ratio(entry)
    if entry is None or ratio is None or ratio < BATCH:
        return None
    return Alarm(
        "batches",
        f"the step is {ratio:.2g} times the largest that lowers the loss of its own batch (batch sharpness "
        f"{entry['value']:.3g}, {entry['theory']} is {entry['compared']:.3g}). Expect divergence: lower the step, or take "
        "larger batches",
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
