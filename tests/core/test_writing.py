"""Temporary names: who holds them, and what becomes of them when their process is killed."""

import os
import signal
import subprocess
import sys

import pytest

from steepest.core import writing

HOLDING = """
import pathlib, sys, time
from steepest.core.writing import temporary
with temporary(pathlib.Path(sys.argv[1]), folder=sys.argv[2] == "folder"):
    print("holds", flush=True)
    time.sleep(60)
"""


@pytest.fixture(params=["file", "folder"])
def holding(request, tmp_path):
    """A neighbour that writes something beside ``tmp_path / "whole"``."""
    words = [sys.executable, "-c", HOLDING, str(tmp_path / "whole"), request.param]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "holds\n"
    yield process
    process.kill()
    process.wait()


def hidden(folder):
    return [path for path in folder.iterdir() if path.name.startswith(".")]


def test_what_a_living_process_writes_stays_however_old_it_looks(holding, tmp_path):
    (path,) = hidden(tmp_path)
    for when in (0, 2**31):  # the clock was set forward, or back
        os.utime(path, (when, when))
        writing.remove_leftovers(tmp_path)
        assert hidden(tmp_path) == [path]


def test_what_a_killed_one_wrote_goes_at_once(holding, tmp_path):
    holding.send_signal(signal.SIGKILL)
    holding.wait()
    assert len(hidden(tmp_path)) == 1
    writing.remove_leftovers(tmp_path)
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("kind", [False, True])
def test_what_is_not_moved_goes_with_its_block(tmp_path, kind):
    with pytest.raises(ZeroDivisionError), writing.temporary(tmp_path / "whole", kind) as fresh:
        assert fresh.is_dir() == kind
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_names_of_another_kind_go_after_a_day(tmp_path):
    """Older versions, and what cannot be locked: a pipe, a link to nowhere."""
    old, young = tmp_path / ".drawn.json-1", tmp_path / ".drawn.json-2"
    for path in (old, young):
        path.write_text("")
    os.mkfifo(tmp_path / ".new-pipe-1")
    (tmp_path / ".new-link-1").symlink_to("nowhere")
    os.utime(old, (0, 0))
    writing.remove_leftovers(tmp_path)
    assert young.exists() and not old.exists()
    assert len(hidden(tmp_path)) == 3


def test_a_process_about_to_end_takes_with_it_what_it_has_begun(tmp_path):
    (tmp_path / "claim").mkdir()
    (tmp_path / "claim" / ".new-of-a-killed-worker").mkdir()
    with writing.shared(tmp_path / "claim"), writing.temporary(tmp_path / "whole", True) as fresh:
        (fresh / "part").write_text("half")
        writing.abandon()
        assert list(tmp_path.rglob("*")) == [tmp_path / "claim"]


def test_a_folder_that_was_moved_aside_comes_back_when_the_process_ends(tmp_path, monkeypatch):
    """Between the two renames nothing is in the place: whoever ends there puts the old one back."""
    final = tmp_path / "atlas"
    for folder in (final, tmp_path / "fresh"):
        folder.mkdir()
        (folder / folder.name).write_text("")
    honest = os.rename

    def ended_between(source, target):
        if source == tmp_path / "fresh" and not final.exists():
            writing.abandon()
            raise KeyboardInterrupt
        honest(source, target)

    monkeypatch.setattr(writing.os, "rename", ended_between)
    with pytest.raises(KeyboardInterrupt):
        writing.move_into_place(tmp_path / "fresh", final)
    assert (final / "atlas").exists()
    assert hidden(tmp_path) == []


def test_what_others_call_like_a_leftover_stays(tmp_path):
    """In a reader's own folder only names go that none but this program gives."""
    final = tmp_path / "atlas"
    theirs = [".new-atlas", ".old-atlas-1", ".new-atlas-1-2", ".new-notes-1-2", ".old-atlas-x-1"]
    for name in theirs:
        (tmp_path / name).mkdir()
    ours = [writing._hidden(kind, final) for kind in ("new", "old")]
    for path in ours:
        path.mkdir()
        (path / "part").write_text("")
    with writing.temporary(final, folder=True) as fresh:
        writing.remove_leftovers_of(final)  # one that is being written has its lock
        assert fresh.is_dir()
    writing.remove_leftovers_of(final)
    assert sorted(path.name for path in hidden(tmp_path)) == sorted(theirs)


@pytest.mark.parametrize("links", [True, False])
def test_a_place_that_must_be_free_is_never_taken(tmp_path, monkeypatch, links):
    if not links:  # as on a memory card

        def refuse(*_):
            raise OSError(1, "Operation not permitted")

        monkeypatch.setattr(writing.os, "link", refuse)
    for number in (1, 2):
        with writing.temporary(tmp_path / "notes") as fresh:
            fresh.write_text(str(number))
            if number == 1:
                writing.move_where_nothing_is(fresh, tmp_path / "notes")
            else:
                with pytest.raises(FileExistsError):
                    writing.move_where_nothing_is(fresh, tmp_path / "notes")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("notes", "1")]


def test_a_name_as_long_as_systems_allow_has_a_temporary_one(tmp_path):
    final = tmp_path / ("ä" * 127)
    with writing.temporary(final) as fresh:
        fresh.write_text("whole")
        writing.move_into_place(fresh, final)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["whole"]
