"""The table of a claim's box shows the point that the text discusses."""

import pytest

from steepest.site.book import chapters, docs_folder

CHAPTERS = [chapter for chapter in chapters(docs_folder()) if chapter.name.startswith("chapters/")]


def differing(chapter):
    """Return each check that table and text show at different points: claim, check, points of each."""
    shown = {}
    for claim, row in chapter.rows:
        shown.setdefault((claim, row.check), set()).add(row.place)
    return [
        (str(claim), check, places, shown[claim, check])
        for (claim, check), places in chapter.points.items()
        if (claim, check) in shown and not places <= shown[claim, check]
    ]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_the_point_of_the_table_is_the_point_of_the_text(chapter):
    """Write ``:checks: late_sharpness[1]`` where the text quotes ``late_sharpness[1]``."""
    assert not differing(chapter)


def test_chapters_name_points():
    assert any(row.place is not None for chapter in CHAPTERS for _, row in chapter.rows)


def test_a_table_at_another_point_is_noticed():
    chapter = next(chapter for chapter in CHAPTERS if chapter.name == "chapters/descent")
    assert "late_sharpness[1]" in chapter.text
    for other in ("late_sharpness stays", "late_sharpness[0] stays"):
        text = chapter.text.replace("late_sharpness[1] stays", other)
        changed = type(chapter)(chapter.name, chapter.title, text)
        assert [check for _, check, _, _ in differing(changed)] == ["late_sharpness"]
