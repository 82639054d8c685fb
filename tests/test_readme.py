"""The README's commands and code do what they say."""

import re
import shlex
from pathlib import Path

import pytest

from steepest.claims import catalogue, entry
from steepest.cli import _fields, _parser

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = [
    line.partition("#")[0].strip()
    for kind, text in BLOCKS
    if kind == "sh"
    for line in text.splitlines()
    if line.startswith("steepest ")
]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_are_understood(line):
    known, rest = _parser().parse_known_args(shlex.split(line)[1:])
    if rest:
        (claim,) = known.claims
        assert _fields(claim, known.preset, rest)
    for claim in getattr(known, "claims", []):
        entry(claim)


def test_python_blocks_run():
    for kind, text in BLOCKS:
        if kind == "python":
            exec(compile(text, "README.md", "exec"), {})


def test_the_table_of_claims_is_the_catalogue():
    table = dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", README, flags=re.MULTILINE))
    assert table == {name: found.says for name, found in catalogue().items()}


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_first_command_needs_nothing_but_python():
    first, second = (text for kind, text in BLOCKS if kind == "sh" and "venv" in text)
    assert first.startswith("python3 -m venv .venv")
    assert second.startswith("python3 -m venv .venv")
    assert first.strip().endswith("steepest run")
    assert second.strip().endswith("pytest")
