"""A disk that fills behind a verdict: the verdict and its exit code stand, one sentence says what is missing."""

import errno
import json
import re
import shutil
from pathlib import Path

import pytest

from steepest.app import pictures
from steepest.app.cli import main
from steepest.core import writing
from steepest.engine import store
from steepest.measurement import Reading, Report
from tests.small import small_catalogue

FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture(scope="module", autouse=True)
def _claims(tmp_path_factory):
    with small_catalogue(tmp_path_factory.mktemp("claims")):
        yield


def full(*_, **__):
    raise FULL


def half(path, text, encoding="utf-8"):
    """Write what fits."""
    with path.open("w") as file:
        file.write(text[:5])
    raise FULL


def hidden(folder):
    return [path for path in folder.rglob(".*") if path.name.startswith(".new")]


FAILING = ["run", "plain-decay", "--bias", "0.3"]


@pytest.mark.parametrize("words", [["run", "plain-decay"], FAILING])
def test_a_figure_that_finds_no_room_costs_neither_verdict_nor_exit_code(
    words, tmp_path, monkeypatch, capsys
):
    wanted = main(words)
    verdict = capsys.readouterr().out.splitlines()[0]
    shutil.rmtree(tmp_path / "results")
    honest = pictures.Path.write_text
    rest = lambda path, *a: half(path, *a) if "figure" in path.name else honest(path, *a)
    monkeypatch.setattr(pictures.Path, "write_text", rest)
    assert main(words) == wanted
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == verdict
    assert "picture" not in said.out
    assert said.err.count("steepest:") == 1
    assert "No space left on device" in said.err
    assert hidden(tmp_path) == []
    assert main(words) == wanted  # the result is there


@pytest.mark.parametrize("words", [["run", "plain-decay"], FAILING])
@pytest.mark.parametrize("place", ["sync", "_write"])
def test_a_result_that_finds_no_room_is_told_though_it_is_not_kept(
    words, place, tmp_path, monkeypatch, capsys
):
    wanted = main(words)
    verdict = capsys.readouterr().out.splitlines()[0]
    shutil.rmtree(tmp_path / "results")
    monkeypatch.setattr(store, place, full)
    assert main(words) == wanted
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == verdict
    assert said.err.count("steepest: cannot write the result of plain-decay") == 1
    assert [path for path in (tmp_path / "results").rglob("*") if path.is_file()] == []
    assert hidden(tmp_path) == []


def test_an_atlas_that_finds_no_room_costs_no_exit_code(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("steepest.site.pages.build", full)
    assert main(["run", "--all", "--workers", "1"]) == 0
    said = capsys.readouterr()
    assert "atlas:" not in said.out
    assert "claims in" in said.out
    assert said.err.count("cannot write the atlas (No space left on device)") == 1


def test_a_folder_is_with_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    order = []
    monkeypatch.setattr(store, "sync", lambda path: order.append(path.name.partition("-")[0]))
    honest = store.move_into_place
    move = lambda *paths: (order.append("moved"), honest(*paths))[1]
    monkeypatch.setattr(store, "move_into_place", move)
    assert main(["run", "plain-decay"]) == 0
    assert sorted(order[:3]) == ["arrays.npz", "panels.json", "result.json"]
    assert order[3:6] == [".new", "moved", "plain"]
    assert not writing._OPEN


def a_log(folder):
    risk = {"value": 0.5, "compared": 2.3, "theory": "2.3 for a guess"}
    lines = [{"step": step, "lr": 0.1, "quantities": {"risk": risk}} for step in range(3)]
    (folder / "run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def a_report():
    return Report("a model", 3, 5, (Reading("risk", 0.5),), 1, 0.1)


PAGES = {
    "trials": "trials plain-decay --seeds 2 --settings 0 --preset tiny --on here",
    "referee": "referee plain-decay --runs 0",
    "watch": "watch run.jsonl",
    "compare": "measure --compare a.json a.json",
    "measure": "measure model.py:build",
}


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("line", PAGES.values(), ids=PAGES)
def test_a_page_that_finds_no_room_costs_neither_numbers_nor_exit_code(
    line, as_json, tmp_path, monkeypatch, capsys
):
    """They are on the screen already, and bad input (2) would say that they are not to be trusted."""
    a_log(tmp_path)
    (tmp_path / "a.json").write_text(json.dumps(a_report().to_json()))
    monkeypatch.setattr("steepest.app.measure.measured", lambda known: a_report())
    words = line.split() + ["--json"] * as_json
    wanted = main(words)
    shown = capsys.readouterr().out
    honest = pictures.Path.write_text
    rest = lambda path, *a: half(path, *a) if "page.html" in path.name else honest(path, *a)
    monkeypatch.setattr(pictures.Path, "write_text", rest)
    assert main([*words, "--page", "page.html"]) == wanted
    said = capsys.readouterr()
    without_times = lambda text: re.sub(r'[\d.]+ s$|"seconds": [\d.]+', "", text, flags=re.M)
    assert without_times(said.out) == without_times(shown)
    assert said.err.count("steepest:") == said.err.count("No space left on device") == 1
    assert not (tmp_path / "page.html").exists()
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("line", ["exercise plain-decay mine.ipynb", "new mine.py"])
def test_a_file_that_finds_no_room_leaves_no_half_that_would_be_in_the_way(
    line, tmp_path, monkeypatch, capsys
):
    with monkeypatch.context() as patch:
        patch.setattr(pictures.Path, "write_text", half)
        assert main(line.split()) == 2
    assert capsys.readouterr().err.count("No space left on device") == 1
    assert [path for path in tmp_path.iterdir() if "mine" in path.name] == []
    assert main(line.split()) == 0


def test_a_table_that_finds_no_room_leaves_the_one_before(tmp_path, monkeypatch, capsys):
    line = [
        "sweep",
        "plain-decay",
        "--over",
        "rate=0.25,0.5",
        "--on",
        "here",
        "--export",
        "table.csv",
    ]
    assert main(line) == 0
    before = (tmp_path / "table.csv").read_bytes()

    def half_a_table(sweep, path):
        Path(path).write_text("rate")
        raise FULL

    monkeypatch.setattr("steepest.engine.sweeps.Sweep.to_csv", half_a_table)
    assert main(line) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert (tmp_path / "table.csv").read_bytes() == before
    assert hidden(tmp_path) == []
