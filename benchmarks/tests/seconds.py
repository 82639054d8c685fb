"""A plugin of pytest that writes the CPU-seconds of every test, with its fixtures and child processes, a line each.

    python -m pytest -p benchmarks.tests.seconds --cov=steepest --cov-context=test --cov-report=

To ``seconds.jsonl`` in ``STEEPEST_SECONDS``, a folder, where each worker has a file of its own.
"""

import json
import os
from pathlib import Path

import pytest


def spent() -> float:
    """Return the CPU-seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Time one test, with the fixtures that are made for it."""
    start = spent()
    outcome = yield
    path = Path(os.environ["STEEPEST_SECONDS"]) / f"{os.getpid()}.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps([item.nodeid, spent() - start]) + "\n")
    return outcome


def read(folder: Path) -> dict[str, float]:
    """Return the CPU-seconds of each test by its name."""
    lines = [
        line for path in folder.glob("*.jsonl") for line in path.read_text("utf-8").splitlines()
    ]
    return dict(json.loads(line) for line in lines)
