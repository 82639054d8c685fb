"""What the record of green runs asks for again."""

from types import SimpleNamespace

import pytest

from steepest import catalogue
from tests.claims import conftest as hooks
from tests.contract import green


@pytest.fixture
def names(monkeypatch):
    """Two claims, both recorded as they are."""
    names = ["catapult", "path-norm"]
    monkeypatch.setattr(green, "EVERY", False)
    entries = {name: catalogue.entry(name) for name in names}
    monkeypatch.setattr(catalogue, "built_in", lambda: entries)
    seen = {
        name: {
            "judged": green.stamp(catalogue.entry(name)).judgement,
            "tried": green._tiny(name),
            "tested": green._tests(name),
        }
        for name in names
    }
    monkeypatch.setattr(green, "recorded", lambda: seen)
    return names


@pytest.fixture
def left_to_the_night(names, monkeypatch):
    """Return which files the hook leaves to the night where pytest is called with an argument."""
    monkeypatch.setattr(green, "tested", lambda: ["path-norm"])
    monkeypatch.setattr(
        green, "files_of", lambda name: [green.TESTS / f"test_{name.replace('-', '_')}.py"]
    )

    def left(argument, keyword=""):
        config = SimpleNamespace(
            args=[argument],
            option=SimpleNamespace(keyword=keyword),
            invocation_params=SimpleNamespace(dir=green.ROOT),
        )
        marks = {}
        items = [
            SimpleNamespace(
                path=path, add_marker=lambda mark, path=path: marks.update({path: mark})
            )
            for name in names
            for path in green.files_of(name)
        ]
        hooks.pytest_collection_modifyitems(config, items)
        return {item.path.stem: item.path in marks for item in items}

    return left


def test_what_has_not_changed_is_not_run_again(names):
    assert green.tried() == []
    assert green.judged() == []
    assert green.tested() == []


def test_a_changed_claim_is_run_again(names, monkeypatch):
    seen = green.recorded() | {"path-norm": {"judged": "other", "tried": "other"}}
    monkeypatch.setattr(green, "recorded", lambda: seen)
    assert green.tried() == ["path-norm"]
    assert green.judged() == ["path-norm"]


def test_a_changed_pipeline_is_tried_on_every_claim(names, monkeypatch):
    monkeypatch.setattr(green, "_pipeline", lambda: "another contract")
    assert green.tried() == names
    assert green.judged() == []


def test_claims_are_tested_again_where_a_file_of_theirs_has_changed(names, monkeypatch):
    (own,) = green.files_of("path-norm")
    before = green._test_file
    monkeypatch.setattr(green, "_test_file", lambda path: "new" if path == own else before(path))
    assert green.tested() == ["path-norm"]
    # the file that goes through all claims
    monkeypatch.setattr(green, "_test_file", lambda path: "new" if path != own else before(path))
    assert green.tested() == names


def test_the_file_for_all_claims_does_not_change_with_one_of_them(names, monkeypatch):
    """It imports some claims by name, whose code is in their own stamps."""
    digest = green._test_file(green.TESTS / green.ALL_CLAIMS)
    before = green.closure
    changed = lambda source, names: [
        text + "new" if text.startswith("steepest.claims.") else text
        for text in before(source, names)
    ]
    monkeypatch.setattr(green, "closure", changed)
    monkeypatch.setattr(green, "_kept", Forgetful)
    green._test_file.cache_clear()
    assert green._test_file(green.TESTS / green.ALL_CLAIMS) == digest
    green._test_file.cache_clear()


class Forgetful:
    """A table that keeps nothing."""

    def get(self, key):
        return None

    def put(self, key, value):
        pass


def test_a_test_answers_for_its_helpers():
    (on_subject,) = green.files_of("class-covariances")[1:]
    tree = green.read("", on_subject).tree
    assert green.TESTS / "on_subject.py" in green._helpers(tree)


def test_unchanged_claims_are_left_to_the_night_unless_they_are_asked_for(left_to_the_night):
    assert left_to_the_night("tests") == {"test_catapult": True, "test_path_norm": False}
    assert left_to_the_night("tests/claims/test_catapult.py")["test_catapult"] is False
    assert left_to_the_night("tests", keyword="catapult")["test_catapult"] is False


def test_every_night_it_is_all(names, monkeypatch):
    monkeypatch.setattr(green, "EVERY", True)
    assert green.tested() == names
    assert green.tried() == names
    assert green.judged() == names


@pytest.mark.parametrize(
    "module", ["engine.run", "kit._judging", "core.checks", "site.drawing._panel"]
)
def test_the_pipeline_is_what_runs_judges_and_draws(module):
    assert f"steepest.{module}" in green._pipeline()
