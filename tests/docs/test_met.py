"""The page of what users met names tests that are there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "met.md"


def named():
    """Yield files and tests as the page names them; a name without a file is in the file before it."""
    file = ""
    for path, test in re.findall(r"`([\w/]*(?:\.py)?)::(\w+)`", PAGE.read_text("utf-8")):
        file = path or file
        yield file, test


def test_every_test_of_the_page_is_there():
    pairs = list(named())
    assert len(pairs) > 20
    for file, test in pairs:
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert test in functions, f"{file}::{test}"
