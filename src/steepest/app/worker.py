"""What a worker of ``steepest run`` does: run a claim, and draw its figures while other claims run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steepest.engine import crew
from steepest.engine.store import Store
from steepest.site.pages import drawn


def work(request: Mapping[str, Any]) -> dict[str, str]:
    """Run one claim in this process, draw its figures, and return the folder of its result."""
    answer = crew.work(request)
    if "folder" in answer:
        folder = Path(answer["folder"])
        result = Store(Path(request["out"])).read(folder)
        if result is not None:
            drawn(result.panels, folder)
    return answer
