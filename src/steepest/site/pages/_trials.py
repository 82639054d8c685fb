"""How often a claim holds as one page, which opens from disk and asks nothing of any network."""

from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from . import _pages
from ._report import drawn_panels, write_page
from ._style import stylesheet

if TYPE_CHECKING:  # pages of results need no JAX
    from steepest.engine.trials import Trials


def trials_page(trials: "Trials", file: str | Path) -> Path:
    """Write the trials of a claim as an HTML page, whole or not at all.

    Args:
        trials: what ``steepest.trials`` returned.
        file: where to; a page that is there is replaced.

    Returns:
        the file.

    Raises:
        UserError: a place that cannot be written.
    """
    template = _pages.environment().get_template("trials.html")
    tallies = {"Fresh seeds": trials.seeds, "Random settings of the scope": trials.settings}
    text = template.render(
        sheet=Markup(stylesheet()),
        trials=trials,
        plan=trials.plan,
        says=trials.plan.entry.says,
        tallies={title: tally for title, tally in tallies.items() if tally.runs},
        figures=drawn_panels(trials.panels),
    )
    return write_page(text, file)
