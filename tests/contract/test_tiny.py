"""Every claim through the whole pipeline in about a second, whatever its verdict."""

import pytest

from steepest import catalogue
from steepest.app import contract
from steepest.app.authoring import write_template


@pytest.mark.parametrize("name", list(catalogue.built_in()))
def test_tiny(name):
    problems = dict(contract.problems(catalogue.entry(name)))
    assert {title: missing for title, missing in problems.items() if missing} == {}


def test_tiny_template(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    problems = dict(contract.problems(catalogue.entry(write_template("my-claim"))))
    assert {title: missing for title, missing in problems.items() if missing} == {}
