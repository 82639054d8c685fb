"""What every claim must satisfy, as functions of a claim's class; used on the catalogue and on the template."""

import ast
import inspect
import json
import re
from dataclasses import fields, is_dataclass
from typing import get_type_hints

import jax
import numpy as np

from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, documentation
from steepest.drawing import svg
from steepest.judging import Verdict
from steepest.panels import Panel
from steepest.running import execute, seeded


def is_well_described(kind):
    """Fields are typed and documented with a unit; statement, source and docstrings are there."""
    assert is_dataclass(kind)
    assert kind.__dataclass_params__.frozen
    meaning, hints = documentation(kind), get_type_hints(kind)
    for field in fields(kind):
        assert hints[field.name] is not None
        assert re.search(r"\S.* \[[^\]]+\]$", meaning.get(field.name, "")), f"{field.name}: comment with [unit] missing"
        assert field.default is not None
    assert kind.__doc__
    assert kind.statement
    assert kind.source
    module = inspect.getmodule(kind)
    assert module.__doc__.split("\n")[0].endswith(".")
    for name in kind.full:
        assert name in meaning
    assert kind.beyond, "name fields that put the claim out of range"


def keeps_prediction_and_observation_apart(kind):
    """``predict`` takes no observation, ``observe`` no prediction, and neither calls the other."""
    assert list(inspect.signature(kind.predict).parameters) == ["self", "setting"]
    assert list(inspect.signature(kind.observe).parameters) == ["self", "setting", "key"]
    tree = ast.parse(inspect.getsource(inspect.getmodule(kind)))
    (body,) = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == kind.__name__]
    methods = {n.name: n for n in body.body if isinstance(n, ast.FunctionDef)}
    for one, other in (("predict", "observe"), ("observe", "predict")):
        # what a method calls on itself, followed through the claim's own helpers
        seen, queue = set(), [one]
        while queue:
            name = queue.pop()
            seen.add(name)
            for node in ast.walk(methods[name]):
                reached = (
                    isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
                )
                if reached and node.attr in methods and node.attr not in seen:
                    queue.append(node.attr)
        assert other not in seen
        assert "judge" not in seen


def is_thin(kind):
    """A claim does not plot, read or write files, or import what it should not."""
    source = inspect.getsource(inspect.getmodule(kind))
    for word in ("matplotlib", "open(", "pathlib", "steepest.atlas", "steepest.store", "steepest.running"):
        assert word not in source, f"a claim does not use {word}"


def judges_honestly(result):
    """The quick preset gives checks with intervals, rejected rivals, valid JSON, drawn panels."""
    assert result.verdict in (Verdict.HOLDS, Verdict.FAILS, Verdict.INCONCLUSIVE), result.reason
    assert result.checks
    names = [check.name for check in result.checks]
    assert len(names) == len(set(names))
    for check in result.checks:
        assert check.interval.how, f"{check.name} does not say what its interval is"
        assert check.interval.low <= check.measured <= check.interval.high or check.verdict is Verdict.FAILS
    assert result.rivals
    assert all(rival.rejected for rival in result.rivals), [rival.name for rival in result.rivals]
    assert isinstance(result.predicted, Prediction)
    assert isinstance(result.observed, Observation)
    record = json.loads(json.dumps(result.to_json(), allow_nan=False))
    wanted = "claim verdict checks hypotheses rivals params seed seconds versions"
    assert set(wanted.split()) <= set(record)
    for check in record["checks"]:
        assert {"name", "predicted", "measured", "interval", "margin", "verdict"} <= set(check)


def draws(kind, result):
    """Panels are data, at least two (or one), and give the same SVG twice."""
    panels = kind(**result.params).panels(result.predicted, result.observed)
    assert panels
    assert all(isinstance(panel, Panel) for panel in panels)
    assert svg(panels) == svg(panels)


def goes_out_of_range(kind):
    """With its hypotheses violated the verdict is OUT_OF_RANGE, whatever the numbers."""
    assert execute("beyond", kind(**kind.beyond), "quick", 0, lambda stage: None).verdict is Verdict.OUT_OF_RANGE


def same_bits(kind, result):
    """Setting and experiment, done again from the seed, agree in every bit, and so do the checks.

    Predictions come from the setting alone and are not computed again: programs are half of many a run.
    """
    claim = kind(**result.params)
    with jax.enable_x64(claim.precision == "float64"):
        for_setting, for_observation = seeded(result.seed)
        again = claim.observe(claim.setting(for_setting), for_observation)
        checks = claim.judge(result.predicted, again)
    assert set(again) == set(result.observed)
    for name in again:
        np.testing.assert_array_equal(again[name], result.observed[name], err_msg=name)
    assert tuple(checks) == result.checks


def leaves_no_trace(before):
    """Running a claim changes no global setting."""
    assert jax.config.jax_enable_x64 == before


def limits_are_refused(kind: type[Claim]):
    """Each number with limits refuses a value outside them in one sentence that names the field."""
    import pytest

    from steepest.errors import UserError

    for field in fields(kind):
        if isinstance(field.default, int) and not isinstance(field.default, bool):
            with pytest.raises(UserError, match=field.name):
                kind(**{field.name: -1})
