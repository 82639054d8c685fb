"""What the trials of a claim came to: verdicts, their counts, where in the scope it holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from steepest.core.panels import Panel
from steepest.core.records import plain
from steepest.core.words import CRASHED, Verdict
from steepest.engine.sweeps import Record, stored_points
from steepest.engine.trials._plan import RunKind, TrialPlan, TrialRun
from steepest.engine.trials._regions import FieldMap, where_it_holds
from steepest.engine.trials._tally import Tally


@dataclass(frozen=True)
class TrialRow:
    """One run with what became of it.

    Attributes:
        run: what was asked.
        verdict: of the run; ``CRASHED`` where it could not be computed, empty where nobody has tried yet.
        reason: of the verdict, in one sentence.
        command: what to type to see it in detail.
    """

    run: TrialRun
    verdict: str
    reason: str
    command: str

    def to_json(self) -> dict[str, Any]:
        """Return the run with its verdict."""
        return plain(
            {
                "kind": self.run.kind,
                "seed": self.run.seed,
                "fields": self.run.fields,
                "verdict": self.verdict,
                "reason": self.reason,
                "command": self.command,
            }
        )


@dataclass(frozen=True)
class Trials:
    """What the trials of a claim came to.

    Attributes:
        plan: what was tried.
        records: for each run of the plan, in its order, the record of what was computed, or None where nothing is yet.
    """

    plan: TrialPlan
    records: tuple[Record | None, ...]

    @property
    def claim(self) -> str:
        """The claim's name."""
        return self.plan.claim

    @property
    def version(self) -> int:
        """The claim's version."""
        return self.plan.version

    @cached_property
    def rows(self) -> tuple[TrialRow, ...]:
        """All runs with their verdicts: fresh seeds first, then settings."""
        both = zip(self.plan.runs, self.records, strict=True)
        return tuple(self._row(run, record or {}) for run, record in both)

    def _row(self, run: TrialRun, record: Mapping[str, Any]) -> TrialRow:
        command = self.plan.command_of(run)
        return TrialRow(run, record.get("verdict", ""), record.get("reason", ""), command)

    @property
    def exceptions(self) -> tuple[TrialRow, ...]:
        """The runs that were tried and do not hold, failures first, then crashes, undecided, out of range."""
        order = (Verdict.FAILS, CRASHED, Verdict.INCONCLUSIVE, Verdict.OUT_OF_RANGE)
        return tuple(row for verdict in order for row in self.rows if row.verdict == verdict)

    def tally(self, kind: RunKind) -> Tally:
        """Return how many of the fresh seeds, or of the settings, came to each verdict."""
        return Tally.of(row.verdict for row in self.rows if row.run.kind is kind)

    @property
    def seeds(self) -> Tally:
        """How many fresh seeds came to each verdict."""
        return self.tally(RunKind.SEED)

    @property
    def settings(self) -> Tally:
        """How many random settings came to each verdict."""
        return self.tally(RunKind.SETTING)

    @property
    def missing(self) -> int:
        """How many runs nobody has computed yet."""
        return self.seeds.missing + self.settings.missing

    @cached_property
    def maps(self) -> tuple[FieldMap, ...]:
        """Where along each field of its scope the claim holds; nothing without a setting that was tried."""
        tried = [row for row in self.rows if row.run.kind is RunKind.SETTING and row.verdict]
        if not tried:
            return ()
        fields = [row.run.fields for row in tried]
        return where_it_holds(self.plan.scope, fields, [row.verdict for row in tried])

    @property
    def panels(self) -> tuple[Panel, ...]:
        """A panel for each field that has an axis."""
        return tuple(scope_map.panel for scope_map in self.maps if scope_map.panel is not None)

    def to_json(self) -> dict[str, Any]:
        """Return counts, intervals, the map of the scope and every run as a JSON-ready object."""
        plan = self.plan
        return {
            "claim": self.claim,
            "version": self.version,
            "preset": plan.preset,
            "command": plan.command,
            "scope": {name: scope.to_json() for name, scope in plan.scope.items()},
            "refused": plan.draws.refused,
            "given_up": plan.given_up,
            "seeds": self.seeds.to_json(),
            "settings": self.settings.to_json() if plan.scope else None,
            "where": [scope_map.to_json() for scope_map in self.maps],
            "runs": [row.to_json() for row in self.rows],
        }


def gather(plan: TrialPlan, out: Path) -> Trials:
    """Return the runs of a plan that are in the store."""
    return Trials(plan, stored_points(plan, out))
