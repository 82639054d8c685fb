"""The report on a user's model as one page, which opens from disk and asks nothing of any network."""

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from steepest.core.errors import UserError
from steepest.core.panels import Panel
from steepest.core.writing import remove_leftovers_of, temporary
from steepest.site.drawing import page_svg

from . import _pages
from ._figures import inline
from ._style import stylesheet

if TYPE_CHECKING:  # pages of results need no JAX
    from steepest.measurement import Comparison, Reading, Report

SIGNS = {
    True: ("holds", "✓", "true"),
    False: ("fails", "✗", "not true"),
    None: ("inconclusive", "?", "unknown"),
}
FOUND = {"!": "fails", "?": "inconclusive", "✓": "holds"}
WIDTH = 160


def report_page(report: "Report", file: str | Path) -> Path:
    """Write a report as an HTML page, whole or not at all.

    Args:
        report: what ``steepest.measure`` returned.
        file: where to; a page that is there is replaced.

    Returns:
        the file.

    Raises:
        UserError: a place that cannot be written.

    >>> import tempfile
    >>> from steepest.measurement import Reading, Report
    >>> report = Report("Net", 3, 5, (Reading("risk", 0.5, interpretation="the mean loss"),), 1, 0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     "the mean loss" in report_page(report, Path(folder) / "net.html").read_text()
    True
    """
    return write_page(_text_of(report), file)


def comparison_page(comparison: "Comparison", file: str | Path) -> Path:
    """Write a comparison of two reports as an HTML page, whole or not at all.

    Args:
        comparison: what ``steepest.compare`` returned.
        file: where to; a page that is there is replaced.

    Returns:
        the file.

    Raises:
        UserError: a place that cannot be written.

    >>> import tempfile
    >>> from steepest.measurement import Reading, Report, compare
    >>> report = Report("Net", 3, 5, (Reading("risk", 0.5),), 1, 0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = comparison_page(compare(report, report), Path(folder) / "net.html").read_text()
    >>> "the same, to rounding" in page
    True
    """
    from steepest.measurement import LEGEND

    template = _pages.environment().get_template("comparison.html")
    text = template.render(
        sheet=Markup(stylesheet()), comparison=comparison, found=FOUND, legend=LEGEND
    )
    return write_page(text, file)


def write_page(text: str, file: str | Path) -> Path:
    """Write a page of its own, whole or not at all; return the file.

    Raises:
        UserError: a place that cannot be written.
    """
    file = Path(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers_of(file)
        with temporary(file) as fresh:
            fresh.write_text(text, "utf-8")
            os.replace(fresh, file)
    except OSError as trouble:
        reason = trouble.strerror or trouble
        raise UserError(
            f"cannot write the page {file} ({reason}); choose another place with --page"
        ) from None
    return file


def _text_of(report: "Report") -> str:
    from steepest.measurement import errors

    measured = [quantity for quantity in report.quantities if math.isfinite(quantity.value)]
    figures = drawn_panels([quantity.panel for quantity in measured if quantity.panel is not None])
    return (
        _pages.environment()
        .get_template("report.html")
        .render(
            sheet=Markup(stylesheet()),
            report=report,
            measured=measured,
            absent=[
                quantity for quantity in report.quantities if not math.isfinite(quantity.value)
            ],
            parted=[quantity for quantity in measured if quantity.parts],
            figures=figures,
            errors=errors,
            signs=SIGNS,
            found=FOUND,
            length=_length,
        )
    )


def drawn_panels(panels: Sequence[Panel]) -> list[tuple[str, Markup]]:
    """Return the title of each panel, and its picture as part of a page."""
    return [
        (
            panel.title,
            inline(
                page_svg(panel),
                f"f{i}-",
                f"{panel.title}. {panel.y} against {panel.x}",
            ),
        )
        for i, panel in enumerate(panels)
    ]


def _length(value: float, quantity: "Reading") -> Markup:
    """A bar as long as this part beside the largest."""
    sizes = [abs(part) for part in quantity.parts.values() if math.isfinite(part)]
    if not (math.isfinite(value) and sizes and max(sizes)):
        return Markup("")
    width = round(WIDTH * abs(value) / max(sizes), 1)
    return Markup(
        f'<svg class="bar" viewBox="0 0 {WIDTH} 18" aria-hidden="true"><path class="axis" d="M0 9H{WIDTH}"/>'
        f'<rect class="length" y="5" width="{width}" height="8"/></svg>'
    )
