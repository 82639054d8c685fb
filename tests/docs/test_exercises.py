"""Exercises of the chapters: their solutions are run, and each chapter has what readers take away."""

import doctest
import re

import pytest

from steepest.site.book import docs_folder

PAGES = sorted((docs_folder() / "chapters").glob("*.md"))
SOLUTION = re.compile(r"```pycon\n(.*?)```", re.DOTALL)
LEVELS = ("easy", "medium", "hard")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_solutions_print_what_they_show(page):
    """The code of a chapter runs from top to bottom, as a reader would type it."""
    text = page.read_text("utf-8")
    example = doctest.DocTestParser().get_doctest(
        "\n".join(SOLUTION.findall(text)), {}, page.name, str(page), 0
    )
    assert len(example.examples) > 3
    failed = doctest.DocTestRunner(verbose=False).run(example).failed
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_chapter_ends_with_what_to_keep_and_exercises_of_each_level(page):
    text = page.read_text("utf-8")
    takeaways = text.split("## To take away\n")[1].split("## Exercises\n")[0]
    assert takeaways.count("$$") == 6
    assert [word in takeaways for word in ("**One figure.**", "**One doubt.**")] == [True, True]
    exercises = text.split("## Exercises\n")[1].split(":::{exercise}")[1:]
    levels = [re.search(r"^:level: (\w+)$", exercise, re.MULTILINE)[1] for exercise in exercises]
    assert len(levels) >= 4
    assert set(levels) == set(LEVELS)
    assert levels == sorted(levels, key=LEVELS.index)
