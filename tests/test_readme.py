"""The commands and code of the README, and of the guides that go on from it, do what they say."""

import re
import shlex
from pathlib import Path

import pytest

from steepest.app.authoring import write_template
from steepest.app.cli import _fields, main, read
from steepest.app.sweep import _over
from steepest.catalogue import catalogue, entry, load
from steepest.engine.run import build
from steepest.engine.sweeps import plan
from tests.extras import need

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, flags=re.DOTALL)
SHOWN = ("docs/quickstart.md", "docs/sweeps.md", "docs/trials.md")
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


@pytest.mark.parametrize("page", SHOWN)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for kind, text in re.findall(
        r"```(\w+)\n(.*?)```", (ROOT / page).read_text("utf-8"), flags=re.DOTALL
    ):
        if kind == "python":
            exec(compile(text, page, "exec"), {})


SAMPLES = {
    text.splitlines()[0].removeprefix("$ steepest "): text.splitlines()[1:]
    for kind, text in BLOCKS
    if not kind
}
"""What the README shows of a terminal: each command, and the lines below it; "…" stands for lines left out."""
NUMBER = r"\d+(?:\.\d+)?"


def same(shown, said):
    """Whether two lines have the same words, and numbers that agree to 2 %, as other processors round differently."""
    if re.sub(NUMBER, "0", shown) != re.sub(NUMBER, "0", said):
        return False
    pairs = zip(re.findall(NUMBER, shown), re.findall(NUMBER, said), strict=True)
    return all(float(a) == pytest.approx(float(b), rel=0.02) for a, b in pairs)


def first_difference(shown, said):
    """The first line of a sample that is not where it should be in an output; None where all are."""
    place, left_out = 0, False
    for line in shown:
        if line == "…":
            left_out = True
            continue
        places = range(place, len(said)) if left_out else [place]
        place = next((i for i in places if i < len(said) and same(line, said[i])), -1) + 1
        if place == 0:
            return line
        left_out = False
    return None if left_out or place == len(said) else "…"


def test_a_line_that_no_run_prints_is_noticed():
    said = ["a 1.55 b", "c", "d 3", "e"]
    assert first_difference(["a 1.56 b", "…", "d 3", "…"], said) is None
    assert first_difference(["a 1.55 b", "c", "d 3", "e"], said) is None
    assert first_difference(["a 1.65 b", "…"], said) == "a 1.65 b"
    assert first_difference(["a 1.55 b", "d 3", "…"], said) == "d 3"
    assert first_difference(["…", "d 3", "c", "…"], said) == "c"
    assert first_difference(["a 1.55 b", "c", "d 3"], said) == "…"  # there is more, unsaid


@pytest.mark.parametrize("command", SAMPLES, ids=lambda command: command.split()[0])
def test_samples_are_what_a_run_says(command, capsys, tmp_path, monkeypatch):
    """With the README's own model, where it is measured."""
    monkeypatch.chdir(tmp_path)
    if command.startswith("measure"):
        need("torch")
        (model,) = (text for kind, text in BLOCKS if kind == "python")
        (tmp_path / "my_model.py").write_text(model, "utf-8")
    assert main(shlex.split(command)) == 0
    said = capsys.readouterr().out.splitlines()
    assert first_difference(SAMPLES[command], said) is None


def test_the_sample_claim_says_what_is_shown():
    """Without a run: its clauses and a wrong theory, as the claim has them now."""
    (shown,) = (lines for command, lines in SAMPLES.items() if command.startswith("run"))
    text = "\n".join(shown)
    assert all(
        f"says: “{clause}” — holds" in text for clause in load(entry("edge-of-stability")).says
    )


def test_the_number_of_claims_is_the_catalogue_s():
    assert f"There are {len(catalogue())} claims" in README


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
