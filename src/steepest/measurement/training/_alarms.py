"""What a warning of a monitor is."""

from enum import StrEnum
from typing import NamedTuple


class Rule(StrEnum):
    """What an alarm rests on."""

    CURVATURE = "curvature"
    BATCHES = "batches"
    RISK = "risk"
    LOSSES_CLIMB = "losses climb"
    LOSSES_LEAP = "losses leap"
    BAD_BATCH = "bad batch"
    UPDATE = "update"
    STRIDE = "stride"
    NOT_FINITE = "not finite"


class Alarm(NamedTuple):
    """A sign that the training is about to be lost."""

    rule: Rule
    text: str
    """What was seen and what to try, in one or two sentences."""
