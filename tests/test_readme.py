"""The README's commands and code do what they say."""

import re
import shlex
from pathlib import Path

import pytest

from steepest.app.authoring import write_template
from steepest.app.cli import _fields, read
from steepest.app.sweep import _over
from steepest.catalogue import catalogue, entry, load
from steepest.engine.run import build
from steepest.engine.sweeps import plan

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)
SHOWN = ("docs/sweeps.md", "docs/trials.md")
GUIDES = "\n".join([README, *((ROOT / page).read_text("utf-8") for page in SHOWN)])
COMMANDS = [
    line.partition("#")[0].strip()
    for kind, text in re.findall(r"```(\w+)\n(.*?)```", GUIDES.replace("\\\n", ""), flags=re.DOTALL)
    if kind == "sh"
    for line in text.splitlines()
    if line.startswith("steepest ")
]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_are_understood(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_template("my_claim.py")  # the reader has one by then
    known, words = read(shlex.split(line)[1:])
    if known.command == "run":
        entries = [entry(claim) for claim in known.claims]
        if words:
            (one,) = entries
            build(load(one), known.preset, _fields(one, words))
    if known.command == "sweep":
        changes = _fields(entry(known.claim), words)
        over = _over(known.over) if known.over else None
        plan(known.claim, over, sobol=known.sobol, changes=changes)


@pytest.mark.parametrize("page", ["README.md", *SHOWN])
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for kind, text in re.findall(
        r"```(\w+)\n(.*?)```", (ROOT / page).read_text("utf-8"), flags=re.DOTALL
    ):
        if kind == "python":
            exec(compile(text, page, "exec"), {})


def test_the_number_of_claims_is_the_catalogue_s():
    assert f"Each of {len(catalogue())} statements" in README


def test_the_book_has_as_many_parts_as_it_says():
    words = (
        "",
        "One",
        "Two",
        "Three",
        "Four",
        "Five",
        "Six",
        "Seven",
        "Eight",
        "Nine",
        "Ten",
        "Eleven",
        "Twelve",
    )
    chapters = len(list((ROOT / "docs" / "chapters").glob("*.md")))
    tutorials = len(list((ROOT / "docs" / "tutorials").glob("*.py")))
    assert f"{words[chapters]} chapters, {words[tutorials].lower()} tutorials" in README


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_first_command_needs_nothing_but_python():
    first, second = (text for kind, text in BLOCKS if kind == "sh" and "-m venv" in text)
    assert first.startswith("python3 -m venv .venv")
    assert second.startswith("python3 -m venv .venv")
    assert first.strip().endswith("steepest run")
    assert second.strip().endswith("pytest")
