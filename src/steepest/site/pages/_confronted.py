"""A claim beside wrong theories and other worlds: numbers of the same place, and what the data leave open."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from steepest.core.checks import Check, Rejection
from steepest.core.laws import At, LawCheck, Null
from steepest.engine.results import Result

MOST = 6
"""Checks that are shown of a rival or a control; the page's data have all."""


def confronted(
    wrong: Rejection, result: Result
) -> tuple[Rejection, list[tuple[Check, Check]], int]:
    """Return a rival or a control, the claim's checks beside its own where the two differ, and how many more there are.

    Of a law over axes the numbers of the claim are those of the point that is shown of the other.
    """
    of_claim = {check.id: check for check in result.checks}
    pairs = []
    for check in wrong.checks:
        mine = of_claim.get(check.id)
        # NaN differs from itself, its name does not
        if mine and (repr(replace(mine, challenged_by=())) != repr(check) or check.id in wrong.by):
            pairs.append((at_the_point_of(check, mine), check))
    pairs.sort(key=lambda pair: pair[1].id not in wrong.by)  # those that tell them apart first
    return wrong, pairs[:MOST], len(pairs[MOST:])


def at_the_point_of(shown: Check, mine: Check) -> Check:
    """Return a check with the numbers that it has where another check of the same law shows its own."""
    if not isinstance(shown, LawCheck) or not isinstance(mine, LawCheck):
        return mine
    place = next((at.where for at in shown.points if _is_shown(at, shown)), None)
    point = next((at for at in mine.points if at.where == place), None)
    return (
        mine if point is None else replace(mine, predicted=point.predicted, measured=point.measured)
    )


def _is_shown(at: At, check: Check) -> bool:
    """Whether a check's numbers are those of a point; by their names, as NaN differs from itself."""
    return repr((at.predicted, at.measured)) == repr((check.predicted, check.measured))


def not_judged(result: Result) -> Iterator[tuple[str, str]]:
    """Yield what the data of a result leave open of its laws, in words, each with the reason that the claim gives."""
    left = [null for null in result.nulls if not null.rejected]
    sizes = ("larger", "smaller")
    for law in dict.fromkeys(null.law for null in left):
        of_law = [null for null in left if null.law == law]
        name = _name(law, result.checks)
        if {null.kind for null in of_law} >= set(sizes):
            yield f"how large {name} is", _reason(of_law, sizes)
            of_law = [null for null in of_law if null.kind not in sizes]
        for null in of_law:
            yield _words(null, name), null.accepted


def _name(law: str, checks: Sequence[Check]) -> str:
    """Return what readers know a law by: the first check that judges it, else its array."""
    labels = [check.name for check in checks if isinstance(check, LawCheck) and check.law == law]
    return f"“{labels[0]}”" if labels else f"`{law}`"


def _reason(nulls: Sequence[Null], kinds: Sequence[str]) -> str:
    return "; ".join(
        dict.fromkeys(null.accepted for null in nulls if null.kind in kinds and null.accepted)
    )


def _words(null: Null, name: str) -> str:
    """Return what is left open if a wrong law is not rejected."""
    return {
        "larger": f"{name} from a law half as large again",
        "smaller": f"{name} from a law of two thirds its size",
        "flat": f"whether {name} depends on `{null.axis}` at all",
        "halved": f"how much {name} depends on `{null.axis}`",
        "reversed": f"whether {name} rises or falls with `{null.axis}`",
        "exchanged": f"which `{null.axis}` has which {name}",
        "steeper": f"{name} from a law that is steeper in `{null.axis}` by a square root",
        "shallower": f"{name} from a law that is shallower in `{null.axis}` by a square root",
    }[null.kind]
