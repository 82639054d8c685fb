"""The findings of a referee in words: the one place where terminal, page and JSON get their sentences from."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steepest.core.words import Verdict, word
from steepest.engine.referee import Finding, Flaw, Review, SettingRun, Severity

SIGNS = {Severity.SEVERE: "!", Severity.WEAK: "?", Severity.NOTE: "·"}
HEADINGS = {
    Severity.SEVERE: "Severe: the sentence could be wrong and the claim would hold",
    Severity.WEAK: "Weak: something is hardly tested",
    Severity.NOTE: "Notes: what a reader should know",
}
NOTHING = {
    Severity.SEVERE: "Nothing severe was found.",
    Severity.WEAK: "Nothing weak was found.",
    Severity.NOTE: "",
}
PLACES = {
    "inside": "inside its scope",
    "outside": "just outside its scope",
    "off the preset": "off the preset",
}
SIZES = {"x 0.9": "a tenth smaller", "x 1.1": "a tenth larger"}


@dataclass(frozen=True)
class SaidFinding:
    """A finding in words.

    Attributes:
        sign: of its severity.
        text: what was found, in a sentence without its full stop.
        evidence: the ids and numbers behind it; empty where the sentence has them.
        reproduce: a command, or lines of Python, that show it again.
    """

    sign: str
    text: str
    evidence: str
    reproduce: str


def said(finding: Finding) -> SaidFinding:
    """Return a finding in words."""
    text = SENTENCES[finding.id](finding)
    evidence = EVIDENCE.get(finding.id, _no_evidence)(finding)
    return SaidFinding(SIGNS[finding.severity], text, evidence, finding.reproduce)


def summary(review: Review) -> str:
    """Return how many findings there are of each severity, in words.

    >>> summary(Review("catapult", "", "holds", "quick", 0, (), 12, (), 0.1))
    'nothing severe, nothing weak, no notes'
    """
    numbers = {severity: len(review.of(severity)) for severity in Severity}
    severe, weak, notes = (numbers[severity] for severity in Severity)
    return ", ".join(
        (
            f"{severe} severe" if severe else "nothing severe",
            f"{weak} weak" if weak else "nothing weak",
            f"{notes} note{'s' * (notes != 1)}" if notes else "no notes",
        )
    )


def said_run(run: SettingRun) -> tuple[str, str]:
    """Return the setting of a run and what it came to, in words."""
    setting = f"{_changes(run.changes)}, {PLACES[run.place]}"
    if run.verdict is Verdict.HOLDS and run.place == "outside":
        return setting, f"{word(run.verdict.value)}, which is no fault: the scope may be wider"
    return setting, word(run.verdict.value) if run.verdict else "crashed"


def to_json(review: Review) -> dict[str, Any]:
    """Return a review in JSON, with each finding in words."""
    record = review.to_json()
    for entry, finding in zip(record["findings"], review.findings, strict=True):
        entry["text"] = said(finding).text
    return record


# ----------------------------------------------------------------------------------------- sentences


def _law(finding: Finding) -> str:
    kinds = [_kind(kind, finding.axis) for kind in finding.numbers["kinds"]]
    could = f"{finding.array} could be {_either(kinds)} along {finding.axis}"
    undecided = finding.numbers["undecided"]
    if len(finding.numbers["accepted"]) == len(kinds):
        return f"{could}: the claim says that its data cannot tell"
    if all(kind in undecided for kind in finding.numbers["kinds"]):
        return f"{could}: no check would fail, the claim would only be undecided"
    return f"{could}: no check would fail"


def _size(finding: Finding) -> str:
    sizes = _either([SIZES[kind] for kind in finding.numbers["kinds"]])
    return f"{finding.array} could be {sizes}: every check would agree as before"


def _mean(finding: Finding) -> str:
    checks = _list(finding.checks)
    judge = "judge" if len(finding.checks) > 1 else "judges"
    return f"{checks} {judge} the mean of {finding.array} over {finding.axis} alone"


def _identity(finding: Finding) -> str:
    arrays = _list(finding.numbers["arrays"])
    return f"{_list(finding.checks)} holds with noise in the place of {arrays}: it is an identity"


def _world(finding: Finding) -> str:
    kinds = finding.numbers["kinds"]
    if kinds == ["noise"]:
        return f"{_list(finding.checks)} holds with noise in the place of {finding.array}, one of what it reads"
    could = f"the measured {finding.array} could be {_either(kinds)} along {finding.axis}"
    return f"{could}: every check would agree as before"


def _null(finding: Finding) -> str:
    others = [_signed(null) for null in finding.numbers["nulls"]]
    return (
        f"{_list(finding.checks)} would hold for {_either(others)} in the place of {finding.array}"
    )


def _room(finding: Finding) -> str:
    room = _percent(finding.numbers["room"])
    return f"{_list(finding.checks)} is a bound with {room} of room: it tests neither constant nor rate"


def _notices(finding: Finding) -> str:
    error = _percent(finding.numbers["notices"])
    return f"{_list(finding.checks)} would notice no error below {error}"


def _shared(finding: Finding) -> str:
    functions = _list([name.rpartition(".")[2] for name in finding.numbers["functions"]])
    return f"prediction and observation both call {functions}: a mistake there could cancel"


def _clause(finding: Finding) -> str:
    return f"no check judges “{finding.numbers['clause']}”"


def _search(finding: Finding) -> str:
    words = _either([f"“{word}”" for word in dict.fromkeys(finding.numbers["words"])])
    return f"{words} needs a search for an exception, and no check is one"


def _number(finding: Finding) -> str:
    return f"“{finding.numbers['clause']}” states numbers that are not put in the place of the law by kit.literal"


def _width(finding: Finding) -> str:
    value = f"{finding.numbers['value']:.4g}"
    return f"the interval of {_list(finding.checks)} is a point, {value}"


def _drawn(finding: Finding) -> str:
    return f"no check reads the predicted {finding.array}: it is drawn at most"


def _fails(finding: Finding) -> str:
    return f"it fails at {_setting(finding)}, with all its hypotheses true"


def _crashes(finding: Finding) -> str:
    return f"it crashes at {_setting(finding)}"


def _undecided(finding: Finding) -> str:
    return f"it is undecided at {_setting(finding)}"


def _nothing(finding: Finding) -> str:
    return f"nothing was judged: the result is {word(finding.numbers['verdict'].value)}"


SENTENCES: Mapping[Flaw, Callable[[Finding], str]] = {
    Flaw.LAW_NOT_TOLD: _law,
    Flaw.SIZE_NOT_TOLD: _size,
    Flaw.MEAN_ALONE: _mean,
    Flaw.IDENTITY: _identity,
    Flaw.WORLD_NOT_TOLD: _world,
    Flaw.CHEAP_NULL: _null,
    Flaw.BOUND_WITH_ROOM: _room,
    Flaw.NOTICES_LITTLE: _notices,
    Flaw.SHARED_CODE: _shared,
    Flaw.CLAUSE_NOT_TESTED: _clause,
    Flaw.NO_SEARCH: _search,
    Flaw.NUMBER_NOT_JUDGED: _number,
    Flaw.NO_WIDTH: _width,
    Flaw.ONLY_DRAWN: _drawn,
    Flaw.FAILS: _fails,
    Flaw.CRASHES: _crashes,
    Flaw.UNDECIDED: _undecided,
    Flaw.NOTHING_JUDGED: _nothing,
}


# ------------------------------------------------------------------------------------------ evidence


def _law_evidence(finding: Finding) -> str:
    numbers = finding.numbers
    parts = [f"read by {_list(finding.checks)}"]
    undecided = {id for ids in numbers["undecided"].values() for id in ids}
    if undecided:
        parts.append(f"left undecided: {_list(sorted(undecided))}")
    parts += [
        f"{_kind(kind, finding.axis)}: fails {_list(ids)}"
        for kind, ids in numbers["failed_by"].items()
    ]
    parts += dict.fromkeys(numbers.get("accepted", {}).values())
    return "; ".join(parts)


def _size_evidence(finding: Finding) -> str:
    return f"read by {_list(finding.checks)}"


def _mean_evidence(finding: Finding) -> str:
    return f"holds with theory flat, and with {_list(finding.numbers['observed'])} flat"


def _width_evidence(finding: Finding) -> str:
    return str(finding.numbers["how"])


def _reason(finding: Finding) -> str:
    return str(finding.numbers["reason"])


def _sentence(finding: Finding) -> str:
    return f"“{finding.numbers['clause']}”"


def _names(finding: Finding) -> str:
    return ", ".join(finding.numbers["functions"])


def _no_evidence(finding: Finding) -> str:
    return ""


EVIDENCE: Mapping[Flaw, Callable[[Finding], str]] = {
    Flaw.LAW_NOT_TOLD: _law_evidence,
    Flaw.SIZE_NOT_TOLD: _size_evidence,
    Flaw.MEAN_ALONE: _mean_evidence,
    Flaw.WORLD_NOT_TOLD: _size_evidence,
    Flaw.NO_WIDTH: _width_evidence,
    Flaw.NO_SEARCH: _sentence,
    Flaw.SHARED_CODE: _names,
    Flaw.FAILS: _reason,
    Flaw.CRASHES: _reason,
    Flaw.UNDECIDED: _reason,
    Flaw.NOTHING_JUDGED: _reason,
}


# --------------------------------------------------------------------------------------------- words

MOST = 6


def _kind(kind: str, axis: str) -> str:
    return {"steeper": f"× {axis}^½", "shallower": f"× {axis}^−½"}.get(kind, kind)


def _either(words: Sequence[str]) -> str:
    """Return alternatives in words.

    >>> _either(["flat", "reversed", "steeper"])
    'flat, reversed or steeper'
    """
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _list(names: Sequence[str]) -> str:
    """Return names in words, no more than one can read."""
    shown = list(names[:MOST])
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _signed(null: str) -> str:
    return re.sub(r"^-", "minus ", null)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share < 10 else f"{share:.2g} times its size"


def _setting(finding: Finding) -> str:
    numbers = finding.numbers
    return f"{_changes(numbers['changes'])} ({PLACES[numbers['place']]})"


def _changes(changes: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_spelled(value)}" for name, value in changes.items())


def _spelled(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(_spelled(part) for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
