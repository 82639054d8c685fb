"""The order of rooms, and habits of style that a reader would notice."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "steepest"
SOURCES = sorted(PACKAGE.rglob("*.py"))
EMPTY = {"found", "each", "known", "rest", "told", "there", "here", "seen"}


def rooms():
    """The table of docs/architecture.md is the order."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    table = text.split("|---|---|")[1].split("\n\n")[0]
    names = [row.split("|")[1].strip(" `/") for row in table.strip().splitlines()]
    return {name.removesuffix(".py"): rank for rank, name in enumerate(names)}


def room_of(module, rank):
    """The room of a dotted module of steepest: the longest one that the table names."""
    if not module.startswith("steepest."):
        return None
    parts = module.split(".")[1:]
    for end in range(len(parts), 0, -1):
        name = "/".join(parts[:end])
        if name in rank:
            return name
    return None


def trees():
    for path in SOURCES:
        yield path, ast.parse(path.read_text("utf-8"))


def test_rooms_import_only_rooms_above_them():
    """Data flow one way, in functions too: what is imported late is imported all the same."""
    rank = rooms()
    wrong = []
    for path, tree in trees():
        dotted = ".".join(("steepest", *path.relative_to(PACKAGE).with_suffix("").parts))
        own = room_of(dotted, rank)
        if path.parent == PACKAGE and path.stem in ("__init__", "__main__"):
            continue
        assert own is not None, f"{dotted} is in no room of docs/architecture.md"
        typing_only = {
            inner
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or node in typing_only or node.level:
                continue
            for alias in node.names:
                other = room_of(f"{node.module}.{alias.name}", rank)
                if other is not None and rank[other] > rank[own]:
                    wrong.append(f"{dotted} imports {node.module}, a room below")
    assert wrong == []


def test_there_is_no_drawer_for_everything():
    drawers = ("utils", "util", "helpers", "misc", "common")
    assert not [path for path in SOURCES if path.stem in drawers]


def test_one_assignment_a_line():
    packed = 0
    total = 0
    for _, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                total += 1
                tuples = isinstance(node.targets[0], ast.Tuple)
                packed += tuples and isinstance(node.value, ast.Tuple)
    assert packed <= 0.04 * total, f"{packed} of {total} assignments pack tuples"


def test_names_say_what_they_hold():
    """Of ten thousand names that are given, fewer than six would do for anything."""
    given = [
        node.id
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    assert sum(name in EMPTY for name in given) < 0.0006 * len(given)


def test_claims_are_read_in_minutes():
    """What a reader of a claim feels: how long it is, and how many of its lines hold a bracket or run on."""
    programs = [path for path in SOURCES if path.name == "claim.py"]
    lines = [line for path in SOURCES if "claims" in path.parts for line in lines_of(path)]
    assert median(len(lines_of(path)) for path in programs) <= 345
    assert sum(re.fullmatch(r"\s*[\])}]+,?:?", line) is not None for line in lines) <= 0.074 * len(
        lines
    )
    assert sum(len(line) > 100 for line in lines) <= 0.04 * len(lines)


def lines_of(path):
    return path.read_text("utf-8").splitlines()


def test_the_formatter_is_hardly_ever_skipped():
    skips = sum(path.read_text("utf-8").count("fmt: skip") for path in SOURCES)
    assert skips <= 10


def python(code):
    """What a fresh interpreter prints, without settings of this one."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("JAX_")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("imported", "absent"),
    [
        ("steepest, steepest.claims, steepest.catalogue", ("jax", "numpy", "matplotlib")),
        ("steepest.core.checks, steepest.engine.crew, steepest.app.cli", ("jax", "matplotlib")),
        ("steepest.site.pages, steepest.app.run", ("jax", "matplotlib")),
        ("steepest.programs", ("steepest.dynamics",)),
        ("steepest.statistics", ("jax", "scipy", "matplotlib")),
        ("steepest.engine.run, steepest.engine.sweeps", ("matplotlib", "bokeh")),
    ],
)
def test_imports_are_light(imported, absent):
    code = f"import sys, {imported}; print([m for m in {absent!r} if m in sys.modules])"
    assert python(code) == "[]"


@pytest.mark.parametrize("tier", ["thorough", "nightly"])
def test_every_test_of_a_tier_is_one(tier):
    """A test that was renamed would else come back to the quick tests unseen."""
    for line in (ROOT / "tests" / f"{tier}.txt").read_text("utf-8").splitlines():
        file, _, rest = line.partition("::")
        name = rest.partition("[")[0].rpartition(".")[2]  # a doctest has its module before it
        is_module = name in (Path(file).stem, Path(file).parent.name)
        pattern = rf"(def|class) {re.escape(name)}\b"
        assert is_module or re.search(pattern, (ROOT / file).read_text("utf-8")), line


def test_importing_changes_no_global_state():
    code = (
        "import jax, steepest.app.api, steepest.nn.networks, steepest.programs, steepest.site.pages;"
        "print(jax.config.jax_enable_x64)"
    )
    assert python(code) == "False"
