"""The rooms of the library: what each may import."""

import ast
import subprocess
import sys
from pathlib import Path

import steepest

ROOT = Path(steepest.__file__).parent
# each room imports only rooms above it
ROOMS = ("core", "nn", "linalg", "kernels", "programs", "dynamics", "measurement")


def rooms_imported(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            first, _, rest = name.partition(".")
            if first == "steepest" and (ROOT / rest.split(".")[0]).is_dir():
                yield rest.split(".")[0]


def test_rooms_import_only_rooms_above_them():
    """Imports inside functions count too."""
    for rank, room in enumerate(ROOMS):
        for path in (ROOT / room).rglob("*.py"):
            below = set(rooms_imported(path)) - set(ROOMS[: rank + 1])
            assert not below, f"{path.relative_to(ROOT)} imports {below}"


def test_programs_need_no_integrator():
    code = "import sys, steepest.programs; print([m for m in ('steepest.dynamics', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
