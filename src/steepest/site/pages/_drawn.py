"""The drawings of a result, made once and kept beside it: drawing takes longer than anything else on a page."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from steepest.core.panels import Panel, panels_to_json
from steepest.core.records import canonical_digest
from steepest.site.drawing import page_svg, svg, thumbnail

FILE = "drawn.json"


@dataclass(frozen=True)
class Drawn:
    """A result's drawings as SVG.

    Attributes:
        figures: one a panel, narrow and without its title, for pages.
        files: one a panel, with its title, for readers who take it elsewhere.
        thumbnail: the first panel, small; empty where there is none.
    """

    figures: tuple[str, ...]
    files: tuple[str, ...]
    thumbnail: str


def drawn(panels: Sequence[Panel], folder: Path) -> Drawn:
    """Return the drawings of a result: those kept in its folder if they are of these panels, else new ones."""
    asked = canonical_digest([panels_to_json(panels), _style()])
    try:
        record = json.loads((folder / FILE).read_text("utf-8"))
        sound = record.pop("digest") == canonical_digest(record)
        if sound and record["asked"] == asked:
            return Drawn(tuple(record["figures"]), tuple(record["files"]), record["thumbnail"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass  # whatever is wrong with it, it is drawn again
    figures = tuple(page_svg(panel) for panel in panels)
    files = tuple(svg([panel]) for panel in panels)
    made = Drawn(figures, files, thumbnail(panels[0]) if panels else "")
    record = {
        "asked": asked,
        "figures": list(made.figures),
        "files": list(made.files),
        "thumbnail": made.thumbnail,
    }
    text = json.dumps({**record, "digest": canonical_digest(record)})
    with suppress(OSError):  # a folder that cannot be written costs time, not the page
        temporary = folder / f".{FILE}-{os.getpid()}"
        temporary.write_text(text, "utf-8")
        os.replace(temporary, folder / FILE)
    return made


@cache
def _style() -> str:
    """A digest of the code that draws."""
    room = resources.files("steepest.site.drawing")
    sources = sorted(
        (path.name, path.read_text("utf-8")) for path in room.iterdir() if path.name.endswith(".py")
    )
    return canonical_digest(sources)
