"""The words and signs of verdicts: the one table that terminal, notebooks and pages read."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What a check, or a whole claim, comes to."""

    HOLDS = "holds"
    FAILS = "fails"
    INCONCLUSIVE = "inconclusive"
    OUT_OF_RANGE = "out-of-range"


CRASHED = "crashed"
"""In the place of a verdict: the experiment could not be computed."""
STALE = "stale"
"""Beside a verdict: it was obtained with other code or other versions than those that are here."""


@dataclass(frozen=True)
class Look:
    """How a verdict is shown.

    Attributes:
        word: in a sentence.
        sign: one character, where there is room for no more.
        plain: the sign on a terminal without Unicode.
        colour: of a terminal.
    """

    word: str
    sign: str
    plain: str
    colour: str


LOOKS = {
    "holds": Look("holds", "✓", "+", "green"),
    "fails": Look("fails", "✗", "x", "red"),
    "inconclusive": Look("inconclusive", "?", "?", "yellow"),
    "out-of-range": Look("out of range", "–", "-", "blue"),
    CRASHED: Look("crashed", "!", "!", "red"),
}


def word(verdict: str) -> str:
    """Return a verdict's word in a sentence.

    >>> word("out-of-range")
    'out of range'
    """
    return LOOKS[verdict].word


def duration(seconds: float) -> str:
    """Return a time as people say it.

    >>> duration(200)
    '3.3 min'
    """
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.2g} min" if seconds < 6000 else f"{seconds / 3600:.2g} h"
