"""What a referee found as one page, which opens from disk and asks nothing of any network."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from . import _pages
from ._report import write_page
from ._style import stylesheet

FOUND = {"!": "fails", "?": "inconclusive", "·": "out-of-range"}
"""The colour of each sign."""


def referee_page(
    review: Any,
    summary: str,
    groups: Sequence[tuple[str, Sequence[Any]]],
    runs: Sequence[tuple[str, str, str, str]],
    file: str | Path,
) -> Path:
    """Write a review as an HTML page, whole or not at all.

    Args:
        review: what ``steepest.engine.referee.review`` returned.
        summary: how many findings there are, in words.
        groups: headings with findings in words, which have ``sign``, ``text``, ``evidence`` and ``reproduce``.
        runs: of each run its setting, what it came to, the reason and the command.
        file: where to; a page that is there is replaced.

    Returns:
        the file.

    Raises:
        UserError: a place that cannot be written.
    """
    template = _pages.environment().get_template("referee.html")
    text = template.render(
        sheet=Markup(stylesheet()),
        review=review,
        summary=summary,
        groups=groups,
        runs=runs,
        found=FOUND,
        words=_pages.WORDS,
    )
    return write_page(text, file)
