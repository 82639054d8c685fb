"""The toy claim for every test of this folder that asks for it."""

from pathlib import Path

import pytest

from steepest import catalogue
from tests.engine.sweeps import toy as module


@pytest.fixture
def toy(monkeypatch):
    """The catalogue holds nothing but the toy."""
    path = Path(module.__file__)
    line = catalogue.Entry("toy", "toys", "A toy.", "steepest", path, module.__name__)
    monkeypatch.setattr(catalogue, "built_in", lambda: {"toy": line})
    monkeypatch.setattr(catalogue, "registered", dict)
    return module.Toy
