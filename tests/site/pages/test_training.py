"""The page of a monitored training: everything is on it, it asks nothing of any network, and the command writes it."""

import json

import pytest

import steepest
from steepest.app.cli import main
from steepest.core.errors import UserError
from steepest.measurement import watch
from steepest.site.pages import training_page


def log(folder, warnings=("<b>too large</b>",)):
    """Write a log of a training that comes to the edge, with one warning."""
    lines = []
    for step in (0, 1, 2, 4, 8, 16):
        sharpness = {
            "value": 1.0 + step,
            "interval": [0.9 + step, 1.1 + step],
            "over_examples": [0.5 + step, 2.0 + step],
            "compared": 16.0,
            "theory": "2/η",
        }
        risk = {"value": 2.3 / (1 + step), "compared": 2.3, "theory": "2.3 for a constant guess"}
        nothing = {"value": None, "compared": None, "theory": ""}
        quantities = {"risk": risk, "sharpness": sharpness, "gradient-noise scale": nothing}
        lines.append({"step": step, "quantities": quantities, "lr": 0.125})
    lines[2]["warnings"] = list(warnings)
    file = folder / "run.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_everything_is_on_the_page(tmp_path):
    text = training_page(watch(log(tmp_path)), tmp_path / "deep" / "run.html").read_text("utf-8")
    assert text.index("at the edge of stability since step 16") < text.index("<svg")
    assert "the risk has fallen from 2.3 at step 0 to 0.135 at step 16" in text
    assert text.count("<figure>") == 2 and "2/η" in text
    assert "step 2: &lt;b&gt;too large" in text and "<b>too large" not in text
    assert "gradient-noise scale" not in text  # it never was a number
    for word in ("http://", "https://", "src=", "@import", "<script"):
        assert word not in text.replace("http://www.w3.org", "")


def test_only_the_last_warnings_are_listed(tmp_path):
    page = training_page(watch(log(tmp_path, ["again"] * 30)), tmp_path / "run.html")
    assert page.read_text("utf-8").count("<li>step 2: again") == 20
    assert "10 earlier ones are not listed" in page.read_text("utf-8")


def test_one_record_draws_no_curve(tmp_path):
    file = log(tmp_path)
    file.write_text(file.read_text().splitlines()[0])
    assert "draws no curve" in training_page(watch(file), tmp_path / "run.html").read_text("utf-8")


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write the page"):
        training_page(watch(log(tmp_path)), tmp_path / "file" / "run.html")


def test_the_command(tmp_path, capsys):
    file = log(tmp_path)
    page = tmp_path / "run.html"
    assert main(["watch", str(file), "--page", str(page)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("run.jsonl, 6 records, steps 0 to 16") and "run.html" in said.out
    assert "? at the edge of stability since step 16" in said.out
    assert "2/η = 16" in said.out and "gradient-noise scale" not in said.out
    assert main(["watch", str(file), "--json", "--page", str(page)]) == 0
    said = capsys.readouterr()
    shown = json.loads(said.out)
    assert shown["columns"]["sharpness"] == [1, 2, 3, 5, 9, 17] and "run.html" in said.err
    assert {finding["sign"] for finding in shown["findings"]} == {"?", "✓"}
    assert shown["warnings"] == [{"step": 2, "text": "<b>too large</b>"}]


def test_from_python(tmp_path):
    run = steepest.watch(log(tmp_path))
    assert len(run.figure().axes) == 2
    assert repr(run).startswith("<run.jsonl")
    assert "at the edge of stability" in repr(run)
    shown = run._repr_html_()
    assert "at the edge of stability" in shown and "<svg" in shown and "<th>sharpness</th>" in shown


def test_a_page_does_not_replace_the_log(tmp_path, capsys):
    file = log(tmp_path).rename(tmp_path / "run.html")
    before = file.read_bytes()
    assert main(["watch", str(file), "--page", str(file)]) == 2
    assert "is the log itself" in capsys.readouterr().err and file.read_bytes() == before
