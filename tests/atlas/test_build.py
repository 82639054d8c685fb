"""An atlas appears whole, or what was there stays."""

import json
import shutil
import warnings

import pytest

from steepest import atlas, claims
from steepest.errors import UserError
from steepest.store import Damaged, Store


@pytest.fixture(scope="module")
def few(stored, tmp_path_factory):
    """Results of one claim alone."""
    root = tmp_path_factory.mktemp("few") / "results"
    shutil.copytree(stored / "powerless", root / "powerless")
    return root


def files(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_same_results_give_the_same_bytes_and_watch_is_told_each_claim(stored, site, tmp_path):
    seen = []
    again = atlas.build(stored, tmp_path / "deep" / "atlas", seen.append)
    assert again == tmp_path / "deep" / "atlas" / "index.html"
    assert files(again.parent) == files(site)
    assert seen == ["plain-decay", "shifted-decay", "wide-decay", "growing", "powerless"]


def test_rebuilding_replaces_and_leaves_nothing_behind(site, few, tmp_path):
    out = tmp_path / "atlas"
    shutil.copytree(site, out)
    atlas.build(few, out)
    assert [p.name for p in out.iterdir() if p.is_dir()] == ["powerless"]
    assert [p.name for p in tmp_path.iterdir()] == ["atlas"]


def test_downloads_are_the_stored_files(stored, site):
    folder = next((stored / "growing").iterdir())
    for name in ("result.json", "arrays.npz", "figure.svg"):
        assert (site / "growing" / folder.name / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize("make", ["foreign", "added", "file", "results inside"])
def test_what_is_not_ours_is_refused_and_left_alone(stored, site, tmp_path, make):
    out = tmp_path / "atlas"
    results = stored
    if make == "foreign":
        out.mkdir()
        (out / "thesis.tex").write_text("years of work")
    elif make == "file":
        out.write_text("not a folder")
    else:
        shutil.copytree(site, out)
        (out / "CNAME").write_text("a user's")
        if make == "results inside":
            (out / "CNAME").unlink()
            results = out / "results"
            shutil.copytree(stored, results)
    before = files(tmp_path)
    with pytest.raises(UserError, match="atlas"):
        atlas.build(results, out)
    assert files(tmp_path) == before


def test_an_empty_folder_is_fine(few, tmp_path):
    (tmp_path / "atlas").mkdir()
    assert atlas.build(few, tmp_path / "atlas").is_file()


def test_no_results_are_one_sentence(tmp_path, catalogue):
    with pytest.raises(UserError, match="no folder of results"):
        atlas.build(tmp_path / "nowhere", tmp_path / "atlas")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no sound result"):
        atlas.build(tmp_path / "empty", tmp_path / "atlas")
    assert not (tmp_path / "atlas").exists()


def test_a_place_that_cannot_be_written_is_one_sentence(stored, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        atlas.build(stored, tmp_path / "file" / "atlas")


def test_a_build_that_fails_keeps_the_old_atlas(few, site, tmp_path, monkeypatch):
    out = tmp_path / "atlas"
    shutil.copytree(site, out)
    before = files(out)

    def broken(*_):
        raise RuntimeError("no pages today")

    monkeypatch.setattr("steepest.atlas._pages.index", broken)
    with pytest.raises(RuntimeError, match="today"):
        atlas.build(few, out)
    assert files(out) == before
    assert [p.name for p in tmp_path.iterdir()] == ["atlas"]


def test_damaged_results_are_left_out_with_a_warning(stored, few, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(few, results)
    shutil.copytree(stored / "growing", results / "growing")
    damaged = next((results / "growing").iterdir())
    (damaged / "result.json").write_text(json.dumps({"verdict": "holds"}))
    with pytest.warns(Damaged):
        index = atlas.build(results, tmp_path / "atlas")
    assert "steepest run growing" in index.read_text("utf-8")
    assert not (index.parent / "growing").exists()


def test_results_of_another_version_are_left_out_with_a_warning(few, tmp_path, monkeypatch):
    monkeypatch.setattr(claims.load("powerless"), "version", 2)
    with (
        pytest.warns(UserWarning, match="version 1 of the claim, which is now at 2"),
        pytest.raises(UserError, match="no sound result"),
    ):
        atlas.build(few, tmp_path / "atlas")


def test_a_claim_that_cannot_draw_any_more_shows_the_stored_figure(few, tmp_path, monkeypatch):
    def panels(*_):
        raise KeyError("path")

    monkeypatch.setattr(claims.load("powerless"), "panels", panels)
    with pytest.warns(UserWarning, match="the stored one"):
        index = atlas.build(few, tmp_path / "atlas")
    assert "<figure>" in (index.parent / "powerless" / "index.html").read_text("utf-8")


def test_the_default_run_is_shown_first_else_the_newest(stored, site):
    page = (site / "plain-decay" / "index.html").read_text("utf-8")
    assert "preset quick · seed 0" in page
    assert len(list((site / "plain-decay").glob("*.html"))) == 3
    assert "3 runs" in (site / "index.html").read_text("utf-8")
    assert "rate = 0.9" in page
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sum(1 for _ in Store(stored)) == 7
