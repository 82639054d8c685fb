"""The result of one run as data: verdict, checks, arrays, panels, and its form as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steepest.core.arrays import Observation, Prediction
from steepest.core.checks import Check, Rejection, Rival, Verdict
from steepest.core.hypotheses import Hypothesis
from steepest.core.laws import Clause, Null, Resolution, check_from_json, rejection_from_json
from steepest.core.panels import Panel
from steepest.core.records import plain
from steepest.engine.records import check_record


@dataclass(frozen=True)
class Result:
    """What one run of one claim came to.

    Attributes:
        claim: the claim's name.
        claim_version: the version of the claim that ran.
        verdict: HOLDS, FAILS, INCONCLUSIVE or OUT_OF_RANGE.
        reason: the verdict's reason in one sentence.
        checks: predicted against measured, with intervals and margins.
        hypotheses: what the theorem assumes of the setting, and what was found.
        run_conditions: what it assumes of the run, and what was found.
        rivals: the wrong theories and how they fared.
        controls: the objects for which the law must not hold, and how they fared.
        params: the claim's fields.
        changes: those that differ from the preset.
        preset: ``"quick"``, ``"full"`` or ``"tiny"``.
        seed: the seed of every random number.
        seconds: wall time of the experiment and its judgement.
        versions: of the packages that matter.
        command: what to type to get this result again.
        about: what the claim says of itself: sentence, explanation, statement, source and so on, for pages.
        stamp: digests of the code that gave it: of the experiment, of the rivals and of the judgement.
        observed_at: when the experiment ended, UTC.
        judged_at: when it was judged, UTC; later than ``observed_at`` where only the judgement had changed.
        predicted: the theory's arrays (empty when out of range).
        observed: the experiment's arrays (empty when out of range).
        rival_predictions: what the rivals predict.
        panels: what the figure shows; empty when out of range.
        nulls: how the claim's own laws fared, flattened, reversed and tilted along their axes.
        clauses: the clauses of the first sentence with their verdicts; empty where the claim does not say them.
        shared: functions of the library and of the claim that prediction and observation both called.
        how: how this result was come by: ``"computed"``, ``"stored"`` or ``"judged anew"``; not kept.
    """

    claim: str
    claim_version: int
    verdict: Verdict
    reason: str
    checks: tuple[Check, ...]
    hypotheses: tuple[Hypothesis, ...]
    run_conditions: tuple[Hypothesis, ...]
    rivals: tuple[Rejection, ...]
    controls: tuple[Rejection, ...]
    params: Mapping[str, Any]
    changes: Mapping[str, Any]
    preset: str
    seed: int
    seconds: float
    versions: Mapping[str, str]
    command: str
    about: Mapping[str, Any] = field(repr=False)
    stamp: Mapping[str, str] = field(repr=False)
    observed_at: str = ""
    judged_at: str = ""
    predicted: Prediction = field(default_factory=Prediction, repr=False)
    observed: Observation = field(default_factory=Observation, repr=False)
    rival_predictions: tuple[Rival, ...] = field(default=(), repr=False)
    panels: tuple[Panel, ...] = field(default=(), repr=False)
    nulls: tuple[Null, ...] = field(default=(), repr=False)
    clauses: tuple[Clause, ...] = field(default=(), repr=False)
    resolutions: tuple[Resolution, ...] = field(default=(), repr=False)
    shared: tuple[str, ...] = field(default=(), repr=False)
    how: str = "computed"

    @property
    def arrays(self) -> dict[str, Any]:
        """All arrays: ``predicted/NAME`` and ``observed/NAME``."""
        sides = {"predicted": self.predicted, "observed": self.observed}
        return {
            f"{side}/{name}": values
            for side, arrays in sides.items()
            for name, values in arrays.items()
        }

    @property
    def assumptions(self) -> tuple[Hypothesis, ...]:
        """Everything that was assumed, of the setting and of the run."""
        return (*self.hypotheses, *self.run_conditions)

    @property
    def rejudged(self) -> bool:
        """Whether the judgement is younger than the experiment."""
        return self.judged_at != self.observed_at

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready object without arrays; numbers that are not finite become null."""
        record = {
            "claim": self.claim,
            "claim_version": self.claim_version,
            "verdict": self.verdict,
            "reason": self.reason,
            "checks": [check.to_json() for check in self.checks],
            "hypotheses": [hypothesis.to_json() for hypothesis in self.hypotheses],
            "run_conditions": [hypothesis.to_json() for hypothesis in self.run_conditions],
            "rivals": [rejection.to_json() for rejection in self.rivals],
            "controls": [rejection.to_json() for rejection in self.controls],
            "says": [clause.to_json() for clause in self.clauses],
            "laws": [null.to_json() for null in self.nulls],
            "resolutions": [resolution.to_json() for resolution in self.resolutions],
            "shared": list(self.shared),
            "scope": self.about.get("scope", {}),
            "params": self.params,
            "changes": self.changes,
            "preset": self.preset,
            "seed": self.seed,
            "seconds": self.seconds,
            "versions": self.versions,
            "command": self.command,
            "about": self.about,
            "stamp": self.stamp,
            "observed_at": self.observed_at,
            "judged_at": self.judged_at,
        }
        return plain(record)

    @classmethod
    def from_json(cls, record: Mapping[str, Any], **arrays: Any) -> "Result":
        """Return the inverse of :meth:`to_json`, given arrays, rivals' predictions and panels.

        Raises:
            KeyError: something is missing that readers of results rely on.
            TypeError: it is not of the type that they rely on.
        """
        check_record(record)
        read = {
            "verdict": Verdict(record["verdict"]),
            "checks": tuple(check_from_json(check) for check in record["checks"]),
            "hypotheses": tuple(Hypothesis.from_json(one) for one in record["hypotheses"]),
            "run_conditions": tuple(Hypothesis.from_json(one) for one in record["run_conditions"]),
            "rivals": tuple(rejection_from_json(rival) for rival in record["rivals"]),
            "controls": tuple(rejection_from_json(control) for control in record["controls"]),
            "nulls": tuple(Null.from_json(null) for null in record.get("laws", ())),
            "resolutions": tuple(Resolution(**of) for of in record.get("resolutions", ())),
            "clauses": tuple(Clause.from_json(clause) for clause in record.get("says", ())),
            "shared": tuple(record.get("shared", ())),
            "params": _tuples(record["params"]),
            "changes": _tuples(record["changes"]),
        }
        names = (
            "claim claim_version reason preset seed seconds versions command about stamp observed_at "
            "judged_at"
        )
        return cls(**{name: record[name] for name in names.split()}, **read, **arrays)


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as claims hold them: JSON's lists are tuples."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
