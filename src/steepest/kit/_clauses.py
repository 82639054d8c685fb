"""The clauses of a claim's first sentence, each with the verdict of the checks that judge it."""

from collections.abc import Mapping, Sequence
from typing import Any

from steepest.core.arrays import Observation, Prediction
from steepest.core.checks import Check
from steepest.core.laws import CONSISTENT, CONTRADICTED, LIMIT, NOT_TESTED, Clause, LawCheck
from steepest.core.words import Verdict
from steepest.kit._claim import ids_of
from steepest.kit._literal import literals_of, verdict_of

_WORST_FIRST = (Verdict.FAILS, Verdict.INCONCLUSIVE, Verdict.HOLDS)
_OF_LITERALS = {Verdict.FAILS: CONTRADICTED, Verdict.INCONCLUSIVE: LIMIT}


def clauses(
    claim: Any, checks: Sequence[Check], predicted: Prediction, observed: Observation
) -> tuple[Clause, ...]:
    """Return the clauses with their verdicts; none where a claim does not say its sentence in clauses.

    A clause holds if all its checks do and count, none of them is a bound with room, and its numbers in the place of
    the law hold too. One of whose checks these fields leave one out is not tested, unless another of them fails.
    """
    if not isinstance(claim.says, Mapping):
        return ()
    by_id = {check.id: check for check in checks}
    made = []
    for text, named in claim.says.items():
        ids = ids_of(named)
        judging = [by_id[id] for id in ids if id in by_id]
        verdict = _verdict(judging, all_there=len(judging) == len(ids))
        literals = literals_of(named)
        if verdict == Verdict.HOLDS.value and literals:
            by_numbers = verdict_of(claim, literals, predicted, observed)
            verdict = _OF_LITERALS.get(by_numbers, verdict)
        made.append(Clause(text, ids, verdict))
    return tuple(made)


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
