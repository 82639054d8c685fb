"""What every claim must satisfy, in plain words: what ``steepest check`` prints and the tests demand.

*Static* problems are read from the claim's source. *Tiny* problems are found by a run through the whole pipeline
that needs little arithmetic, whatever its verdict. Problems of the *verdict* need the quick preset.
"""

import ast
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, get_args

import jax
import numpy as np

from steepest import catalogue
from steepest.catalogue import Entry
from steepest.core.arrays import Observation, Prediction
from steepest.core.errors import UserError
from steepest.core.experiment import seeded
from steepest.core.fields import field_types
from steepest.core.panels import Panel
from steepest.core.precision import arithmetic
from steepest.core.scope import meanings as meanings_of
from steepest.core.scope import scope_of
from steepest.core.words import Verdict
from steepest.engine.results import Result
from steepest.engine.run import Ready, build, execute
from steepest.engine.threads import one_thread
from steepest.kit import Claim, Kind, literals_of
from steepest.site.drawing import svg
from steepest.sources import expand

ID = r"[a-z][a-z0-9_]*"
JUDGED = ("judge", "rivals", "controls", "panels", "run_conditions")
FORBIDDEN = ("matplotlib", "open(", "pathlib", "steepest.engine", "steepest.site", "steepest.app")
Problems = list[str]


def problems(entry: Entry) -> Iterator[tuple[str, Problems]]:
    """Yield what was looked at and what is missing there, cheap looks first."""
    kind = catalogue.load(entry)
    for title, look in STATIC.items():
        yield title, look(kind)
    preset = "tiny" if kind.tiny else "quick"
    ready = Ready(entry, build(kind, preset, {}), preset, 0)
    before = jax.config.read("jax_enable_x64")
    result = execute(ready)
    for title, inspect_result in TINY.items():
        yield title, inspect_result(ready, result)
    untouched = jax.config.read("jax_enable_x64") == before
    yield "changes no global setting", [] if untouched else ["the precision of JAX was changed"]
    yield "out of range where a hypothesis fails", goes_out_of_range(entry, kind)


def run_quick(entry: Entry) -> Result:
    """Return the result of the quick preset."""
    return execute(Ready(entry, build(catalogue.load(entry), "quick", {}), "quick", 0))


def problems_of_verdict(result: Result) -> tuple[str, Problems]:
    """Return what a result of the quick preset was looked at for, and what is missing there."""
    return "every check can fail (quick preset)", is_challenged(result)


def is_described(kind: type[Claim]) -> Problems:
    """Fields are typed and documented with a unit; statement, source and texts are there."""
    missing = []
    parameters = getattr(kind, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        return ["the class must be a claim: put @kit.claim above it"]
    meanings = meanings_of(kind)
    for field in fields(kind):
        if not re.search(r"\S.* \[[^\]]+\]$", meanings.get(field.name, "")):
            missing.append(
                f'field {field.name}: what it is, such as kit.param(0.1, "step size η", unit="1")'
            )
    text = inspect.getdoc(sys.modules[kind.__module__]) or ""
    if not text.split("\n")[0].endswith("."):
        missing.append("the file's first line: the statement in one sentence, with a full stop")
    if not kind.__doc__ or kind.__doc__.startswith(f"{kind.__name__}("):
        missing.append("the class: a docstring that says what the experiment is")
    for name in ("statement", "source"):
        if not getattr(kind, name, ""):
            missing.append(f"{name}: a text")
    missing += _unknown_works(getattr(kind, "source", ""))
    if getattr(kind, "kind", "") not in get_args(Kind):
        missing.append(f"kind: what kind of statement it is, one of {', '.join(get_args(Kind))}")
    if not kind.out_of_scope:
        missing.append("out_of_scope: fields that put the claim out of its theorem's range")
    own = field_types(kind)
    for preset in ("full", "tiny", "out_of_scope"):
        unknown = [name for name in getattr(kind, preset) if name not in own]
        missing += [f"{preset}: {name!r} is no field" for name in unknown]
        if not unknown:
            missing += _refused(kind, preset)
    return missing


def _refused(kind: type[Claim], preset: str) -> Problems:
    """Say that a preset's fields do not go together: no run would come to an end."""
    try:
        kind(**getattr(kind, preset))
    except UserError as refusal:
        return [f"{preset}: {refusal}"]
    return []


def _unknown_works(text: str) -> Problems:
    try:
        expand(text)
    except UserError as refusal:
        return [f"source: {refusal}"]
    return []


def speaks_in_laws(kind: type[Claim]) -> Problems:
    """Clauses stand in the text, one in its first sentence; the preset in its scope; surviving nulls are named."""
    says = kind.says
    text = inspect.getdoc(sys.modules[kind.__module__]) or ""
    first = text.split("\n\n")[0].replace("\n", " ")
    whole = " ".join(text.split())
    missing = [
        f"says: the file's text has no clause {part!r}" for part in says if part not in whole
    ]
    if not any(part in first for part, named in says.items() if named):
        missing.append("says: no clause that a check judges stands in the first sentence")
    if not any(says.values()):
        missing.append("says: no clause names the check that judges it")
    scope = scope_of(kind)
    if not scope:
        missing.append(
            "scope: no field says where the claim holds; give param(…, scope=between(low, high))"
        )
    for name, limits in scope.items():
        default = field_types(kind)[name].default
        if default not in limits:
            missing.append(f"{name}: the preset's {default} lies outside of its scope, {limits}")
    missing += _coordinates_of_literals(kind)
    for null in kind.not_told:
        along = rf"{ID}\.{ID}\.(flat|halved|reversed|exchanged|steeper|shallower)"
        if not re.fullmatch(rf"{along}|{ID}\.(larger|smaller)", null):
            missing.append(
                f"not_told: {null!r} is no array.axis.kind, such as step.width.flat or step.larger"
            )
    return missing


def _coordinates_of_literals(kind: type[Claim]) -> Problems:
    """Name coordinates of which a clause states a number and which the quick preset does not have."""
    axes = kind().axes()
    literals = [one for named in kind.says.values() for one in literals_of(named)]
    missing = []
    for one in literals:
        for axis, named in one.at.items():
            several = named if isinstance(named, (list, tuple)) else [named]
            unknown = [value for value in several if value not in axes.get(axis, ())]
            missing += [
                f"says: the number of {one.check} is of {axis} = {value!r}, which the preset does not have"
                for value in unknown
            ]
    return missing


def keeps_apart(kind: type[Claim]) -> Problems:
    """``predict`` takes no observation, ``observe`` no prediction, and neither reaches the other."""
    missing = []
    for name, wanted in (("predict", ["setting"]), ("observe", ["setting", "key"])):
        taken = list(inspect.signature(getattr(kind, name)).parameters)[1:]
        if taken != wanted:
            missing.append(f"{name} takes {', '.join(wanted)}, got {', '.join(taken)}")
    methods = _methods(kind)
    for name, others in (
        ("predict", ("observe", "judge")),
        ("observe", ("predict", "judge", "rivals", "controls")),
    ):
        reached = _reached(methods, name)
        missing += [f"{name} reaches {other}" for other in others if other in reached]
    return missing


def is_thin(kind: type[Claim]) -> Problems:
    """A claim does not plot, read or write files, or import what runs and shows it."""
    source = inspect.getsource(sys.modules[kind.__module__])
    return [f"a claim does not use {word}" for word in FORBIDDEN if word in source]


def refuses_bad_fields(kind: type[Claim]) -> Problems:
    """Each whole number refuses −1, and each number NaN, in one sentence that names the field."""
    missing = []
    for name, field in field_types(kind).items():
        bad = {int: -1, float: float("nan"), str: 1, bool: 1}[field.base]
        try:
            kind(**{name: (bad,) if field.many else bad})
        except UserError as refusal:
            if name not in str(refusal):
                missing.append(f"{name}: the refusal of {bad} does not name the field")
            continue
        missing.append(f"{name}: {bad} is not refused; give the field limits, such as Count")
    return missing


def points_at_its_fields(kind: type[Claim]) -> Problems:
    """A point's fields are the claim's, and batched and swept fields are the point's."""
    experiment = kind.point or kind
    own = [field.name for field in fields(experiment)]
    claims = [field.name for field in fields(kind)]
    missing = [
        f"the point's field {name!r} is none of the claim's" for name in own if name not in claims
    ]
    for where in ("diagram", "batched"):
        missing += [
            f"{where}: {name!r} is no field of the point"
            for name in getattr(experiment, where)
            if name not in own
        ]
    missing += [f"base: {name!r} is no field" for name in experiment.base if name not in claims]
    return missing


def has_checks(ready: Ready, result: Result) -> Problems:
    """The run gives checks with ids, intervals that say what they are, and rivals."""
    if result.verdict is Verdict.OUT_OF_RANGE and not result.checks:
        return [f"the {ready.preset} preset is out of range: {result.reason}"]
    missing = [] if result.checks else ["judge yields no check"]
    tried = [*result.rivals, *result.controls]
    for ids in ([check.id for check in result.checks], [one.id for one in tried]):
        wrong = [id for id in ids if not re.fullmatch(ID, id)]
        missing += [f"{id!r} is no id: lower-case letters, digits and _" for id in wrong]
        twice = sorted({id for id in ids if ids.count(id) > 1})
        missing += [f"the id {id!r} is given twice" for id in twice]
    missing += [
        f"{check.id} does not say what its interval is"
        for check in result.checks
        if not check.interval.how
    ]
    if not tried:
        missing.append("neither rivals nor controls yields anything, so that no check can fail")
    ids_of_checks = [check.id for check in result.checks]
    missing += [
        f"headline: no check is called {id}"
        for id in ready.claim.headline
        if id not in ids_of_checks
    ]
    for name, wanted in (("predicted", Prediction), ("observed", Observation)):
        if not isinstance(getattr(result, name), wanted):
            missing.append(f"what is {name} is no {wanted.__name__}")
    return missing


def survives_json(ready: Ready, result: Result) -> Problems:
    """The result is valid JSON and comes back from it unchanged."""
    record = result.to_json()
    text = json.dumps(record, allow_nan=False)
    again = Result.from_json(json.loads(text), predicted=result.predicted, observed=result.observed)
    return [] if again.to_json() == record else ["the result changes on its way through JSON"]


def draws(ready: Ready, result: Result) -> Problems:
    """Panels are data, and give the same drawing twice."""
    if not result.panels:
        return ["figure yields nothing to draw"]
    if not all(isinstance(panel, Panel) for panel in result.panels):
        return ["figure yields something that is no panel"]
    same = svg(result.panels) == svg(result.panels)
    return [] if same else ["the figure differs when it is drawn again"]


def same_bits(ready: Ready, result: Result) -> Problems:
    """Setting and experiment, done again from the seed, agree in every bit, and so do the checks.

    Predictions come from the setting alone and are not computed again.
    """
    claim = ready.claim
    if not result.observed:
        return []
    with one_thread(), arithmetic(double=claim.precision == "float64"):
        for_setting, for_observation = seeded(ready.seed)
        again = claim.observe(claim.setting(for_setting), for_observation)
        checks = claim.checks(result.predicted, again)
    if set(again) != set(result.observed):
        return ["another run observes other quantities"]
    missing = [
        f"{name} differs when the experiment is run again"
        for name in again
        if not np.array_equal(again[name], result.observed[name], equal_nan=True)
    ]
    own = tuple(replace(check, challenged_by=()) for check in result.checks)
    if repr(tuple(checks)) != repr(own):
        missing.append("the checks differ when the experiment is run again")
    return missing


def goes_out_of_range(entry: Entry, kind: type[Claim]) -> Problems:
    """With its hypotheses violated the verdict is OUT_OF_RANGE, whatever the numbers."""
    if not kind.out_of_scope:
        return []
    for preset in ("tiny", "quick"):  # a few examples may meet by chance what many do not
        claim = build(kind, preset, kind.out_of_scope)
        result = execute(Ready(entry, claim, preset, 0))
        if result.verdict is Verdict.OUT_OF_RANGE:
            return []
    return [f"out_of_scope {dict(kind.out_of_scope)} gives {result.verdict}, not out of range"]


def is_challenged(result: Result) -> Problems:
    """Under the quick preset the data reject every rival but those it is said of, and something fails every check."""
    missing = [
        f"the data do not reject {rival.id}; if they cannot, say so with accepted="
        for rival in result.rivals
        if not rival.rejected and not rival.accepted
    ]
    missing += [f"the judge passes the control {c.id}" for c in result.controls if not c.rejected]
    missing += [
        f"these data do not tell {null.untold}; say why in not_told, or judge it"
        for null in result.nulls
        if null.headline and not null.rejected and not null.accepted
        if result.verdict is not Verdict.FAILS  # a check that fails anyway tells nothing apart
    ]
    reasons = result.about.get("reasons_for_shared", {})
    if result.clauses:
        missing += [
            f"prediction and observation both call {name}: say in shared why a mistake in it would not cancel"
            for name in result.shared
            if name not in reasons
        ]
    for check in result.checks:
        refuted = check.verdict is Verdict.FAILS  # whether a rival fails it too says nothing then
        if not check.counts and not check.idle and not refuted:
            missing.append(
                f"no rival and no control fails {check.id}; add one, or declare it idle(…)"
            )
    return missing


STATIC: dict[str, Callable[[type[Claim]], Problems]] = {
    "fields, statement and source are described": is_described,
    "clauses and scope": speaks_in_laws,
    "prediction and observation are kept apart": keeps_apart,
    "nothing is drawn or written by the claim itself": is_thin,
    "fields refuse what they cannot be": refuses_bad_fields,
    "the point's fields are the claim's": points_at_its_fields,
}
TINY: dict[str, Callable[[Ready, Result], Problems]] = {
    "checks and rivals have ids": has_checks,
    "the result is valid JSON": survives_json,
    "the figure is drawn": draws,
    "the same seed gives the same bits": same_bits,
}


def _body(kind: type[Claim]) -> list[ast.stmt]:
    tree = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    (body,) = [
        node.body
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    ]
    return body


def _methods(kind: type[Claim]) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in _body(kind) if isinstance(node, ast.FunctionDef)}


def _reached(methods: dict[str, Any], start: str) -> set[str]:
    """What a method calls on itself, followed through the claim's own helpers."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in reached or name not in methods:
            continue
        reached.add(name)
        for node in ast.walk(methods[name]):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
                waiting.append(node.attr)
    return reached - {start}
