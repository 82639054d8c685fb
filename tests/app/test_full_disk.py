"""A disk that fills behind a verdict: the verdict and its exit code stand, one sentence says what is missing."""

import errno
import shutil

import pytest

from steepest.app import pictures
from steepest.app.cli import main
from steepest.core import writing
from steepest.engine import store
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
