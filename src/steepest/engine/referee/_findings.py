"""What a referee finds, as data: no sentences, which are made where they are shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from steepest.core.records import plain
from steepest.core.words import Verdict


class Severity(StrEnum):
    """How much a finding weighs."""

    SEVERE = "severe"
    WEAK = "weak"
    NOTE = "note"


class Flaw(StrEnum):
    """What was found; the id of a finding in JSON."""

    FAILS = "fails-at-setting"
    CRASHES = "crashes-at-setting"
    UNDECIDED = "undecided-at-setting"
    LAW_NOT_TOLD = "law-not-told"
    IDENTITY = "identity"
    NO_WIDTH = "interval-without-width"
    WORLD_NOT_TOLD = "world-not-told"
    MEAN_ALONE = "mean-alone"
    SIZE_NOT_TOLD = "size-not-told"
    CHEAP_NULL = "cheap-null"
    BOUND_WITH_ROOM = "bound-with-room"
    NOTICES_LITTLE = "notices-little"
    SHARED_CODE = "shared-code"
    CLAUSE_NOT_TESTED = "clause-not-tested"
    NO_SEARCH = "no-search"
    NUMBER_NOT_JUDGED = "number-not-judged"
    ONLY_DRAWN = "only-drawn"
    NOTHING_JUDGED = "nothing-judged"


@dataclass(frozen=True)
class Finding:
    """One weakness of a claim.

    Attributes:
        id: what was found.
        severity: how much it weighs.
        array: the predicted or observed array, where it is about one.
        axis: the axis of that array, where it is about one.
        checks: ids of the checks that it is about.
        numbers: what was found in figures and ids, ready for JSON; which ones depends on ``id``.
        reproduce: a command, or lines of Python, that show it again.
    """

    id: Flaw
    severity: Severity
    array: str = ""
    axis: str = ""
    checks: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)
    reproduce: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return its form in JSON."""
        return plain(vars(self))


@dataclass(frozen=True)
class SettingRun:
    """One run at other settings than the preset's.

    Attributes:
        changes: the fields that differ from the preset.
        place: ``"inside"`` or ``"outside"`` the claim's scope; ``"off the preset"`` where it states no scope.
        verdict: what it came to; None where it crashed.
        reason: of the verdict, or of the crash.
        command: what to type to get it again.
        seconds: wall time.
    """

    changes: Mapping[str, Any]
    place: str
    verdict: Verdict | None
    reason: str
    command: str
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return its form in JSON."""
        return plain(vars(self))


@dataclass(frozen=True)
class Review:
    """What a referee came to.

    Attributes:
        claim: its name.
        says: its first sentence.
        verdict: of the result that was read.
        preset: of that result.
        seed: of that result.
        findings: the worst first.
        judged: how many wrong predictions and wrong observations were put before the judge.
        runs: the runs at other settings.
        seconds: wall time of it all, without the result that was read.
    """

    claim: str
    says: str
    verdict: Verdict
    preset: str
    seed: int
    findings: tuple[Finding, ...]
    judged: int
    runs: tuple[SettingRun, ...]
    seconds: float

    @property
    def severe(self) -> bool:
        """Whether a severe finding is among them."""
        return any(finding.severity is Severity.SEVERE for finding in self.findings)

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """Return the findings of one severity."""
        return tuple(finding for finding in self.findings if finding.severity is severity)

    def to_json(self) -> dict[str, Any]:
        """Return its form in JSON."""
        parts = {
            "findings": [finding.to_json() for finding in self.findings],
            "runs": [run.to_json() for run in self.runs],
        }
        return plain({**vars(self), **parts})


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Return findings with the worst first, and those of one kind together."""
    severities = list(Severity)
    flaws = list(Flaw)
    key = lambda finding: (severities.index(finding.severity), flaws.index(finding.id))
    return tuple(sorted(findings, key=key))
