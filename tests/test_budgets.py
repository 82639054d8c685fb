"""Budgets of size: a file, a claim, a function that outgrows them is two."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "steepest").rglob("*.py"))
CLAIMS = sorted((ROOT / "src" / "steepest" / "claims").glob("*/[a-z]*.py"))


def name(path):
    return str(path.relative_to(ROOT))


def functions(path):
    tree = ast.parse(path.read_text("utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def body_lines(node):
    """Lines of a function below its signature and docstring: documentation is not what makes a function long."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_files_and_functions(path):
    assert len(path.read_text("utf-8").splitlines()) <= 300
    for node in functions(path):
        assert body_lines(node) <= 40, f"{node.name} has {body_lines(node)} lines"


def code_lines(path):
    """Lines that hold code: no imports, docstrings, comments or blanks, and not the prose that goes to the page."""
    text = path.read_text("utf-8")
    prose = {"statement", "source", "corrections", "remarks"}
    left_out = set()
    for node in ast.walk(ast.parse(text)):
        names = {target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)}
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Import | ast.ImportFrom) or docstring or names & prose:
            left_out |= set(range(node.lineno, node.end_lineno + 1))
    kept = [line.strip() for i, line in enumerate(text.splitlines(), 1) if i not in left_out]
    return sum(bool(line) and not line.startswith("#") for line in kept)


@pytest.mark.parametrize("path", CLAIMS, ids=name)
def test_claims_are_thin(path):
    """At most 150 lines of code."""
    assert code_lines(path) <= 150


def test_rooms_import_only_rooms_above_them():
    """Data flow one way: the table of docs/architecture.md is the order."""
    table = (ROOT / "docs" / "architecture.md").read_text("utf-8").split("|---|---|")[1].split("\n\n")[0]
    rooms = [row.split("|")[1] for row in table.strip().splitlines()]
    rank = {
        room.strip(" `").split("/")[0].removesuffix(".py"): i for i, row in enumerate(rooms) for room in row.split(",")
    }
    for path in SOURCES:
        parts = path.relative_to(ROOT / "src" / "steepest").parts
        room = parts[0].removesuffix(".py")
        if room in ("__init__", "__main__"):
            continue
        assert room in rank, f"{room} is not in docs/architecture.md"
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("steepest."):
                other = node.module.split(".")[1]
                assert rank[other] <= rank[room], f"{name(path)} imports {node.module}, a room below"


def test_there_is_no_drawer_for_everything():
    assert not [path for path in SOURCES if path.stem in ("utils", "util", "helpers", "misc", "common")]


def test_importing_the_package_is_light_and_changes_nothing():
    import os
    import subprocess
    import sys

    environment = {key: value for key, value in os.environ.items() if not key.startswith("JAX_")}
    code = (
        "import sys, steepest, steepest.claims; print([m for m in ('jax', 'numpy', 'matplotlib') if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment).stdout.strip()
        == "[]"
    )
    code = "import jax, steepest.api, steepest.networks, steepest.margins; print(jax.config.jax_enable_x64)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment).stdout.strip()
        == "False"
    )
