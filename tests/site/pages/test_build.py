"""An atlas appears whole, or what was there stays."""

import json
import os
import shutil
import warnings

import pytest

from steepest import catalogue as module
from steepest.core import writing
from steepest.core.errors import UserError
from steepest.engine.store import Damaged, Store
from steepest.site.pages import _build, _pages, _runs, build


@pytest.fixture(scope="module")
def few(stored, tmp_path_factory):
    """Results of one claim alone."""
    root = tmp_path_factory.mktemp("few") / "results"
    shutil.copytree(stored / "powerless", root / "powerless")
    return root


def files(folder):
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def test_the_same_results_give_the_same_bytes_and_watch_is_called_with_each_claim(
    stored, site, tmp_path
):
    names = []
    again = build(stored, tmp_path / "deep" / "atlas", names.append)
    assert again == tmp_path / "deep" / "atlas" / "index.html"
    assert files(again.parent) == files(site)
    assert names == ["plain-decay", "shifted-decay", "wide-decay", "growing", "powerless"]


def test_rebuilding_replaces_and_leaves_nothing_behind(site, few, tmp_path):
    out = tmp_path / "atlas"
    shutil.copytree(site, out)
    build(few, out)
    assert [p.name for p in out.iterdir() if p.is_dir()] == ["powerless"]
    assert [p.name for p in tmp_path.iterdir()] == ["atlas"]


def test_downloads_are_the_stored_files(stored, site):
    folder = next((stored / "growing").iterdir())
    for name in ("result.json", "arrays.npz", "panels.json"):
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
        build(results, out)
    assert files(tmp_path) == before


def test_an_empty_folder_is_fine(few, tmp_path):
    (tmp_path / "atlas").mkdir()
    assert build(few, tmp_path / "atlas").is_file()


def test_no_results_are_one_sentence(tmp_path, catalogue):
    with pytest.raises(UserError, match="no folder of results"):
        build(tmp_path / "nowhere", tmp_path / "atlas")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no sound result"):
        build(tmp_path / "empty", tmp_path / "atlas")
    assert not (tmp_path / "atlas").exists()


def test_a_place_that_cannot_be_written_is_one_sentence(stored, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        build(stored, tmp_path / "file" / "atlas")


def test_a_build_that_fails_keeps_the_old_atlas(few, site, tmp_path, monkeypatch):
    out = tmp_path / "atlas"
    shutil.copytree(site, out)
    before = files(out)

    def broken(*_):
        raise RuntimeError("no pages today")

    monkeypatch.setattr("steepest.site.pages._pages.index", broken)
    with pytest.raises(RuntimeError, match="today"):
        build(few, out)
    assert files(out) == before
    assert [p.name for p in tmp_path.iterdir()] == ["atlas"]


def test_damaged_results_are_left_out_with_a_warning(stored, few, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(few, results)
    shutil.copytree(stored / "growing", results / "growing")
    damaged = next((results / "growing").iterdir())
    (damaged / "result.json").write_text(json.dumps({"verdict": "holds"}))
    with pytest.warns(Damaged):
        index = build(results, tmp_path / "atlas")
    assert "steepest run growing" in index.read_text("utf-8")
    assert not (index.parent / "growing").exists()


@pytest.fixture
def edited(catalogue):
    """Change the source of a small claim for one test."""
    path = catalogue / "last_steps" / "powerless.py"
    text = path.read_text("utf-8")

    def edit(old, new):
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")

    yield edit
    path.write_text(text, "utf-8")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.rate + self.bias", "self.rate - self.bias"),  # what observe computes
        ("kit.param(0.5,", "kit.param(0.6,"),  # a default
        ("    full = ", "    version = 2\n    full = "),
    ],
)
def test_results_of_other_code_are_shown_as_stale(few, tmp_path, edited, old, new):
    edited(old, new)
    index = build(few, tmp_path / "atlas")
    page = (index.parent / "powerless" / "index.html").read_text("utf-8")
    assert "<b>Stale.</b> This was observed on 20" in page
    assert "the claim, a part of it, or JAX or NumPy has changed since" in page
    text = index.read_text("utf-8")
    assert "1</b> stale: the code has changed since" in text
    assert "0</b> inconclusive" in text  # a stale verdict is not counted


def test_layout_and_comments_make_nothing_stale(few, site, tmp_path, edited):
    own = '    """A decay whose rate is measured."""\n'
    edited(own, '    """A decay."""\n\n    # what is measured is its rate\n\n')
    index = build(few, tmp_path / "atlas")
    assert "Stale" not in (index.parent / "powerless" / "index.html").read_text("utf-8")


@pytest.mark.parametrize("how", ["broken", "gone"])
def test_pages_are_made_from_records_without_their_claim(few, tmp_path, edited, catalogue, how):
    """The claim cannot be imported, or is not there any more: figure, checks and texts are those of the record."""
    if how == "broken":
        edited("    def figure(", "    raise RuntimeError('it draws no more')\n\n    def figure(")
    else:
        (catalogue / "last_steps" / "powerless.py").unlink()
        module.built_in.cache_clear()
    try:
        index = build(few, tmp_path / "atlas")
    finally:
        module.built_in.cache_clear()
    page = (index.parent / "powerless" / "index.html").read_text("utf-8")
    assert "<figure>" in page
    assert "Stale" in page
    assert "Nothing tells this theory from a wrong one." in page


def test_the_default_run_is_shown_first_else_the_newest(stored, site):
    page = (site / "plain-decay" / "index.html").read_text("utf-8")
    assert "preset quick · seed 0" in page
    assert len(list((site / "plain-decay").glob("*.html"))) == 3
    assert "3 runs" in (site / "index.html").read_text("utf-8")
    assert "rate = 0.9" in page
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sum(1 for _ in Store(stored)) == 7


@pytest.fixture
def made(monkeypatch):
    """The pages that were made and not taken over."""
    names = []
    original = _pages.page

    def page(run, *rest):
        names.append(run.page)
        return original(run, *rest)

    monkeypatch.setattr(_pages, "page", page)
    return names


@pytest.fixture
def copied(few, site, tmp_path):
    """Results of one claim, and their atlas."""
    results = tmp_path / "results"
    shutil.copytree(few, results)
    build(results, tmp_path / "atlas")
    return results, tmp_path / "atlas"


def test_pages_that_show_the_same_are_taken_over(copied, made):
    results, out = copied
    before = files(out)
    build(results, out)
    assert made == []
    assert files(out) == before


@pytest.mark.parametrize("damage", ["page", "page gone", "record", "record's form", "record gone"])
def test_damaged_pages_are_made_again(copied, made, damage):
    results, out = copied
    before = files(out)
    page = out / "powerless" / "index.html"
    record = out / _build.PAGES
    match damage:
        case "page":
            page.write_text(page.read_text("utf-8").replace("holds", "fails"), "utf-8")
        case "page gone":
            page.unlink()
        case "record":
            record.write_bytes(b"\xff{")
        case "record's form":
            record.write_text('{"powerless/index.html": ["shows"]}', "utf-8")
        case "record gone":
            record.unlink()
    build(results, out)
    assert made == ["powerless/index.html"]
    assert files(out) == before


def test_other_code_and_stale_results_make_pages_again(copied, made, monkeypatch):
    results, out = copied
    monkeypatch.setattr(_build, "_templates", lambda: "another look")
    build(results, out)
    assert made == ["powerless/index.html"]
    monkeypatch.setattr(_runs, "staleness", lambda *asked, **more: "the claim has changed since")
    build(results, out)
    assert made == ["powerless/index.html"] * 2
    assert "the claim has changed since" in (out / "powerless" / "index.html").read_text("utf-8")


def test_the_font_of_the_same_formulas_is_taken_over_and_a_damaged_one_is_cut_again(
    copied, monkeypatch
):
    results, out = copied
    font = out / _build._mathfont.MATH_FILE
    whole = font.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(_build._mathfont, "font", lambda _: pytest.fail("it was cut again"))
        build(results, out)
    assert font.read_bytes() == whole
    font.write_bytes(whole[:100])
    build(results, out)
    assert font.read_bytes() == whole


@pytest.mark.parametrize("name", [_build.PAGES, "powerless/index.html", "math.woff", "style.css"])
def test_a_pipe_in_an_atlas_is_not_waited_for(copied, name):
    """Nobody writes to it, so that reading it would never end."""
    results, out = copied
    before = files(out)
    (out / name).unlink()
    os.mkfifo(out / name)
    build(results, out)
    assert files(out) == before


def test_a_pipe_in_the_place_of_the_list_of_files_makes_a_folder_none_of_ours(copied):
    results, out = copied
    (out / _build.MARKER).unlink()
    os.mkfifo(out / _build.MARKER)
    with pytest.raises(UserError, match="is not an atlas"):
        build(results, out)


def test_a_process_that_ends_within_a_build_leaves_nothing(copied, monkeypatch):
    """As a signal ends it where nothing can be raised: without any ``finally``."""
    results, out = copied
    before = files(out)

    def ended(*_):
        writing.abandon()
        assert sorted(path.name for path in out.parent.iterdir()) == ["atlas", "results"]
        raise KeyboardInterrupt

    monkeypatch.setattr(_build, "list_files", ended)
    with pytest.raises(KeyboardInterrupt):
        build(results, out)
    assert files(out) == before


def test_what_a_killed_build_left_goes_with_the_next(copied):
    results, out = copied
    for kind in ("new", "old"):
        left = writing._hidden(kind, out)
        left.mkdir()
        (left / "index.html").write_text("half")
    build(results, out)
    assert sorted(path.name for path in out.parent.iterdir()) == ["atlas", "results"]
