"""The verdict of a claim on a reader's own network as one page, which asks nothing of any network."""

from pathlib import Path

from markupsafe import Markup

from steepest.engine.results import Result
from steepest.site.drawing import page_svg

from . import _pages
from ._figures import inline, label
from ._report import write_page
from ._style import stylesheet


def subject_page(result: Result, file: str | Path) -> Path:
    """Write the verdict on a reader's network as an HTML page, whole or not at all.

    Args:
        result: what a run on a subject returned.
        file: where to; a page that is there is replaced.

    Returns:
        the file.

    Raises:
        UserError: a place that cannot be written.
    """
    figures = [
        (panel.title, inline(page_svg(panel), f"f{i}-", label(panel)))
        for i, panel in enumerate(result.panels)
    ]
    template = _pages.environment().get_template("subject.html")
    text = template.render(
        sheet=Markup(stylesheet()),
        result=result,
        about=result.about,
        subject=result.about["subject"],
        figures=figures,
        **_pages.judged(result),
    )
    return write_page(text, file)
