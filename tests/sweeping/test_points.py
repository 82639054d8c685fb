"""Points on disk: whole or not at all, checked when read."""

import os
import time
import warnings

import pytest

from steepest.store import Damaged
from steepest.sweeping._points import FILE, Points

RECORD = {"verdict": "holds", "checks": [{"name": "γ", "measured": 0.1}], "seconds": 1e-3}
KEYS = [f"{i:016x}" for i in range(30)]


@pytest.fixture
def points(tmp_path):
    found = Points(tmp_path / "points")
    for key in KEYS:
        found.write(key, RECORD)
    return found


def test_what_is_written_is_read(points):
    assert points.there() == set(KEYS)
    assert points.read(KEYS) == dict.fromkeys(KEYS, RECORD)


def test_a_point_is_one_line_of_json(points):
    import json

    stored = json.loads((points.folder / KEYS[0] / FILE).read_text("utf-8"))
    assert stored["point"] == RECORD
    assert len(stored["digest"]) == 16


def test_absent_points_are_absent_without_a_word(points, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert points.read(["f" * 16]) == {}
        assert Points(tmp_path / "nowhere").there() == set()


def test_writing_again_replaces(points):
    points.write(KEYS[0], {"verdict": "fails"})
    assert points.read(KEYS[:1]) == {KEYS[0]: {"verdict": "fails"}}
    assert not list(points.folder.glob(".new-*"))


def damage(path, how):
    text = path.read_bytes()
    if how == "cut":
        path.write_bytes(text[:-7])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "flipped":
        path.write_bytes(text.replace(b"0.1", b"0.2"))
    elif how == "digest":
        path.write_bytes(text.replace(text[12:14], b"zz"))
    elif how == "missing":
        path.unlink()
    elif how == "folder":
        path.unlink()
        path.mkdir()


@pytest.mark.parametrize("how", ["cut", "empty", "flipped", "digest", "missing", "folder"])
def test_damage_is_reported_and_never_trusted(points, how):
    damage(points.folder / KEYS[3] / FILE, how)
    with pytest.warns(Damaged, match=f"1 point in .* cannot be trusted and will be computed again: {KEYS[3]}"):
        assert set(points.read(KEYS)) == set(KEYS) - {KEYS[3]}
    points.write(KEYS[3], RECORD)
    assert points.read(KEYS[3:4])


def test_many_damaged_points_are_one_report(points):
    for key in KEYS[:12]:
        damage(points.folder / key / FILE, "flipped")
    with pytest.warns(Damaged, match="12 points .*; and 2 more") as said:
        assert len(points.read(KEYS)) == 18
    assert len(said) == 1


def test_leftovers_of_killed_runs_go_after_a_day(points):
    old, young = points.folder / ".new-a-1", points.folder / ".new-b-2"
    for each in (old, young):
        each.mkdir()
    os.utime(old, (time.time() - 90_000,) * 2)
    points.sweep_up()
    assert not old.exists()
    assert young.exists()
    assert points.there() == set(KEYS)
