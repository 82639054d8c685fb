"""The drawings of a result: made once, kept beside it, and made again where what is kept is of anything else."""

import json
import os
from dataclasses import replace

import pytest

from steepest.core import writing
from steepest.core.panels import Curve, Panel
from steepest.site import pages
from steepest.site.pages import _drawn

PANELS = [Panel("Rate", "width", "rate", (Curve([1.0, 2.0], [3.0, 4.0], "seen"),))]


def drawn_without_a_pen(monkeypatch, panels, folder):
    """Return drawings when nothing can be drawn: those that are kept, or an error."""

    def refuse(*_):
        raise AssertionError("drawn again")

    with monkeypatch.context() as patch:
        for name in ("page_svg", "svg", "thumbnail"):
            patch.setattr(_drawn, name, refuse)
        return pages.drawn(panels, folder)


def test_drawings_are_made_once(tmp_path, monkeypatch):
    made = pages.drawn(PANELS, tmp_path)
    assert len(made.figures) == 1
    assert "<svg" in made.figures[0]
    assert "<svg" in made.thumbnail
    assert drawn_without_a_pen(monkeypatch, PANELS, tmp_path) == made
    other = [replace(PANELS[0], x="depth")]
    with pytest.raises(AssertionError, match="drawn again"):
        drawn_without_a_pen(monkeypatch, other, tmp_path)


def test_files_to_take_are_drawn_when_they_are_asked_for(tmp_path):
    pages.drawn(PANELS, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [_drawn.ON_PAGES]
    assert "Rate" in _drawn.drawn_files(PANELS, tmp_path)[0]
    assert {path.name for path in tmp_path.iterdir()} == {_drawn.ON_PAGES, _drawn.TO_TAKE}


@pytest.mark.parametrize(
    "change", [lambda text: text[:-9], lambda text: text.replace("svg", "swg")]
)
def test_damage_is_drawn_over(tmp_path, change):
    made = pages.drawn(PANELS, tmp_path)
    kept = tmp_path / _drawn.ON_PAGES
    kept.write_text(change(kept.read_text("utf-8")), "utf-8")
    assert pages.drawn(PANELS, tmp_path) == made
    assert json.loads(kept.read_text("utf-8"))["drawings"][0] == made.figures[0]


def test_no_panels(tmp_path):
    assert pages.drawn([], tmp_path) == _drawn.Drawn((), "")


def test_a_folder_that_cannot_be_written_costs_time_alone(tmp_path):
    assert pages.drawn(PANELS, tmp_path / "absent").figures


@pytest.mark.parametrize("name", [_drawn.ON_PAGES, _drawn.TO_TAKE])
@pytest.mark.parametrize("kind", ["pipe", "link", "device"])
def test_what_is_no_file_is_not_opened(tmp_path, name, kind):
    """A pipe to which nobody writes would never end, nor would a device."""
    place = tmp_path / name
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero" if kind == "device" else tmp_path / "elsewhere")
    draw = pages.drawn if name == _drawn.ON_PAGES else _drawn.drawn_files
    made = draw(PANELS, tmp_path)
    assert draw(PANELS, tmp_path) == made
    assert place.is_file() and not place.is_symlink()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_full_disk_leaves_no_half_of_a_drawing(tmp_path, monkeypatch):
    def half(path, text, encoding="utf-8"):
        with path.open("w") as file:
            file.write(text[:5])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing.Path, "write_text", half)
    assert "<svg" in pages.drawn(PANELS, tmp_path).thumbnail
    assert list(tmp_path.iterdir()) == []
