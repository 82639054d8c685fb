"""What a worker of ``steepest run`` does: run a claim, and draw its figures while other claims run."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from steepest.app import tour
from steepest.app.pictures import draw_picture
from steepest.engine import crew
from steepest.engine.store import Store
from steepest.site.pages import drawn


def work(request: Mapping[str, Any]) -> dict[str, str]:
    """Run one claim in this process, draw its figures, and return the folder of its result.

    The first claim of the tour gets the file that its reader is told of too.
    """
    answer = crew.work(request)
    if "folder" in answer:
        folder = Path(answer["folder"])
        store = Store(Path(request["out"]))
        result = store.read(folder)
        if result is not None:
            if request["name"] == tour.TOUR[0]:
                draw_picture(replace(result, how=answer["how"]), store)
            drawn(result.panels, folder)
    return answer
