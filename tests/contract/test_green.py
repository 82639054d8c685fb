"""What the record of green runs asks for again."""

import pytest

from steepest import catalogue
from tests.contract import green


@pytest.fixture
def names(monkeypatch):
    """Two claims, both recorded as they are."""
    names = ["catapult", "path-norm"]
    monkeypatch.setattr(green, "EVERY", False)
    entries = {name: catalogue.entry(name) for name in names}
    monkeypatch.setattr(catalogue, "built_in", lambda: entries)
    seen = {
        name: {"judged": green.stamp(catalogue.entry(name)).judgement, "tried": green._tiny(name)}
        for name in names
    }
    monkeypatch.setattr(green, "recorded", lambda: seen)
    return names


def test_what_has_not_changed_is_not_run_again(names):
    assert green.tried() == []
    assert green.judged() == []


def test_a_changed_claim_is_run_again(names, monkeypatch):
    seen = green.recorded() | {"path-norm": {"judged": "other", "tried": "other"}}
    monkeypatch.setattr(green, "recorded", lambda: seen)
    assert green.tried() == ["path-norm"]
    assert green.judged() == ["path-norm"]


def test_a_changed_pipeline_is_tried_on_every_claim(names, monkeypatch):
    monkeypatch.setattr(green, "_pipeline", lambda: "another contract")
    assert green.tried() == names
    assert green.judged() == []


def test_every_night_it_is_all(names, monkeypatch):
    monkeypatch.setattr(green, "EVERY", True)
    assert green.tried() == names
    assert green.judged() == names


@pytest.mark.parametrize(
    "module", ["engine.run", "engine.judge", "core.checks", "site.drawing._panel"]
)
def test_the_pipeline_is_what_runs_judges_and_draws(module):
    assert f"steepest.{module}" in green._pipeline()
