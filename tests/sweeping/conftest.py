"""The toy claim for every test of this folder that asks for it."""

import pytest

from tests.sweeping.toy import Toy


@pytest.fixture
def toy(monkeypatch):
    """The catalogue holds nothing but the toy."""
    for room in ("_plan", "_batch"):
        monkeypatch.setattr(f"steepest.sweeping.{room}.load", lambda name: Toy)
    return Toy
