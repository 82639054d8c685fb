"""A monitored training as one page, which opens from disk and asks nothing of any network."""

from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from . import _pages
from ._report import FOUND, drawn_panels, write_page
from ._style import stylesheet

if TYPE_CHECKING:  # pages of results need no JAX
    from steepest.measurement import TrainingRun

WARNINGS = 20
"""So many are listed; a training that hovers at its limit may have hundreds."""


def training_page(run: "TrainingRun", file: str | Path) -> Path:
    """Write a monitored training as an HTML page, whole or not at all.

    Args:
        run: what ``steepest.watch`` returned.
        file: where to; a page that is there is replaced.

    Returns:
        the file.

    Raises:
        UserError: a place that cannot be written.

    >>> import tempfile
    >>> from steepest.measurement import TrainingRun
    >>> risk = [{"step": step, "quantities": {"risk": {"value": 1.0 / step, "compared": None}}} for step in (1, 2, 3)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = training_page(TrainingRun("run.jsonl", tuple(risk)), Path(folder) / "run.html")
    ...     "from 1 at step 1 to 0.333 at step 3" in page.read_text("utf-8")
    True
    """
    text = (
        _pages.environment()
        .get_template("training.html")
        .render(
            sheet=Markup(stylesheet()),
            run=run,
            rows=[row for row in run.rows if row.last is not None],
            figures=drawn_panels(run.panels),
            warnings=run.warnings[-WARNINGS:],
            unlisted=max(0, len(run.warnings) - WARNINGS),
            found=FOUND,
        )
    )
    return write_page(text, file)
