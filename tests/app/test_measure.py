"""What the terminal shows of a measurement, and the parts of ``build`` that reach it."""

import json
import math
import re
from pathlib import Path

import pytest
from rich.console import Console

from steepest.app import measure
from steepest.app.cli import main
from steepest.measurement import Finding, FindingId, Reading, Report
from tests.extras import need

GUIDE = Path(__file__).parents[2] / "docs" / "measuring.md"

LINEAR = """
import jax.numpy as jnp
def build():
    squared = lambda outputs, targets: ((outputs - targets) ** 2).mean()
    return (lambda w, x: x @ w, jnp.zeros(2)), squared, (jnp.eye(2), jnp.ones(2))
"""


def power(layer, id, value):
    name = f"{layer} of {id}"
    return Reading(
        name,
        value,
        (value - 0.1, value + 0.1),
        "seeds",
        id=id,
        layer=layer,
        interpretation="a hidden layer",
    )


def test_powers_of_layers_are_one_table(monkeypatch, capsys):
    """A row a layer and a column a kind of power; what is of no layer is listed as ever."""
    ids = ("width-start", "width-change", "width-update")
    of_layers = [power(layer, id, 0.5) for id in ids for layer in ("first", "second")]
    outputs = Reading("outputs at the start", 0.25, (0.2, 0.3), "seeds", id="width-outputs")
    lonely = power("last", "width-update", 1.0)
    report = Report("Chain", 10, 20, (*of_layers, lonely, outputs), 1, 1.0)
    monkeypatch.setattr(measure, "wide", lambda: Console(width=160))
    measure.show(report, all_readings=True)
    lines = capsys.readouterr().out.splitlines()
    (first,) = [line for line in lines if line.startswith("first")]
    assert first.count("0.50 (0.40 to 0.60)") == 3
    (last,) = [line for line in lines if line.startswith("last")]
    assert last.split() == ["last", "–", "–", "1.00", "(0.90", "to", "1.10)"]
    assert sum("outputs at the start" in line for line in lines) == 1
    assert not any("a hidden layer" in line for line in lines)


@pytest.fixture
def report():
    """Three readings, one of which does not exist, and two findings."""
    readings = (
        Reading("risk", 0.5, id="risk"),
        Reading("sharpness", 2.0, (1.0, 3.0), "residual", id="sharpness"),
        Reading("collapse", math.nan, interpretation="not measured: no classes", id="collapse"),
    )
    findings = (
        Finding("!", "first", "risk", FindingId.NOTHING_LEARNED),
        Finding("✓", "second", "sharpness", FindingId.STEP_STABLE),
    )
    return Report("Net", 3, 5, readings, 1, 0.1, findings)


FINDINGS = ["  ! first  (risk)", "  ✓ second  (sharpness)"]


def test_a_line_stands_for_the_readings_and_findings_come_last(report, capsys):
    measure.show(report)
    title, counted, *lines = capsys.readouterr().out.splitlines()
    assert title == "Net: 3 weights, 5 examples"
    assert re.findall(r"\d+", counted) == ["2", "1"] and "--all" in counted
    assert lines == FINDINGS


def test_with_all_readings_the_findings_still_come_last(report, capsys):
    measure.show(report, all_readings=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == FINDINGS
    table = lines[1:-2]
    assert [line.split()[0] for line in table if line[:1].isalpha()][:2] == ["quantity", "risk"]
    assert any(line.startswith("sharpness") for line in table)
    assert not any("--all" in line for line in lines)


@pytest.fixture
def guide(tmp_path, monkeypatch):
    """The first example of the guide, as a reader saves it."""
    need("torch")
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert code is not None
    (tmp_path / "my_model.py").write_text(code[1], "utf-8")


def test_the_build_of_the_guide_is_measured(guide, capsys):
    assert main(["measure", "my_model.py:build", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert FindingId.STEP_STABLE in [finding["id"] for finding in said["findings"]]
    assert said["held_out"]  # what it returns as held out has arrived


FEATURES = """
import jax.numpy as jnp


def hidden(params, x):
    return jnp.tanh(x @ params["inner"])


def build():
    apply = lambda params, x: hidden(params, x) @ params["outer"]
    params = {"inner": jnp.ones((4, 5)) * jnp.arange(5), "outer": jnp.ones((5, 2)) * jnp.arange(2)}
    loss = lambda outputs, y: ((outputs - jnp.eye(2)[y]) ** 2).mean()
    data = jnp.eye(4), jnp.array([0, 1, 0, 1])
    return {"model": (apply, params), "loss": loss, "data": data, "features": FEATURES}
"""


@pytest.mark.parametrize(("given", "measured"), [("hidden", True), ("None", False)])
def test_features_of_build_are_measured(given, measured, tmp_path, monkeypatch, capsys):
    """NC1 of a function of JAX, whose last layer nobody else tells."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FEATURES.replace("FEATURES", given), "utf-8")
    assert main(["measure", "mine.py:build", "--what", "risk,collapse", "--json"]) == 0
    readings = json.loads(capsys.readouterr().out)["quantities"]
    values = [reading["value"] for reading in readings if reading["id"] == "collapse"]
    assert any(value is not None for value in values) == measured


def test_a_loss_that_changes_with_the_network_is_said_on_the_command_line(tmp_path, capsys):
    (tmp_path / "linear.py").write_text(LINEAR)
    words = ["measure", f"{tmp_path / 'linear.py'}:build", "--what", "risk", "--json"]
    drawn = []
    for more in ([], ["--not-stationary"]):
        assert main([*words, *more]) == 0
        drawn.append([finding["id"] for finding in json.loads(capsys.readouterr().out)["findings"]])
    assert drawn == [[FindingId.NOTHING_LEARNED], [FindingId.NOT_STATIONARY]]
