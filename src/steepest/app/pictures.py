"""The figure of a stored result, as a file beside it."""

from pathlib import Path

from steepest.app.streams import say
from steepest.core.writing import temporary
from steepest.engine.results import Result
from steepest.engine.store import Question, Store, move_into_place


def draw_picture(result: Result, store: Store) -> Path | None:
    """Write the figure of a result beside it as SVG, once; None where nothing was observed."""
    if not result.panels:
        return None
    path = picture_of(result, store)
    if result.how != "stored" or not path.is_file():
        from steepest.site.drawing import svg  # matplotlib only where something is drawn

        text = svg(result.panels)
        try:
            with temporary(path) as fresh:
                fresh.write_text(text, "utf-8")
                move_into_place(fresh, path)
        except OSError as trouble:  # the verdict stands without it
            say(
                f"steepest: cannot write the figure {path} ({trouble.strerror or trouble}); make room, and run again"
            )
            return None
    return path


def picture_of(result: Result, store: Store) -> Path:
    """Return where the figure of a result is, once it is drawn."""
    return store.root / result.claim / Question.of(result).key / "figure.svg"
