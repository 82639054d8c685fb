"""Run a claim on a reader's own network: the claim's judge, rivals and margins decide."""

import importlib
import inspect
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from steepest.catalogue import Entry, catalogue
from steepest.core.checks import Check
from steepest.core.devices import check_device
from steepest.core.errors import UserError
from steepest.core.experiment import seeded
from steepest.core.fields import field_type
from steepest.core.laws import LawCheck
from steepest.core.scope import meanings as meanings_of
from steepest.core.words import Verdict, duration
from steepest.engine.commands import spell
from steepest.engine.fingerprint import stamp
from steepest.engine.results import Result
from steepest.engine.run import Ready, Watch, about, both_sides, check_seed, judged, result_of
from steepest.files import import_file
from steepest.kit.subjects import Cost, Networks, OnSubject, Plainly, alone, claim_of
from steepest.measurement import Builder
from steepest.measurement.adapters import batch_gradient, quick_threads, states_kept

REPEATS = 3  # timings of each kind of work, of which the middle one counts
SLOW = 5.0  # seconds after which a single timing must do


@dataclass(frozen=True)
class Offer:
    """What a claim on a subject will take, as it is said before it starts.

    Attributes:
        cost: gradients, products, passes and steps.
        seconds: about how long they take here.
        networks: how many there are.
    """

    cost: Cost
    seconds: float
    networks: int

    @property
    def text(self) -> str:
        """Return it in words."""
        whole = self.cost.gradients + 2 * self.cost.products + self.cost.passes / 2
        parts = [f"about {_round(whole)} passes over your examples"] if whole else []
        parts += [f"{_round(self.cost.batches)} batches"] if self.cost.batches else []
        parts += (
            [f"{_round(self.cost.steps)} steps of your training at most"] if self.cost.steps else []
        )
        parts += [f"{_round(self.cost.builds)} calls of your function"] if self.cost.builds else []
        several = f"on {self.networks} networks" if self.networks > 1 else "on one network"
        return f"{', '.join(parts) or 'nothing'}, {several}: about {duration(self.seconds)}"


def available() -> list[str]:
    """Return the names of the claims that can be put to a reader's network."""
    return [name for name, entry in catalogue().items() if _source(entry).is_file()]


def version_of(entry: Entry) -> type[OnSubject]:
    """Return the version of a claim for subjects.

    Raises:
        UserError: a claim that has none, with what it is about.
    """
    path = _source(entry)
    if not path.is_file():
        from steepest.catalogue import load

        setting = (inspect.getdoc(load(entry)) or "objects of its own").split("\n\n")[0].rstrip(".")
        raise UserError(
            f"{entry.name} has no version for your network, as it is about objects of its own ({setting}); "
            f"those that have one: {', '.join(available())}"
        )
    if entry.module:
        head, _, last = entry.module.rpartition(".")
        name = "on_subject" if entry.path.name == "claim.py" else f"{last}_on_subject"
        module = importlib.import_module(f"{head}.{name}")
    else:
        module = import_file(path)
    (kind,) = (
        kind
        for kind in vars(module).values()
        if isinstance(kind, type)
        and issubclass(kind, OnSubject)
        and kind.__module__ == module.__name__
    )
    return kind


@states_kept()
def run_on(
    entry: Entry,
    source: "str | Builder | Callable[..., Any]",
    *,
    seed: int = 0,
    changes: Mapping[str, Any] | None = None,
    watch: Watch = lambda stage: None,
    agree: Callable[[Offer], bool] = lambda offer: True,
) -> Result | None:
    """Run a claim on what a reader's function builds.

    Args:
        entry: the claim's line in the catalogue.
        source: ``FILE.py:FUNCTION``, or a function; see ``steepest.measurement.Builder``.
        seed: of every random number; the networks are built with seeds of their own that follow from it.
        changes: fields of the claim that differ from its defaults here.
        watch: called with the name of each stage.
        agree: asked before the experiment whether it may take so long.

    Returns:
        The result, whose ``about["subject"]`` says what was asked and what was left out; None if ``agree`` said no.

    Raises:
        UserError: a claim without such a version, a field that has no meaning there, a function that lacks what the
            claim needs, whatever ``steepest.measure`` refuses.
    """
    check_seed(seed)
    check_device()
    kind = version_of(entry)
    changes = dict(changes or {})
    for name in changes:
        field_type(kind, name)
        if name not in kind.settable:
            raise UserError(
                f"--{name.replace('_', '-')} of {entry.name} has no meaning on your own network; there you may set "
                f"{', '.join(kind.settable)}"
            )
    builder = Builder.of(source)
    for need, why in kind.needs.items():
        if need not in builder.knobs and need not in PARTS:
            raise UserError(
                f"{entry.name} needs a function with {need}=…, {why}; {builder.where} has "
                f"{', '.join(builder.knobs) or 'no arguments'}"
            )
    claim = kind(**changes).on(builder, seed)
    with jax.enable_x64(True):  # the reader's code and networks keep their own precision
        for_setting, for_observation = seeded(seed)
        watch("building")
        networks = claim.setting(for_setting)
        _check_parts(entry, builder, kind, networks)
        claim = claim.fitted(networks)
        with quick_threads(networks.subjects[0]):
            watch("timing one pass")
            offer = price(claim, networks)
            if not agree(offer):
                return None
            begun = time.perf_counter()
            watch("preparing")
            networks = claim.prepare(networks, for_setting)
            claim = claim.fitted(networks)
            sides = both_sides(claim, networks, for_observation, watch)
            took = time.perf_counter() - begun
        judgement = judged(claim, sides)
    if claim.count == 1:
        judgement = replace(judgement, checks=alone(judgement.checks))
    assumed = claim.assumed(networks)
    subject = {
        "says": kind.says,
        "where": builder.where,
        "model": networks.subjects[0].name,
        "weights": networks.subjects[0].size,
        "examples": sum(count for _, count in networks.subjects[0].batches),
        "networks": claim.count,
        "seeded": claim.several,
        "left_out": dict(kind.left_out),
        "assumed": list(assumed),
        "notes": list(kind.notes),
        "plainly": plain_words(kind, judgement.checks),
        "expected_seconds": round(offer.seconds, 2),
        "took_seconds": round(took, 2),
        "cost": offer.text,
    }
    original = claim_of(kind)
    described = about(entry, original)
    described["meanings"] = _meanings(kind)
    described["subject"] = subject
    usual = kind()
    changed = {name: value for name, value in changes.items() if value != getattr(usual, name)}
    result = result_of(
        Ready(entry, claim, "quick", seed),
        sides,
        judgement,
        claim_version=original.version,
        params={name: value for name, value in asdict(claim).items() if name in kind.settable},
        changes=changed,
        seconds=round(took, 3),
        command=_command(entry, builder, seed, changed),
        about=described,
        stamp=stamp(entry, original).to_json(),
    )
    reason = said(result.verdict, result.reason, assumed, claim.several)
    return replace(result, reason=reason)


def said(verdict: Verdict, reason: str, assumed: tuple[str, ...], several: bool) -> str:
    """Return the verdict on a subject with its reason, in words that say no more than was found.

    >>> said(Verdict.FAILS, "disagrees: late sharpness", (), True)
    'does not hold here (disagrees: late sharpness)'
    >>> said(Verdict.HOLDS, "agrees in 2 challenged checks", ("it is trained by plain SGD",), False)
    'holds on this network only, if it is trained by plain SGD (agrees in 2 challenged checks)'
    """
    where = "here" if several else "on this network only"
    words = {
        Verdict.HOLDS: f"holds {where}",
        Verdict.FAILS: "does not hold here",
        Verdict.INCONCLUSIVE: "undecided here",
        Verdict.OUT_OF_RANGE: "out of range here",
    }[verdict]
    if verdict is Verdict.INCONCLUSIVE and reason.startswith("no power: "):
        words = "no power here"
        reason = reason.removeprefix("no power: ")
    if verdict is Verdict.HOLDS and assumed:
        words += f"{'' if several else ','} if {' and '.join(assumed)}"
    return f"{words} ({reason})"


def plain_words(kind: type[OnSubject], checks: Sequence[Check]) -> list[dict[str, str]]:
    """Return what was measured and what the law asks for, of each check on which a verdict rests.

    Args:
        kind: the version for subjects, which has the words.
        checks: that were judged; those that fail come first.

    Returns:
        lines of ``check``, the id, ``verdict`` and ``text``.
    """
    order = (Verdict.FAILS, Verdict.INCONCLUSIVE, Verdict.HOLDS)
    counted = sorted((at for at in checks if at.decides), key=lambda at: order.index(at.verdict))
    return [_plain(kind, check) for check in counted]


def _plain(kind: type[OnSubject], check: Check) -> dict[str, str]:
    """Say what was measured and what the law asks for, in plain words."""
    plainly = kind.plainly.get(check.id, Plainly(check.name))
    shown = plainly.shown
    margin = check.margin
    # an end that only excludes the number itself, such as 5e-324 for 0, is that number as it is shown
    ends = [shown(end) if math.isfinite(end) else end for end in (margin.low, margin.high)]
    wants = asked(margin.low, margin.high) if shown is float else asked(*ends)
    low, high = (shown(end) for end in (check.interval.low, check.interval.high))
    between = f" ({low:.3g} to {high:.3g})" if low < high else ""
    where = (
        f", {check.note}," if isinstance(check, LawCheck) and check.points and check.note else ""
    )
    text = (
        f"{plainly.what}{where} is {shown(check.measured):.3g}{between}; the law asks for {wants}"
    )
    return {"check": check.id, "verdict": str(check.verdict), "text": text}


def asked(least: float, most: float) -> str:
    """Return what a margin asks for, as people say it.

    >>> asked(-math.inf, 0.06895), asked(5e-324, math.inf), asked(1.26, 1.522)
    ('at most 0.0689', 'more than 0', '1.26 to 1.52')
    """
    if least == -math.inf:
        return f"at most {most:.3g}"
    if most == math.inf:
        return "more than 0" if 0 < least < 1e-300 else f"at least {least:.3g}"
    return f"{least:.3g} to {most:.3g}"


PARTS = ("train", "optimizer", "held_out", "features")
"""What the function may return, and some claims need."""


def _check_parts(entry: Entry, builder: Builder, kind: type[OnSubject], networks: Networks) -> None:
    """Refuse what was built if it lacks a part that the claim needs."""
    for part in PARTS:
        if part in kind.needs and getattr(networks.built[0], part) is None:
            raise UserError(
                f"{entry.name} needs {part!r} among what {builder.where} returns, {kind.needs[part]}"
            )


def price(claim: OnSubject, networks: Networks) -> Offer:
    """Return what a run will take here, from timings of single passes and steps."""
    cost = claim.cost(networks)
    subject = networks.subjects[0]
    vector = np.random.default_rng(0).standard_normal(subject.size).astype(subject.dtype)
    work = (
        (
            cost.gradients,
            lambda: subject.at(subject.values()).gradient(),
        ),  # other weights each time
        (cost.products, lambda: subject.products(vector)),
        (cost.passes, subject.outputs),
        (cost.batches, lambda: batch_gradient(subject, cost.batch, np.random.default_rng(0))),
    )
    seconds = sum(count * _timed(once) for count, once in work if count)
    if cost.steps:
        first, later = _steps(claim)
        seconds += len(networks) * first + cost.steps * later
    if cost.shapes:
        seconds += cost.shapes * _compiling(claim, networks)
    if cost.builds:
        seconds += cost.builds * _timed(claim.build)
    return Offer(cost, seconds, claim.count)


def _compiling(claim: OnSubject, networks: Networks) -> float:
    """Return how long a first gradient and product take on a network that shares no program with another."""
    first = networks.subjects[0]
    fresh = claim.attached(networks.built[0])
    fresh.batches = first.batches
    vector = fresh.values()
    begun = time.perf_counter()
    fresh.gradient()
    fresh.products(vector)
    return time.perf_counter() - begun


def _timed(once: Callable[[], Any]) -> float:
    """Return how long something takes that was done before."""
    once()
    times: list[float] = []
    while len(times) < REPEATS and sum(times) < SLOW:
        begun = time.perf_counter()
        once()
        times.append(time.perf_counter() - begun)
    return float(np.median(times))


def _steps(claim: OnSubject) -> tuple[float, float]:
    """Return how long a first step of the reader's training takes, which may compile, and a later one."""
    times = []
    begun = time.perf_counter()
    for _ in claim.path(claim.build(), 20):
        now = time.perf_counter()
        times.append(now - begun)
        begun = now
        if sum(times) > SLOW:
            break
    later = times[2:] or times[-1:]
    return sum(times[:2]), float(np.median(later))


def _source(entry: Entry) -> Path:
    """Where a claim's version for subjects is, if it has one."""
    if entry.path.name == "claim.py":
        return entry.path.with_name("on_subject.py")
    return entry.path.with_name(f"{entry.path.stem}_on_subject.py")


def _meanings(kind: type[OnSubject]) -> dict[str, str]:
    """Return what the settable fields mean: in the words of the version for subjects, else of the claim."""
    meanings = meanings_of(claim_of(kind)) | meanings_of(kind)
    return {name: meanings.get(name, "") for name in kind.settable}


def _command(entry: Entry, builder: Builder, seed: int, changed: Mapping[str, Any]) -> str:
    name = entry.name if entry.module else entry.origin
    words = ["steepest", "run", name, f"--subject {builder.where}"]
    words += [f"--seed {seed}"] if seed else []
    words += [f"--{name.replace('_', '-')} {spell(value)}" for name, value in changed.items()]
    return " ".join(words)


def _round(number: float) -> int:
    """Return a number to two digits."""
    return int(float(f"{number:.2g}"))
