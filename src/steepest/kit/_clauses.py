"""The clauses of a claim's first sentence, each with the verdict of the checks that judge it."""

from collections.abc import Mapping, Sequence
from typing import Any

from steepest.core.checks import Check
from steepest.core.laws import Clause, LawCheck
from steepest.core.words import Verdict
from steepest.kit._claim import ids_of

CONSISTENT = "consistent"
NOT_TESTED = "not tested"
_WORST_FIRST = (Verdict.FAILS, Verdict.INCONCLUSIVE, Verdict.HOLDS)


def clauses(says: Any, checks: Sequence[Check]) -> tuple[Clause, ...]:
    """Return the clauses with their verdicts; none where a claim does not say its sentence in clauses.

    A clause holds if all its checks do and count, and none of them is a bound with room. One of whose checks these
    fields leave one out is not tested, unless another of them fails.
    """
    if not isinstance(says, Mapping):
        return ()
    by_id = {check.id: check for check in checks}
    return tuple(_clause(text, ids_of(ids), by_id) for text, ids in says.items())


def _clause(text: str, ids: tuple[str, ...], by_id: Mapping[str, Check]) -> Clause:
    judging = [by_id[id] for id in ids if id in by_id]
    return Clause(text, ids, _verdict(judging, all_there=len(judging) == len(ids)))


def _verdict(own: Sequence[Check], all_there: bool) -> str:
    if not own:
        return NOT_TESTED
    worst = next(verdict for verdict in _WORST_FIRST if verdict in {c.verdict for c in own})
    if worst is not Verdict.HOLDS:
        return worst.value
    if not all_there or not all(check.counts for check in own):
        return NOT_TESTED
    if any(isinstance(check, LawCheck) and check.consistent for check in own):
        return CONSISTENT
    return worst.value
