"""Run one claim: setting, hypotheses, prediction, observation, judgement, rivals."""

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from importlib.metadata import version
from typing import Any

import jax

from steepest.arrays import Observation, Prediction
from steepest.claims import load
from steepest.claims._claim import Claim
from steepest.errors import UserError, nearest
from steepest.judging import Rejection, Verdict, conclude, reject
from steepest.results import Result
from steepest.store import Store, identity
from steepest.types import Key

Watch = Callable[[str], None]
"""Called with the name of each stage as it starts."""

PRESETS = ("quick", "full")


def run(
    name: str,
    *,
    preset: str = "quick",
    seed: int = 0,
    store: Store | None = None,
    again: bool = False,
    watch: Watch = lambda stage: None,
    **changes: Any,
) -> Result:
    """Run a claim, or read it from the store if the same run is already there.

    Args:
        name: the claim, such as ``"edge-of-stability"``.
        preset: ``"quick"`` (seconds) or ``"full"`` (minutes).
        seed: seed of every random number.
        store: where results are kept; None keeps nothing.
        again: run even if the result is in the store.
        watch: told the name of each stage.
        **changes: fields of the claim that differ from the preset.

    Raises:
        UserError: unknown claim, preset or field, or a value out of its limits.

    >>> run("catapult", multiple=5.0).verdict.value  # beyond the theorem: nothing is run
    'out-of-range'
    """
    claim = build(load(name), preset, changes)
    key = identity(name, claim.version, asdict(claim), preset, seed)
    if store is not None:
        store.prepare()
        if not again and (found := store.find(name, key)):
            return found
    result = execute(name, claim, preset, seed, watch)
    if store is not None:
        watch("drawing")
        store.save(result, key)
    return result


def build(kind: type[Claim], preset: str, changes: Mapping[str, Any]) -> Claim:
    """A claim at a preset with some fields changed."""
    if preset not in PRESETS:
        raise UserError(f"preset must be quick or full, got {preset!r}")
    known = [field.name for field in fields(kind)]
    for name in changes:
        if name not in known:
            raise UserError(f"{kind.__name__} has no field {name!r}; {nearest(name, known)}")
    values = {**(kind.full if preset == "full" else {}), **changes}
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})


def execute(name: str, claim: Claim, preset: str, seed: int, watch: Watch) -> Result:
    """Run a claim from its fields, whatever the store holds; the precision is the claim's, the setting restored."""
    start = time.perf_counter()
    predicted, observed, checks, rivals = Prediction(), Observation(), [], []
    with jax.enable_x64(claim.precision == "float64"):
        for_setting, for_observation = seeded(seed)
        watch("setting up")
        setting = claim.setting(for_setting)
        hypotheses = claim.hypotheses(setting)
        if all(h.holds for h in hypotheses):
            watch("predicting")
            predicted = claim.predict(setting)
            watch("observing")
            observed = claim.observe(setting, for_observation)
            watch("judging")
            hypotheses = [*hypotheses, *claim.premises(observed)]
            checks = claim.judge(predicted, observed)
            rivals = [_confront(claim, rival, checks, observed) for rival in claim.rivals(setting, predicted)]
    verdict, reason = conclude(hypotheses, checks, rivals)
    return Result(
        claim=name,
        claim_version=claim.version,
        verdict=Verdict(verdict),
        reason=reason,
        checks=tuple(checks),
        hypotheses=tuple(hypotheses),
        rivals=tuple(rivals),
        params=asdict(claim),
        preset=preset,
        seed=seed,
        seconds=round(time.perf_counter() - start, 3),
        versions=versions(),
        command=command(name, claim, preset, seed),
        predicted=predicted,
        observed=observed,
    )


def seeded(seed: int) -> tuple[Key, Key]:
    """The keys of a run's setting and of its observation."""
    for_setting, for_observation = jax.random.split(jax.random.key(seed))
    return for_setting, for_observation


def _confront(claim: Claim, rival: Any, own: list, observed: Observation) -> Rejection:
    return reject(rival, own, claim.judge(rival.prediction, observed))


def command(name: str, claim: Claim, preset: str, seed: int) -> str:
    """What to type to get a result again: only what differs from the preset is spelled out."""
    words = ["steepest", "run", name]
    words += [f"--preset {preset}"] * (preset != "quick") + [f"--seed {seed}"] * (seed != 0)
    usual = build(type(claim), preset, {})
    for field, value in asdict(claim).items():
        if value != getattr(usual, field):
            words.append(f"--{field} {' '.join(map(str, value)) if isinstance(value, tuple) else value}")
    return " ".join(words)


def versions() -> dict[str, str]:
    """The versions that a number may depend on."""
    packages = ("steepest", "jax", "jaxlib", "numpy", "optax", "diffrax", "cvxpy-base", "scikit-learn")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
