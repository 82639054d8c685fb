"""The figure of a stored result, as a file beside it."""

from collections.abc import Callable
from pathlib import Path

from steepest.app.streams import say
from steepest.core.errors import UserError
from steepest.core.writing import move_into_place, temporary
from steepest.engine.results import Result
from steepest.engine.store import Question, Store


def written_or_said(what: str, write: Callable[[], Path]) -> Path | None:
    """Write a page or a figure behind a verdict; one that cannot be written is said, and the verdict stands.

    Args:
        what: it is, such as ``"the atlas"``.
        write: writes it, and returns its path.
    """
    try:
        return write()
    except OSError as trouble:
        where = f" {trouble.filename}" if trouble.filename else ""
        reason = trouble.strerror or trouble
        say(
            f"steepest: cannot write {what}{where} ({reason}); make room, and run the same command again"
        )
    except UserError as trouble:
        say(f"steepest: {trouble}")
    return None


def draw_picture(result: Result, store: Store) -> Path | None:
    """Write the figure of a result beside it as SVG, once; None where nothing was observed, or it cannot be written."""
    path = picture_of(result, store)
    if (
        not result.panels or not path.parent.is_dir()
    ):  # a result that could not be kept has no place
        return None
    if result.how != "stored" or not path.is_file():
        from steepest.site.drawing import svg  # matplotlib only where something is drawn

        text = svg(result.panels)

        def write() -> Path:
            with temporary(path) as fresh:
                fresh.write_text(text, "utf-8")
                return move_into_place(fresh, path)

        return written_or_said("the figure", write)
    return path


def picture_of(result: Result, store: Store) -> Path:
    """Return where the figure of a result is, once it is drawn."""
    return store.root / result.claim / Question.of(result).key / "figure.svg"
