"""Claims through the whole pipeline with little arithmetic, whatever their verdicts: those that have changed, or all.

Every night it is all of them. A claim has changed if its source has, or that of anything that it or the contract
imports: ``green.py`` keeps the record.
"""

import pytest

from steepest import catalogue
from steepest.app import contract
from steepest.app.authoring import write_template
from tests.contract.green import tried


@pytest.mark.parametrize("name", tried())
def test_tiny(name):
    problems = dict(contract.problems(catalogue.entry(name)))
    assert {title: missing for title, missing in problems.items() if missing} == {}


def test_tiny_template(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    problems = dict(contract.problems(catalogue.entry(write_template("my-claim"))))
    assert {title: missing for title, missing in problems.items() if missing} == {}
