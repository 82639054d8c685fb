"""The result of one run: verdict, checks, arrays, and its form as JSON."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from steepest.arrays import Observation, Prediction
from steepest.judging import Check, Hypothesis, Interval, Rejection, Verdict


@dataclass(frozen=True)
class Result:
    """What one run of one claim came to.

    Attributes:
        claim: the claim's name.
        claim_version: the version of the claim's file that ran.
        verdict: HOLDS, FAILS, INCONCLUSIVE or OUT_OF_RANGE.
        reason: the verdict's reason in one sentence.
        checks: predicted against measured, with intervals and margins.
        hypotheses: what the theorem assumes and what was found.
        rivals: the wrong theories and how they fared.
        params: the claim's fields.
        preset: ``"quick"`` or ``"full"``.
        seed: the seed of every random number.
        seconds: wall time.
        versions: of the packages that matter.
        command: what to type to get this result again.
        predicted: the theory's arrays (empty when out of range).
        observed: the experiment's arrays (empty when out of range).
    """

    claim: str
    claim_version: int
    verdict: Verdict
    reason: str
    checks: tuple[Check, ...]
    hypotheses: tuple[Hypothesis, ...]
    rivals: tuple[Rejection, ...]
    params: Mapping[str, Any]
    preset: str
    seed: int
    seconds: float
    versions: Mapping[str, str]
    command: str
    predicted: Prediction = field(default_factory=Prediction, repr=False)
    observed: Observation = field(default_factory=Observation, repr=False)

    @property
    def arrays(self) -> dict[str, Any]:
        """All arrays: ``predicted/NAME`` and ``observed/NAME``."""
        both = (("predicted", self.predicted), ("observed", self.observed))
        return {f"{side}/{name}": values for side, found in both for name, values in found.items()}

    def panels(self) -> tuple[Any, ...]:
        """What the figure shows; empty when out of range."""
        from steepest.claims import load

        if not self.observed:
            return ()
        return load(self.claim)(**self.params).panels(self.predicted, self.observed)

    def figure(self) -> Any:
        """The claim's figure as a matplotlib ``Figure``."""
        from steepest.drawing import draw

        return draw(self.panels())

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready object without arrays; numbers that are not finite become null."""
        record = {
            "claim": self.claim,
            "claim_version": self.claim_version,
            "verdict": str(self.verdict),
            "reason": self.reason,
            "checks": [_check(c) for c in self.checks],
            "hypotheses": [asdict(h) for h in self.hypotheses],
            "rivals": [
                {
                    "name": r.name,
                    "rejected": r.rejected,
                    "by": r.by,
                    "why": r.why,
                    "checks": [_check(c) for c in r.checks],
                }
                for r in self.rivals
            ],
            "params": dict(self.params),
            "preset": self.preset,
            "seed": self.seed,
            "seconds": self.seconds,
            "versions": dict(self.versions),
            "command": self.command,
        }
        return _plain(record)

    @classmethod
    def from_json(cls, record: Mapping[str, Any], predicted: Prediction, observed: Observation) -> "Result":
        """The inverse of :meth:`to_json`, given the arrays."""
        return cls(
            claim=record["claim"],
            claim_version=record["claim_version"],
            verdict=Verdict(record["verdict"]),
            reason=record["reason"],
            checks=tuple(_read_check(c) for c in record["checks"]),
            hypotheses=tuple(Hypothesis(**{**h, "value": _number(h["value"])}) for h in record["hypotheses"]),
            rivals=tuple(
                Rejection(
                    r["name"],
                    r["rejected"],
                    tuple(r["by"]),
                    tuple(_read_check(c) for c in r["checks"]),
                    r["why"],
                )
                for r in record["rivals"]
            ),
            params={k: tuple(v) if isinstance(v, list) else v for k, v in record["params"].items()},
            preset=record["preset"],
            seed=record["seed"],
            seconds=record["seconds"],
            versions=record["versions"],
            command=record["command"],
            predicted=predicted,
            observed=observed,
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{c.name}</td><td>{c.predicted:.4g}</td><td>{c.measured:.4g}</td><td>{c.verdict}</td></tr>"
            for c in self.checks
        )
        head = "<tr><th>check</th><th>predicted</th><th>measured</th><th>verdict</th></tr>"
        return f"<b>{self.claim}: {self.verdict}</b> ({self.reason})<table>{head}{rows}</table>"


def _check(check: Check) -> dict[str, Any]:
    return {**asdict(check), "verdict": str(check.verdict)}


def _read_check(record: Mapping[str, Any]) -> Check:
    def interval(found: Mapping[str, Any], missing: tuple[float, float]) -> Interval:
        low, high = (m if found[e] is None else found[e] for e, m in zip(("low", "high"), missing, strict=True))
        return Interval(low, high, found["how"])

    return Check(
        **{
            **record,
            "measured": _number(record["measured"]),
            "interval": interval(record["interval"], (math.nan, math.nan)),
            "margin": interval(record["margin"], (-math.inf, math.inf)),
            "verdict": Verdict(record["verdict"]),
        }
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _plain(value: Any) -> Any:
    """Python's own types only, and null for what JSON cannot say."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
