"""The README's commands and code do what they say."""

import re
import shlex
from pathlib import Path

import pytest

from steepest.claims import catalogue, entry
from steepest.cli import _fields, _parser
from steepest.progress._sweep import _over
from steepest.sweeping import plan

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)
GUIDES = README + (ROOT / "docs" / "sweeps.md").read_text("utf-8").replace("\\\n", "")
COMMANDS = [
    line.partition("#")[0].strip()
    for kind, text in re.findall(r"```(\w+)\n(.*?)```", GUIDES, flags=re.DOTALL)
    if kind == "sh"
    for line in text.splitlines()
    if line.startswith("steepest ")
]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_are_understood(line):
    known, rest = _parser().parse_known_args(shlex.split(line)[1:])
    if rest:
        (claim,) = known.claims if known.command == "run" else [known.claim]
        assert _fields(claim, known.preset, rest)
    for claim in getattr(known, "claims", []):
        entry(claim)
    if known.command == "sweep":
        over = _over(known.over) if known.over else None
        plan(known.claim, over, sobol=known.sobol, changes=_fields(known.claim, "quick", rest) if rest else {})


@pytest.mark.parametrize("page", ["README.md", "docs/sweeps.md"])
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for kind, text in re.findall(r"```(\w+)\n(.*?)```", (ROOT / page).read_text("utf-8"), flags=re.DOTALL):
        if kind == "python":
            exec(compile(text, page, "exec"), {})


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
