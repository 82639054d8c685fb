"""Points on disk: whole or not at all, checked when read."""

import os
import shutil
import warnings

import pytest

from steepest.core.writing import temporary
from steepest.engine.store import Damaged
from steepest.engine.sweeps import _points as sweeps_points
from steepest.engine.sweeps._points import FILE, Points

CHECK = {
    "id": "rate",
    "name": "γ",
    "measured": 0.1,
    "predicted": None,
    "interval": {"low": 0.1, "high": 0.1},
    "margin": {"low": None, "high": 1},
}
RECORD = {
    "verdict": "holds",
    "reason": "it agrees",
    "checks": [CHECK],
    "quantities": {"size": 3},
    "seconds": 1e-3,
}
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
    assert stored["point"] == {"key": KEYS[0], **RECORD}
    assert len(stored["digest"]) == 16


def test_absent_points_are_absent_without_a_word(points, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert points.read(["f" * 16]) == {}
        assert Points(tmp_path / "nowhere").there() == set()


def test_writing_again_replaces(points):
    points.write(KEYS[0], {**RECORD, "verdict": "fails"})
    assert points.read(KEYS[:1]) == {KEYS[0]: {**RECORD, "verdict": "fails"}}
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
    with pytest.warns(
        Damaged, match=f"1 point in .* cannot be trusted and will be computed again: {KEYS[3]}"
    ):
        assert set(points.read(KEYS)) == set(KEYS) - {KEYS[3]}
    points.write(KEYS[3], RECORD)
    assert points.read(KEYS[3:4])


def test_the_sound_point_of_another_name_is_never_believed(points):
    """Copied under this name, as a sync that went wrong might."""
    for key in KEYS[3:5]:
        shutil.copyfile(points.folder / KEYS[0] / FILE, points.folder / key / FILE)
    with pytest.warns(Damaged, match=f"2 points .*{KEYS[3]} \\(it is another point\\)"):
        assert set(points.read(KEYS)) == set(KEYS) - set(KEYS[3:5])


DEEP = b'{"key": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001


@pytest.mark.parametrize("text", [DEEP, b"[]", b"null", b'"text"'])
def test_json_that_is_no_point_is_damage_too(points, text):
    head = sweeps_points._HEAD.replace(
        sweeps_points._HEAD[sweeps_points._SPAN], sweeps_points._digest(text)
    )
    (points.folder / KEYS[3] / FILE).write_bytes(head + text + b"}")
    with pytest.warns(Damaged, match=KEYS[3]):
        assert set(points.read(KEYS)) == set(KEYS) - {KEYS[3]}


@pytest.mark.parametrize("kind", ["file", "dangling", "foreign"])
def test_what_is_no_folder_of_ours_is_replaced_and_not_followed(points, tmp_path, kind):
    foreign = tmp_path / "foreign"
    shutil.copytree(points.folder / KEYS[0], foreign)
    place = points.folder / KEYS[3]
    shutil.rmtree(place)
    if kind == "file":
        place.write_text("mine")
    else:
        place.symlink_to(foreign if kind == "foreign" else tmp_path / "nowhere")
    with pytest.warns(Damaged, match=KEYS[3]):
        assert points.read(KEYS[3:4]) == {}
    before = (foreign / FILE).read_bytes()
    points.write(KEYS[3], RECORD)
    assert points.read(KEYS[3:4]) == {KEYS[3]: RECORD}
    assert (foreign / FILE).read_bytes() == before
    assert points.there() == set(KEYS)


def test_many_damaged_points_are_one_report(points):
    for key in KEYS[:12]:
        damage(points.folder / key / FILE, "flipped")
    with pytest.warns(Damaged, match="12 points .*; and 2 more") as said:
        assert len(points.read(KEYS)) == 18
    assert len(said) == 1


def test_leftovers_of_killed_runs_go_whatever_the_clock_says(points):
    """What a living neighbour writes stays, and looks old where the clock was set forward meanwhile."""
    leftover = points.folder / ".new-a-1"
    leftover.mkdir()
    with temporary(points.folder / "b", folder=True) as written:
        os.utime(written, (0, 0))
        points.sweep_up()
        assert written.exists()
    assert not leftover.exists()
    assert points.there() == set(KEYS)


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "<script>"},
        {"verdict": ["holds"]},
        {"reason": None},
        {"checks": None},
        {"checks": [{**CHECK, "id": 5}]},
        {"checks": [{**CHECK, "measured": "0.1"}]},
        {"checks": [{**CHECK, "predicted": True}]},
        {"checks": [{**CHECK, "interval": [0.1, 0.1]}]},
        {"checks": [{**CHECK, "margin": {"low": None}}]},
        {"quantities": [3]},
        {"quantities": {"size": 10**400}},
    ],
    ids=str,
)
def test_a_signed_point_without_the_form_of_one_is_computed_again(points, change):
    """Anybody can make a checksum; what readers would break off over is no point."""
    points.write(KEYS[3], {**RECORD, **change})
    with pytest.warns(Damaged, match="form of a point"):
        assert set(points.read(KEYS)) == set(KEYS) - {KEYS[3]}


@pytest.mark.parametrize("name", sorted(RECORD.keys() - {"seconds"}))
def test_a_signed_point_that_lacks_something_is_computed_again(points, name):
    points.write(KEYS[3], {part: value for part, value in RECORD.items() if part != name})
    with pytest.warns(Damaged, match="form of a point"):
        assert KEYS[3] not in points.read(KEYS)
