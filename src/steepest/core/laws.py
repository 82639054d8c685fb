"""Laws over axes: checks of every point, nulls along each axis, clauses of a sentence, and the verdict they allow.

What a claim in the form of ``steepest.kit`` has besides the checks, rivals and controls of :mod:`steepest.core.checks`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from steepest.core.checks import Check, Rejection, conclude
from steepest.core.hypotheses import Hypothesis
from steepest.core.records import number, plain
from steepest.core.words import Verdict

ROOM = 0.5
"""Relative room beyond which a bound is consistent with the data and not tested by them."""
CONSISTENT = "consistent"
"""Of a clause that only bounds with room judge."""
NOT_TESTED = "not tested"
"""Of a clause that nothing judges."""
LIMIT = "a limit, not reached"
"""Of a clause whose law holds, and whose own numbers, which its sentence states as a limit, these data leave open."""
CONTRADICTED = "contradicted"
"""Of a clause whose law holds, and whose own numbers its judge refutes."""


@dataclass(frozen=True)
class At:
    """One point of a law: what was predicted and measured there.

    Attributes:
        where: the coordinate on each axis, such as ``{"width": 512}``.
        predicted: the theory's number.
        measured: the experiment's, the mean over repetitions.
        low: lower end of an interval that holds at all points of the check at once.
        high: its upper end.
        least: lower end of the margin; ``-inf`` where there is none.
        most: upper end of the margin; ``inf`` where there is none.
        verdict: HOLDS, FAILS or INCONCLUSIVE at this point.
    """

    where: Mapping[str, Any]
    predicted: float
    measured: float
    low: float
    high: float
    least: float
    most: float
    verdict: Verdict

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "At":
        """Return the inverse of ``asdict``, where numbers that are not finite are null."""
        names = ("predicted", "measured", "low", "high")
        numbers = {name: number(record[name]) for name in names}
        least = number(record["least"], -math.inf)
        most = number(record["most"], math.inf)
        verdict = Verdict(record["verdict"])
        return cls(where=record["where"], least=least, most=most, verdict=verdict, **numbers)


@dataclass(frozen=True)
class LawCheck(Check):
    """One comparison of a law with what was measured along its axes; its numbers are those of the worst point.

    Attributes:
        points: every point that was judged; none where there is but one.
        law: the name of the predicted array.
        axes: the axes along which it was judged.
        also_passed_by: what each run has at hand, such as the number of steps, and passes this ranking as well.
    """

    points: tuple[At, ...] = ()
    law: str = ""
    axes: tuple[str, ...] = ()
    also_passed_by: tuple[str, ...] = ()

    @property
    def room(self) -> float:
        """The least room of its points (:func:`room`): where a bound is tight anywhere, it is tested there."""
        return (
            min(map(room_at, self.points)) if self.points and self.kind == "bound" else room(self)
        )

    @property
    def consistent(self) -> bool:
        """Whether it is a bound with so much room that it tests neither its constant nor its rate."""
        return self.room > ROOM

    def to_json(self) -> dict[str, Any]:
        """Return its form in JSON: that of a check, and its points."""
        return super().to_json() | {"consistent": self.consistent}


@dataclass(frozen=True)
class Null:
    """How a law fared that was made wrong by the program itself, along one of its axes.

    Attributes:
        law: the predicted array.
        axis: along which it was changed; empty of the whole law.
        kind: along an axis ``"flat"`` (its mean), ``"halved"`` (its root about the middle), ``"reversed"``,
            ``"steeper"`` or ``"shallower"`` (times x^±½), along an axis of names ``"exchanged"`` (each has its
            neighbour's); of the whole law ``"larger"`` or ``"smaller"`` (by a half).
        by: ids of the checks that the claim passes and that fail for it; empty where nothing tells it from the law.
        headline: whether a check of the claim's first sentence depends on this law.
        accepted: why these data cannot tell it, where the claim says so.
    """

    law: str
    axis: str
    kind: str
    by: tuple[str, ...]
    headline: bool = False
    accepted: str = ""

    @property
    def rejected(self) -> bool:
        """Whether some check tells it from the law."""
        return bool(self.by)

    @property
    def untold(self) -> str:
        """What these data do not tell, in words."""
        words = {
            "larger": f"{self.law} from 1.5 × {self.law}",
            "smaller": f"{self.law} from ⅔ × {self.law}",
            "flat": f"whether {self.law} depends on {self.axis}",
            "halved": f"how much {self.law} depends on {self.axis}",
            "reversed": f"whether {self.law} rises or falls with {self.axis}",
            "exchanged": f"which {self.axis} has which {self.law}",
            "steeper": f"{self.law} from {self.law} × {self.axis}^½",
            "shallower": f"{self.law} from {self.law} × {self.axis}^−½",
        }
        return words[self.kind]

    def to_json(self) -> dict[str, Any]:
        """Return its form in JSON."""
        return plain(asdict(self) | {"rejected": self.rejected})

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Null":
        """Return the inverse of :meth:`to_json`."""
        fields: dict[str, Any] = {name: record[name] for name in record if name != "rejected"}
        fields["by"] = tuple(record["by"])
        return cls(**fields)


@dataclass(frozen=True)
class Resolution:
    """How small an error in the size of a headline law the judge notices.

    Attributes:
        law: the predicted array.
        error: the smallest relative error ε that was tried and is noticed, as all larger ones are, of the law times
            1 + ε and divided by it; None where even half as much again passes.
    """

    law: str
    error: float | None

    def to_json(self) -> dict[str, Any]:
        """Return its form in JSON."""
        return asdict(self)


def noticed(resolutions: Sequence[Resolution]) -> str:
    """Return in words how small an error would be noticed in which law; empty where none would be.

    >>> noticed([Resolution("step", 0.1), Resolution("size", 0.1), Resolution("loss", 0.3), Resolution("time", None)])
    'an error of 10 % in step or size, of 30 % in loss'
    """
    laws: dict[float, list[str]] = {}
    for resolution in resolutions:
        if resolution.error is not None:
            laws.setdefault(resolution.error, []).append(resolution.law)
    of = [f"of {100 * error:.0f} % in {' or '.join(laws[error])}" for error in sorted(laws)]
    return f"an error {', '.join(of)}" if of else ""


@dataclass(frozen=True)
class Clause:
    """A part of a claim's first sentence, with the checks that judge it.

    Attributes:
        text: as it stands in the sentence.
        checks: their ids; empty where nothing tests it.
        verdict: the worst of theirs, or one of the four that a clause alone can have.
    """

    text: str
    checks: tuple[str, ...]
    verdict: str

    def to_json(self) -> dict[str, Any]:
        """Return its form in JSON."""
        return {"clause": self.text, "checks": list(self.checks), "verdict": self.verdict}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Clause":
        """Return the inverse of :meth:`to_json`."""
        return cls(record["clause"], tuple(record["checks"]), record["verdict"])


def room(check: Check) -> float:
    """Return how far a one-sided bound that holds is from its interval, relative to the bound; zero of other checks."""
    if check.kind != "bound" or check.verdict is not Verdict.HOLDS:
        return 0.0
    interval = check.interval
    distance = min(interval.low - check.margin.low, check.margin.high - interval.high)
    return _relative(distance, check.predicted)


def room_at(point: At) -> float:
    """Return the room of a bound at one of its points; zero where it does not hold."""
    if point.verdict is not Verdict.HOLDS:
        return 0.0
    return _relative(min(point.low - point.least, point.most - point.high), point.predicted)


def _relative(distance: float, to: float) -> float:
    if to == 0:
        return math.inf if distance > 0 else 0.0
    return distance / abs(to)


def check_from_json(record: Mapping[str, Any]) -> Check:
    """Return a check, of one number or along axes, from its form in JSON."""
    if "points" not in record:
        return Check.from_json(record)
    of_laws = ("points", "law", "axes", "also_passed_by", "consistent")
    check = Check.from_json({name: value for name, value in record.items() if name not in of_laws})
    return LawCheck(
        **vars(check),
        points=tuple(At.from_json(point) for point in record["points"]),
        law=record["law"],
        axes=tuple(record["axes"]),
        also_passed_by=tuple(record["also_passed_by"]),
    )


def rejection_from_json(record: Mapping[str, Any]) -> Rejection:
    """Return how a rival or a control fared, from its form in JSON."""
    checks = tuple(check_from_json(check) for check in record["checks"])
    return Rejection(**{**record, "by": tuple(record["by"]), "checks": checks})


def conclude_laws(
    hypotheses: Sequence[Hypothesis],
    checks: Sequence[Check],
    rivals: Sequence[Rejection],
    controls: Sequence[Rejection],
    headline: Sequence[str],
    nulls: Sequence[Null],
    clauses: Sequence[Clause] = (),
) -> tuple[Verdict, str]:
    """Return the verdict of a claim that speaks in laws, and the reason in one sentence.

    Besides what :func:`steepest.core.checks.conclude` asks, nothing holds of whose headline a check is left out, is a
    bound with room, or is failed by no changed world, or which a larger, smaller, flat, reversed or tilted law passes
    too, or whose sentence states numbers that its own judge refutes. Without a headline nothing could hold.

    Args:
        hypotheses: what was assumed of the setting and of the run.
        checks: with what challenges them.
        rivals: how the wrong theories fared.
        controls: how the changed worlds fared.
        headline: ids of the checks that judge the clauses of the first sentence.
        nulls: how laws fared that were made larger and smaller, flattened, reversed and tilted.
        clauses: of the first sentence, with their verdicts.
    """
    verdict, reason = conclude(hypotheses, checks, rivals, controls, headline)
    if verdict is not Verdict.HOLDS:
        return verdict, reason
    left_out = [id for id in headline if id not in {check.id for check in checks}]
    if left_out or not headline:
        missing = ", ".join(left_out) or "its first sentence"
        return Verdict.INCONCLUSIVE, f"no power: with these fields nothing judges {missing}"
    if weak := _without_power(checks, headline, controls):
        return Verdict.INCONCLUSIVE, f"no power: {weak}"
    if untold := [n.untold for n in nulls if n.headline and not n.rejected and not n.accepted]:
        reason = f"no power: these data do not tell {'; '.join(untold)}"
        return Verdict.INCONCLUSIVE, reason
    if refuted := [clause.text for clause in clauses if clause.verdict == CONTRADICTED]:
        quoted = ", ".join(f"“{text}”" for text in refuted)
        return Verdict.INCONCLUSIVE, f"the law holds, and the sentence says another: {quoted}"
    return verdict, reason


def _without_power(
    checks: Sequence[Check], headline: Sequence[str], controls: Sequence[Rejection]
) -> str:
    """Say which of the headline's checks no changed world fails, or are bounds with room; empty if none."""
    stated = [check for check in checks if check.id in headline]
    worlds = {control.id for control in controls}
    identities = [check.name for check in stated if not worlds & set(check.challenged_by)]
    if identities:
        return f"no changed world fails {', '.join(identities)}"
    roomy = [c.name for c in stated if isinstance(c, LawCheck) and c.consistent]
    if roomy:
        return f"bounds with room test neither constant nor rate: {', '.join(roomy)}"
    return ""
