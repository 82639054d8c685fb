"""The tutorials run as scripts and as notebooks, and every number that they find is printed by a cell."""

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from steepest.site.book._documents import write_notebooks
from tests.extras import need

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
# what each must have found
FOUND = {
    "first_claim": [
        "catapult: holds, agrees in",
        "threshold wrong by   0.0%: holds",
        "threshold wrong by   2.0%: fails",
        "multiple=5: out-of-range",
        "has no field 'multiples_of_lambda'",
    ],
    "your_own_claim": [
        "inconclusive: no power",
        "fails: disagrees",
        "holds: agrees in 1 challenged check, 1 rival rejected",
        "lrs=(0.02, 0.04): inconclusive, no power: the data do not reject",
        "noise-floor: nothing is missing",
        "[noise-claims 1.0]",
    ],
    "phase_diagram": [
        "the cluster gave the same bits: True",
        "after job 3: 44 of 66 points are stored",
        "jobs and the rest gave the same bits: True",
        "66 of 66 points: 58 ✓ holds",
    ],
    "measure_training": [
        "? at the edge of stability since step",
        "stable-step holds here",
        "rejected: 1/λ_max",
        "exit code 0, run.html has",
    ],
    "activation_to_prediction": ["weights from N(0,", "largest stable step"],
    "few_images": [
        "right of 300, trained on 50",
        "100 images, convolutional NTK over fully connected, NTK: +0.0",
    ],
    "neural_tangents": ["inputs 0 and 60 are the same", "row 60 of the inputs is zero"],
}


def cells(name: str) -> list[tuple[str, str]]:
    """Return the cells of a tutorial: ``"markdown"`` or ``"code"``, and the text without comment signs."""
    text = (FOLDER / f"{name}.py").read_text("utf-8")
    parts = re.split(r"^# %%(.*)\n", text, flags=re.MULTILINE)[1:]
    found = []
    for head, body in zip(parts[::2], parts[1::2], strict=True):
        if head.strip() == "[markdown]":
            found.append(("markdown", re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip()))
        else:
            found.append(("code", body.strip()))
    return found


def prose(name: str) -> str:
    """Return what a tutorial says, without code, formulas, tables, headings and addresses."""
    text = "\n\n".join(body for kind, body in cells(name) if kind == "markdown")
    text = re.sub(r"^```.*?^```|\$\$.*?\$\$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`]*`|^[|].*$|^#+ .*$", "", text, flags=re.MULTILINE)
    return re.sub(r"\]\([^)]*\)", "]", text)


def test_each_is_in_the_list():
    listed = (FOLDER / "index.md").read_text("utf-8")
    tree = re.search(r"```\{toctree\}\n(.*?)```", listed, flags=re.DOTALL)
    assert tree is not None
    names = [line for line in tree[1].splitlines() if line and not line.startswith(":")]
    assert sorted(names) == NAMES
    assert [name for name in names if f"({name}.py)" not in listed] == []
    assert set(FOUND) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_its_form(name):
    parts = cells(name)
    kind, first = parts[0]
    assert kind == "markdown"
    assert re.match(r"# \S", first)
    for promise in ("**You will**", "**It takes**", "**You need**"):
        assert promise in first
    for (before, _), (kind, code) in itertools.pairwise(parts):
        assert kind == "markdown" or before == "markdown", f"no prose before:\n{code}"
    kind, last = parts[-1]
    assert kind == "markdown"
    assert "## Where next" in last
    assert 500 <= len(prose(name).split()) <= 1200


@pytest.mark.parametrize("name", NAMES)
def test_its_prose_has_no_results(name):
    """A number in the prose is a setting that the code has too, a small whole number, or one of a formula."""
    code = "\n".join(body for kind, body in cells(name) if kind == "code")
    promises = ("**It takes**", "**You need**")
    text = "\n\n".join(part for part in prose(name).split("\n\n") if not part.startswith(promises))
    for number in re.findall(r"\d+(?:[.,]\d+)*(?:e-?\d+)?(?: ?%)?", text):
        small = re.fullmatch(r"\d", number)
        known = re.search(rf"(?<![\d.]){re.escape(number.rstrip(' %'))}(?![\d.])", code)
        assert small or known, f"{number} is typed"


@pytest.mark.parametrize("name", [*NAMES, "index"])
def test_links_lead_somewhere(name):
    path = FOLDER / ("index.md" if name == "index" else f"{name}.py")
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text("utf-8")):
        assert (FOLDER / target).exists(), target


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_as_a_script(name, tmp_path):
    """In an empty folder, with warnings as errors; nothing is left behind there or where temporary files go."""
    here = tmp_path / "here"
    scratch = tmp_path / "scratch"
    here.mkdir()
    scratch.mkdir()
    environment = {
        **os.environ,
        "TMPDIR": str(scratch),
        "PYTHONUTF8": "1",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", str(FOLDER / f"{name}.py")],
        cwd=here,
        env=environment,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    left = [path.name for folder in (here, scratch) for path in folder.iterdir()]
    assert [name for name in left if not name.startswith("torchinductor")] == []  # torch's cache
    assert "\x1b" not in done.stdout + done.stderr
    assert [text for text in FOUND[name] if text not in done.stdout] == []
    look = LOOKS.get(name)
    if look is not None:
        look(done.stdout)


def widths_agree(printed: str) -> None:
    """A wide network answers what its limit predicted: far nearer than its size, and nearer when it is wider."""
    lines = re.findall(r"width +(\d+): outputs of size ([\d.]+) differ .* by ([\d.]+)", printed)
    (_, _, narrow), (_, size, wide) = lines
    assert float(wide) < 0.15 * float(size)
    assert float(wide) < float(narrow)
    (accuracy,) = re.findall(r"accuracy on the test images.*: (\d+)%", printed)
    assert int(accuracy) > 80


def closed_forms_agree(printed: str) -> None:
    """All comparisons but those of different conventions, and of steps with a flow, agree to rounding."""
    found = dict(re.findall(r"^(.*): differ by (\S+)$", printed, flags=re.MULTILINE))
    others = {"NTK of both conventions", "five steps and the flow of the same time"}
    assert others < set(found)
    assert len(found) > 15
    for what, difference in found.items():
        assert (float(difference) < 1e-9) == (what not in others), what
    (away,) = re.findall(r"at most ([\d.]+) standard errors", printed)
    assert float(away) < 4


LOOKS = {"activation_to_prediction": widths_agree, "neural_tangents": closed_forms_agree}


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_as_a_notebook(name, tmp_path):
    """Each cell runs, prints plain text, and some show a table or a picture."""
    jupytext = need("jupytext")
    nbclient = need("nbclient")
    need("ipykernel")
    nbformat = need("nbformat")
    notebook = jupytext.read(FOLDER / f"{name}.py")
    nbformat.validate(notebook)
    options = {"timeout": 300, "resources": {"metadata": {"path": str(tmp_path)}}}
    nbclient.NotebookClient(notebook, **options).execute()
    outputs = [one for cell in notebook.cells for one in cell.get("outputs", [])]
    streams = "".join(one.text for one in outputs if one.output_type == "stream")
    assert "\x1b" not in streams
    assert [text for text in FOUND[name] if text not in streams] == []
    shown = [one.data for one in outputs if one.output_type in ("display_data", "execute_result")]
    assert [data for data in shown if "\x1b" in data.get("text/plain", "")] == []
    pictures = [data for data in shown if "text/html" in data or "image/png" in data]
    assert pictures or name == "neural_tangents"
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_is_the_same_in_every_build(tmp_path):
    """Its cells are called by their places; ids that are drawn would make two books of one source differ."""
    need("jupytext")
    written = []
    for build in ("one", "two"):
        folder = tmp_path / build / "tutorials"
        folder.mkdir(parents=True)
        (folder / "few.py").write_text("# %% [markdown]\n# # Few\n\n# %%\n1 + 1\n", "utf-8")
        write_notebooks(tmp_path / build)
        written.append((folder / "notebooks" / "few.ipynb").read_bytes())
    assert written[0] == written[1]
    assert [cell["id"] for cell in json.loads(written[0])["cells"]] == ["cell-1", "cell-2"]
