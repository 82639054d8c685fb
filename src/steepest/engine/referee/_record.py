"""What the record of a result shows by itself: bounds with room, points for intervals, clauses without a check."""

import math
import re
from collections.abc import Iterator, Mapping

from steepest.core.checks import Check
from steepest.core.intervals import Basis
from steepest.core.laws import ROOM, room
from steepest.core.words import Verdict
from steepest.engine.referee._bench import Bench
from steepest.engine.referee._findings import Finding, Flaw, Severity
from steepest.kit import literals_of

NOTICES = 0.5
"""Relative error of a headline's prediction that must be noticed."""
EXACT = ("agreement", "search")
"""Kinds of check of which one number is the whole of what was measured."""
UNIVERSAL = re.compile(
    r"\bnever\b|\balways\b|\bevery\b|\bany\b|\ball\b|\beach\b|\bwhat(?:so)?ever\b"
    r"|\b(?:just|only|exactly) (?:when|if|where)\b|\bno\b.+?\b(?:is|are|has|have)\b"
    r"|\b(?:is|are) no\b"
    r"|\bfrom\b.+?\bon\b",
    re.IGNORECASE,
)
"""Words of a sentence that one exception refutes."""
POWER = re.compile(r"∝|\^\(?[−\-]?[\d½¼¾]|[²³⁴⁻½]|√|(?<![\w/])1/\w|≈|\babout \d")
"""Signs of a power or of a number that a clause states of its law."""


def read_record(bench: Bench) -> Iterator[Finding]:
    """Yield what needs no wrong arrays: checks, clauses and traced functions of the result as it stands."""
    for check in bench.own.values():
        yield from _power(bench, check)
        yield from _width(bench, check)
    yield from _clauses(bench)


def find_shared(bench: Bench, functions: tuple[str, ...]) -> Iterator[Finding]:
    """Yield the functions that prediction and observation both call, where the claim gives no reason for them."""
    reasons: Mapping[str, str] = getattr(bench.claim, "shared", {})
    silent = [name for name in functions if not reasons.get(name)]
    if silent:
        numbers = {"functions": silent}
        # where the result knows of none, a tiny run was traced
        tiny = "" if bench.result.shared or not bench.claim.tiny else " --preset tiny --force"
        again = _command(bench, f"{tiny} --json")
        yield Finding(Flaw.SHARED_CODE, Severity.WEAK, numbers=numbers, reproduce=again)


def _power(bench: Bench, check: Check) -> Iterator[Finding]:
    """Yield a headline check that a prediction far off would pass."""
    if check.id not in bench.headline or check.verdict is not Verdict.HOLDS:
        return
    if room(check) > ROOM:
        numbers = {"room": room(check), "bound": check.predicted, "measured": check.measured}
        yield Finding(
            Flaw.BOUND_WITH_ROOM, Severity.WEAK, "", "", (check.id,), numbers, _command(bench)
        )
        return
    error = _relative_error(check)
    if error > NOTICES:
        numbers = {"notices": error, "predicted": check.predicted}
        yield Finding(
            Flaw.NOTICES_LITTLE, Severity.WEAK, "", "", (check.id,), numbers, _command(bench)
        )


def _relative_error(check: Check) -> float:
    """The smallest error that a check would notice, relative to what is predicted; NaN where nothing is."""
    if check.kind in (*EXACT, "order") or check.predicted == 0:
        return math.nan
    return check.notices / abs(check.predicted) if check.kind == "exponent" else check.notices


def _width(bench: Bench, check: Check) -> Iterator[Finding]:
    """Yield an interval that is a point although something was repeated."""
    interval = check.interval
    repeated = interval.basis is not Basis.EXACT and check.kind not in EXACT
    if repeated and interval.low == interval.high:
        stated = check.id in bench.headline
        worst = Severity.WEAK if interval.basis is Basis.RANGE else Severity.SEVERE
        severity = (
            worst
            if stated
            else {Severity.SEVERE: Severity.WEAK, Severity.WEAK: Severity.NOTE}[worst]
        )
        numbers = {"value": interval.low, "how": interval.how}
        again = _command(bench)
        yield Finding(Flaw.NO_WIDTH, severity, "", "", (check.id,), numbers, again)


def _clauses(bench: Bench) -> Iterator[Finding]:
    """Yield clauses that nothing tests, and universal words that no search tests."""
    clauses = bench.result.clauses
    again = _command(bench)
    for clause in clauses:
        if not any(id in bench.own for id in clause.checks):
            numbers = {"clause": clause.text}
            yield Finding(Flaw.CLAUSE_NOT_TESTED, Severity.NOTE, numbers=numbers, reproduce=again)
        else:
            yield from _search(bench, clause.text, clause.checks)
            yield from _literal(bench, clause.text)
    about = bench.result.about
    # a line for each part that no clause has, so that no word is sought across what stands between
    beside = about["says"]
    for clause in clauses:
        beside = beside.replace(clause.text, "\n")
    for text in (beside, about["statement"]):
        yield from _search(bench, text, tuple(bench.own))


def _search(bench: Bench, text: str, ids: tuple[str, ...]) -> Iterator[Finding]:
    words = [match[0] for match in UNIVERSAL.finditer(text)]
    searched = any(bench.own[id].kind == "search" for id in ids if id in bench.own)
    if words and not searched:
        numbers = {"words": words, "clause": " … ".join(part.strip() for part in text.split("\n"))}
        again = f'from steepest.engine.referee import bench\nbench("{bench.target}").kinds'
        yield Finding(Flaw.NO_SEARCH, Severity.NOTE, numbers=numbers, reproduce=again)


def _literal(bench: Bench, text: str) -> Iterator[Finding]:
    """Yield a clause that states powers or numbers which nobody put in the place of the law."""
    signs = list(dict.fromkeys(match[0] for match in POWER.finditer(text)))
    if signs and not literals_of(bench.claim.says[text]):
        numbers = {"signs": signs, "clause": text}
        again = _command(bench, " --json")
        yield Finding(Flaw.NUMBER_NOT_JUDGED, Severity.NOTE, numbers=numbers, reproduce=again)


def _command(bench: Bench, options: str = "") -> str:
    return f"steepest run {bench.target}{options}"
