"""What can be read from a claim's source, for every claim; nothing runs."""

import ast
import re
from pathlib import Path

import pytest

import steepest
from steepest import catalogue
from steepest.app import contract
from steepest.app.authoring import write_template

NAMES = list(catalogue.built_in())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("look", contract.STATIC)
def test_static(name, look):
    assert contract.STATIC[look](catalogue.load(name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_has_a_tiny_preset(name):
    assert catalogue.load(name).tiny


@pytest.mark.parametrize("look", contract.STATIC)
def test_the_template_is_a_sound_claim(look, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write_template("my-claim")
    assert contract.STATIC[look](catalogue.load(path)) == []


def test_a_preset_whose_fields_do_not_go_together_is_named():
    """The full preset of this claim could not be built, and nobody had run it."""

    class Twice(catalogue.load("influence-random-walk")):
        full = {"width": 128}

    problems = contract.is_described(Twice)
    assert any(problem.startswith("full: widths are others than width") for problem in problems)


def test_texts_of_fields_begin_with_their_noun():
    """“--outputs 16 of the layer” would begin in the middle of a phrase."""
    midway = re.compile(r"(of|in|at|for|to|from|with|over|by|on|under|before|after|per) ")
    texts = [
        ast.unparse(call.args[1]).removeprefix("f")[1:]  # without its quotation mark
        for path in Path(steepest.__file__).with_name("claims").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call)
        and ast.unparse(call.func) == "kit.param"
        and len(call.args) > 1
    ]
    assert len(texts) > 1000
    assert [text for text in texts if midway.match(text)] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_first_sentence_is_one_that_a_list_can_show(name):
    says = catalogue.entry(name).says
    assert len(says) <= 100
    assert ";" not in says
    assert says.endswith(".")
