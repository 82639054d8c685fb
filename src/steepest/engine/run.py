"""Run one claim: setting, hypotheses, prediction, observation, judgement, rivals."""

import inspect
import platform
import re
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

from steepest import __version__, catalogue
from steepest.catalogue import Entry
from steepest.core.arrays import Observation, Prediction
from steepest.core.checks import Rival
from steepest.core.devices import check_device
from steepest.core.errors import UserError
from steepest.core.experiment import seeded
from steepest.core.fields import LARGEST_SEED, field_type
from steepest.core.hypotheses import Hypothesis
from steepest.core.precision import arithmetic
from steepest.core.records import canonical_digest
from steepest.core.scope import meanings as meanings_of
from steepest.core.scope import scope_of
from steepest.engine.commands import run_command
from steepest.engine.fingerprint import Stamp, stamp
from steepest.engine.results import Result
from steepest.engine.shared import Shared
from steepest.engine.store import Question, Store
from steepest.engine.threads import one_thread
from steepest.kit import Claim, Judgement, Key

Watch = Callable[[str], None]
"""Called with the name of each stage as it starts."""

PRESETS = ("quick", "full", "tiny")
PACKAGES = ("jax", "jaxlib", "numpy", "optax", "cvxpy-base", "scikit-learn")


@dataclass(frozen=True)
class Ready:
    """A claim with its fields, ready to run.

    Attributes:
        entry: where it comes from.
        claim: the claim itself.
        preset: ``"quick"``, ``"full"`` or ``"tiny"``.
        seed: the seed of every random number.
    """

    entry: Entry
    claim: Claim
    preset: str
    seed: int

    @property
    def question(self) -> Question:
        """What the store calls it."""
        claim = self.claim
        return Question(self.entry.name, claim.version, asdict(claim), self.preset, self.seed)


def ready(
    target: str | Path | Entry | Claim,
    preset: str = "quick",
    seed: int = 0,
    changes: Mapping[str, Any] | None = None,
) -> Ready:
    """Find a claim and set its fields.

    Args:
        target: a claim's name, the path of a file that holds one, its line in the catalogue, or a claim.
        preset: ``"quick"`` (seconds), ``"full"`` (minutes) or ``"tiny"`` (a test of the pipeline).
        seed: seed of every random number.
        changes: fields that differ from the preset.

    Raises:
        UserError: unknown claim, preset or field, or a value that a field does not take.
    """
    check_seed(seed)
    if isinstance(target, Claim):
        if changes:
            name = next(iter(changes))
            raise UserError(f"the claim has its fields already; set {name} where you make it")
        return Ready(entry_of(type(target)), target, preset, seed)
    entry = target if isinstance(target, Entry) else catalogue.entry(target)
    claim = build(catalogue.load(entry), preset, changes or {})
    return Ready(entry, claim, preset, seed)


def check_seed(seed: Any) -> None:
    """Refuse a seed that is no whole number of 31 bits."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= LARGEST_SEED:
        raise UserError(f"a seed is a whole number from 0 to {LARGEST_SEED}, got {seed!r}; try 0")


def entry_of(kind: type[Claim]) -> Entry:
    """Return the catalogue's line for a claim's class, wherever it was defined."""
    for entry in catalogue.catalogue().values():
        if entry.module == kind.__module__:
            return entry
    name = "-".join(word.lower() for word in re.findall("[A-Z][a-z0-9]*", kind.__name__))
    if name in catalogue.catalogue():
        raise UserError(f"the name {name!r} is taken; give the class {kind.__name__} another name")
    module = sys.modules.get(kind.__module__)
    text = inspect.getdoc(module) or inspect.getdoc(kind) or ""
    says = text.split("\n\n")[0].replace("\n", " ")
    path = Path(getattr(module, "__file__", None) or kind.__name__)
    return Entry(name, "files", says, f"class {kind.__qualname__}", path)


def run(
    target: str | Path | Entry | Claim,
    /,
    *,
    preset: str = "quick",
    seed: int = 0,
    store: Store | None = None,
    force: bool = False,
    watch: Watch = lambda stage: None,
    **changes: Any,
) -> Result:
    """Run a claim, or read it from the store if the same run is already there and no code has changed.

    Args:
        target: a claim's name, the path of a file that holds one, or a claim.
        preset: ``"quick"`` (seconds), ``"full"`` (minutes) or ``"tiny"``.
        seed: seed of every random number.
        store: where results are kept; None keeps nothing.
        force: run even if the result is in the store.
        watch: called with the name of each stage.
        **changes: fields of the claim that differ from the preset.

    Raises:
        UserError: unknown claim, preset or field, or a value out of its limits.

    >>> run("catapult", multiple=5.0).verdict.value  # out of the theorem's range: nothing is run
    'out-of-range'
    """
    return answer(ready(target, preset, seed, changes), store=store, force=force, watch=watch)


def answer(
    asked: Ready,
    *,
    store: Store | None = None,
    force: bool = False,
    watch: Watch = lambda stage: None,
) -> Result:
    """Return the result of a claim that is ready: stored, judged anew or computed, whichever is right."""
    if store is None:
        return execute(asked, watch)
    store.prepare()
    now = stamp(asked.entry, type(asked.claim))
    stored = None if force else store.find(asked.question)
    if stored is not None and now.same_experiment(stored.stamp, stored.versions):
        if stored.stamp["judgement"] == now.judgement:
            described = about(asked.entry, type(asked.claim))
            # its page was written anew, on which no number depends; in JSON a tuple is a list
            if canonical_digest(stored.about) != canonical_digest(described):
                stored = replace(stored, about=described)
                store.save(stored, asked.question)
            return replace(stored, how="stored")
        watch("judging anew")
        result = rejudge(asked, stored, now)
    else:
        result = execute(asked, watch)
    store.save(result, asked.question)
    return result


def build(kind: type[Claim], preset: str, changes: Mapping[str, Any]) -> Claim:
    """Return a claim at a preset with some fields changed.

    Raises:
        UserError: unknown preset or field, or a value that the field does not take.
    """
    if preset not in PRESETS:
        raise UserError(f"preset must be quick, full or tiny, got {preset!r}")
    for name in changes:
        field_type(kind, name)
    values = {"quick": {}, "full": kind.full, "tiny": kind.tiny}[preset]
    return kind(**{**values, **changes})


@dataclass(frozen=True)
class Sides:
    """What theory and experiment gave of one setting; arrays are empty where a hypothesis fails.

    Attributes:
        hypotheses: what the theorem assumes.
        predicted: the laws.
        observed: what was measured.
        rivals: wrong theories.
    """

    hypotheses: tuple[Hypothesis, ...]
    predicted: Prediction = field(default_factory=Prediction)
    observed: Observation = field(default_factory=Observation)
    rivals: tuple[Rival, ...] = ()

    @property
    def in_range(self) -> bool:
        """Whether all that the theorem assumes is so."""
        return all(hypothesis.holds for hypothesis in self.hypotheses)


def both_sides(
    claim: Claim, setting: Any, key: Key, watch: Watch, shared: Shared | None = None
) -> Sides:
    """Predict and observe where the hypotheses hold.

    Args:
        claim: the claim with its fields.
        setting: what theory and experiment may both see.
        key: of the experiment.
        watch: called with the name of each stage.
        shared: listens to what both sides call.
    """
    sides = Sides(tuple(claim.hypotheses(setting)))
    if not sides.in_range:
        return sides
    watch("predicting")
    with shared.predicting() if shared else nullcontext():
        predicted = claim.predict(setting)
    watch("observing")
    with shared.observing() if shared else nullcontext():
        observed = claim.observe(setting, key)
    watch("judging")
    rivals = tuple(claim.wrong_theories(setting, predicted))
    return Sides(sides.hypotheses, predicted, observed, rivals)


def judged(claim: Claim, sides: Sides) -> Judgement:
    """Judge both sides; nothing is judged where a hypothesis fails."""
    if not sides.in_range:
        return Judgement()
    return claim.judged(sides.predicted, sides.observed, sides.rivals)


def result_of(asked: Ready, sides: Sides, judgement: Judgement, **own: Any) -> Result:
    """Return the result of a run.

    Args:
        asked: the claim that ran.
        sides: what theory and experiment gave.
        judgement: what the judge says of them.
        **own: what else this run has to say, by attributes of :class:`Result`.
    """
    now = timestamp()
    verdict, reason = judgement.conclude(sides.hypotheses, asked.claim.headline)
    said = {
        "claim": asked.entry.name,
        "claim_version": asked.claim.version,
        "verdict": verdict,
        "reason": reason,
        "checks": judgement.checks,
        "hypotheses": sides.hypotheses,
        "run_conditions": judgement.run_conditions,
        "rivals": judgement.rivals,
        "controls": judgement.controls,
        "panels": judgement.panels,
        "preset": asked.preset,
        "seed": asked.seed,
        "versions": versions(),
        "observed_at": now,
        "judged_at": now,
        "predicted": sides.predicted,
        "observed": sides.observed,
        "rival_predictions": sides.rivals,
    }
    return Result(**{**said, **own})


def execute(asked: Ready, watch: Watch = lambda stage: None) -> Result:
    """Run a claim whatever the store holds; the precision is the claim's, and the caller's is restored."""
    check_device()
    start = time.perf_counter()
    claim = asked.claim
    shared = Shared(claim)
    with one_thread(), arithmetic(double=claim.precision == "float64"):
        for_setting, for_observation = seeded(asked.seed)
        watch("setting up")
        sides = both_sides(claim, claim.setting(for_setting), for_observation, watch, shared)
        judgement = judged(claim, sides)
    return result_of(
        asked,
        sides,
        judgement,
        nulls=judgement.nulls,
        clauses=judgement.says,
        resolutions=judgement.resolutions,
        shared=tuple(shared.functions),
        params=asdict(claim),
        changes=changed(asked),
        seconds=round(time.perf_counter() - start, 3),
        command=command(asked),
        about=about(asked.entry, type(claim)),
        stamp=stamp(asked.entry, type(claim)).to_json(),
    )


def rejudge(asked: Ready, stored: Result, now: Stamp) -> Result:
    """Judge the arrays of a stored result with the judgement that is here now; no experiment is run."""
    claim = asked.claim
    description = about(asked.entry, type(claim))
    fresh = {"about": description, "stamp": now.to_json(), "judged_at": timestamp()}
    if not stored.observed:  # a hypothesis failed, which is part of the experiment
        return replace(stored, **fresh, how="judged anew")
    with arithmetic(double=claim.precision == "float64"):
        rivals = stored.rival_predictions
        if stored.stamp["rivals"] != now.rivals:
            for_setting, _ = seeded(asked.seed)
            rivals = claim.wrong_theories(claim.setting(for_setting), stored.predicted)
        judgement = claim.judged(stored.predicted, stored.observed, rivals)
    verdict, reason = judgement.conclude(stored.hypotheses, claim.headline)
    return replace(
        stored,
        **fresh,
        checks=judgement.checks,
        run_conditions=judgement.run_conditions,
        rivals=judgement.rivals,
        controls=judgement.controls,
        nulls=judgement.nulls,
        clauses=judgement.says,
        resolutions=judgement.resolutions,
        panels=judgement.panels,
        verdict=verdict,
        reason=reason,
        rival_predictions=rivals,
        how="judged anew",
    )


def about(entry: Entry, kind: type[Claim]) -> dict[str, Any]:
    """Return what a claim says of itself: all that a page needs besides the result."""
    text = inspect.getdoc(sys.modules[kind.__module__]) or inspect.getdoc(kind) or ""
    meanings = meanings_of(kind)
    return {
        "says": entry.says,
        "explanation": text.partition("\n\n")[2],
        "experiment": inspect.getdoc(kind) or "",
        "kind": kind.kind,
        "statement": kind.statement,
        "source": kind.source,
        "corrections": list(kind.corrections),
        "remarks": list(kind.remarks),
        "history": [asdict(version) for version in kind.history],
        "scope": {name: scope.to_json() for name, scope in scope_of(kind).items()},
        "reasons_for_shared": dict(kind.shared),
        "chapter": entry.chapter,
        "origin": entry.origin,
        "target": entry.target,
        "meanings": {field.name: meanings.get(field.name, "") for field in fields(kind)},
        "precision": kind.precision,
        "diagram": list((kind.point or kind).diagram),
    }


def command(asked: Ready) -> str:
    """Return what to type to get a result again: only what differs from the preset is spelled out."""
    return run_command(asked.entry, asked.preset, asked.seed, changed(asked))


def changed(asked: Ready) -> dict[str, Any]:
    """Return the fields that differ from the preset."""
    usual = build(type(asked.claim), asked.preset, {})
    values = asdict(asked.claim)
    return {name: value for name, value in values.items() if value != getattr(usual, name)}


def timestamp() -> str:
    """Return the time, UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def versions() -> dict[str, str]:
    """Return the versions that a number may depend on, and the kind of device that computes, such as ``"cpu"``."""
    packages = {name: version(name) for name in PACKAGES}
    return {
        "python": platform.python_version(),
        "steepest": __version__,  # an editable installation may be older than the code that runs
        **packages,
        "device": jax.devices()[0].device_kind,
    }
