"""What the terminal shows of a measurement."""

import json

from rich.console import Console

from steepest.app import measure
from steepest.app.cli import main
from steepest.measurement import FindingId, Reading, Report

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
    measure._report(report)
    lines = capsys.readouterr().out.splitlines()
    (first,) = [line for line in lines if line.startswith("first")]
    assert first.count("0.50 (0.40 to 0.60)") == 3
    (last,) = [line for line in lines if line.startswith("last")]
    assert last.split() == ["last", "–", "–", "1.00", "(0.90", "to", "1.10)"]
    assert sum("outputs at the start" in line for line in lines) == 1
    assert not any("a hidden layer" in line for line in lines)


def test_a_loss_that_changes_with_the_network_is_said_on_the_command_line(tmp_path, capsys):
    (tmp_path / "linear.py").write_text(LINEAR)
    words = ["measure", f"{tmp_path / 'linear.py'}:build", "--what", "risk", "--json"]
    drawn = []
    for more in ([], ["--not-stationary"]):
        assert main([*words, *more]) == 0
        drawn.append([one["id"] for one in json.loads(capsys.readouterr().out)["findings"]])
    assert drawn == [[FindingId.NOTHING_LEARNED], [FindingId.NOT_STATIONARY]]
