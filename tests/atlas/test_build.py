"""An atlas appears whole, or what was there stays."""

import json
import shutil
import warnings

import pytest

from steepest import atlas
from steepest.errors import UserError
from steepest.store import Damaged, Store


def files(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_same_results_give_the_same_bytes(stored, site, tmp_path):
    again = atlas.build(stored, tmp_path / "deep" / "atlas")
    assert again == tmp_path / "deep" / "atlas" / "index.html"
    assert files(again.parent) == files(site)


def test_watch_is_told_every_claim_that_ran(stored, tmp_path):
    seen = []
    atlas.build(stored, tmp_path / "atlas", seen.append)
    assert seen == ["plain-decay", "shifted-decay", "wide-decay", "growing", "powerless"]


def test_rebuilding_replaces_and_leaves_nothing_behind(stored, tmp_path):
    out = tmp_path / "atlas"
    few = tmp_path / "few"
    shutil.copytree(stored / "powerless", few / "powerless")
    atlas.build(stored, out)
    atlas.build(few, out)
    assert [p.name for p in out.iterdir() if p.is_dir()] == ["powerless"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["atlas", "few"]


def test_downloads_are_the_stored_files(stored, site):
    folder = next((stored / "growing").iterdir())
    for name in ("result.json", "arrays.npz", "figure.svg"):
        assert (site / "growing" / folder.name / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize("make", ["foreign", "added", "file", "results inside"])
def test_what_is_not_ours_is_refused_and_left_alone(stored, tmp_path, make):
    out = tmp_path / "atlas"
    results = stored
    if make == "foreign":
        out.mkdir()
        (out / "thesis.tex").write_text("years of work")
    elif make == "file":
        out.write_text("not a folder")
    else:
        atlas.build(stored, out)
        (out / "CNAME").write_text("a user's")
        if make == "results inside":
            (out / "CNAME").unlink()
            results = out / "results"
            shutil.copytree(stored, results)
    before = files(tmp_path)
    with pytest.raises(UserError, match="atlas"):
        atlas.build(results, out)
    assert files(tmp_path) == before


def test_an_empty_folder_is_fine(stored, tmp_path):
    (tmp_path / "atlas").mkdir()
    assert atlas.build(stored, tmp_path / "atlas").is_file()


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


def test_a_build_that_fails_keeps_the_old_atlas(stored, tmp_path, monkeypatch):
    out = tmp_path / "atlas"
    atlas.build(stored, out)
    before = files(out)

    def broken(*_):
        raise RuntimeError("no pages today")

    monkeypatch.setattr("steepest.atlas._pages.index", broken)
    with pytest.raises(RuntimeError, match="today"):
        atlas.build(stored, out)
    assert files(out) == before
    assert [p.name for p in tmp_path.iterdir()] == ["atlas"]


def test_damaged_and_outdated_results_are_left_out_with_a_warning(stored, tmp_path, monkeypatch):
    results = tmp_path / "results"
    shutil.copytree(stored, results)
    damaged = next((results / "growing").iterdir())
    (damaged / "result.json").write_text(json.dumps({"verdict": "holds"}))
    with pytest.warns(Damaged):
        index = atlas.build(results, tmp_path / "atlas")
    assert "steepest run growing" in index.read_text("utf-8")
    assert not (index.parent / "growing").exists()
    from steepest import claims

    monkeypatch.setattr(claims.load("powerless"), "version", 2)
    with pytest.warns(UserWarning, match="version 1 of the claim, which is now at 2"):
        index = atlas.build(results, tmp_path / "atlas")
    assert not (index.parent / "powerless").exists()


def test_a_claim_that_cannot_draw_any_more_shows_the_stored_figure(stored, tmp_path, monkeypatch):
    from steepest import claims

    def panels(*_):
        raise KeyError("path")

    few = tmp_path / "few"
    shutil.copytree(stored / "powerless", few / "powerless")
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
