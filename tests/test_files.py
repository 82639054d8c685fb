"""A reader's own file takes no module's place, whatever it is called, and finds its neighbours."""

import importlib
import json
import subprocess
import sys

import pytest

from steepest import files
from steepest.core.errors import UserError
from steepest.files import import_file
from steepest.measurement import Builder

BUILD = "import helper\n\ndef build():\n    return helper.WIDTH, 'loss', 'data'\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "helper.py").write_text("WIDTH = 3\n", "utf-8")
    yield tmp_path
    for name in [
        name for name in files._BROUGHT if name in ("helper", "optax", "parts", "parts.inner")
    ]:
        sys.modules.pop(name, None)
        files._BROUGHT.discard(name)


@pytest.mark.parametrize(
    "name", ["json", "numpy", "colorsys", "steepest", "optax", "site", "helper2"]
)
def test_a_file_shadows_no_module(folder, name):
    """Of the standard library, loaded or not, and of packages, loaded or not."""
    before = dict(sys.modules)
    places = list(sys.path), list(sys.meta_path)
    file = folder / f"{name}.py"
    file.write_text(BUILD, "utf-8")
    assert Builder.of(f"{file}:build")().model == 3
    assert sys.modules.get(name) is before.get(name)
    assert (list(sys.path), list(sys.meta_path)) == places
    if name != "helper2":
        assert str(folder) not in str(importlib.import_module(name).__file__)


def test_what_a_file_imports_gets_its_own_modules(folder):
    """A package that is imported while the file runs looks for the standard library, and finds it."""
    (folder / "wave.py").write_text("import sndhdr_of_nobody\n", "utf-8")
    file = folder / "chunk.py"
    file.write_text("import wave\nOPENED = wave.Wave_read\n" + BUILD, "utf-8")
    sys.modules.pop("wave", None)
    assert import_file(file).OPENED.__module__ == "wave"


def test_a_neighbour_called_like_a_package_is_the_files_own_and_nobody_elses(folder):
    (folder / "optax.py").write_text("MINE = 1\n", "utf-8")
    code = (
        "import sys; from pathlib import Path; from steepest.files import import_file\n"
        f"module = import_file(Path({str(folder / 'my_model.py')!r}))\n"
        "import optax; print(module.optax.MINE, hasattr(optax, 'sgd'))"
    )
    (folder / "my_model.py").write_text("import optax\n", "utf-8")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["1", "True"], done.stderr


def test_neighbours_import_each_other_and_packages_of_the_folder(folder):
    (folder / "parts").mkdir()
    (folder / "parts" / "__init__.py").write_text("from parts.inner import DEPTH\n", "utf-8")
    (folder / "parts" / "inner.py").write_text("import helper\nDEPTH = helper.WIDTH + 1\n", "utf-8")
    (folder / "bare").mkdir()
    (folder / "bare" / "deep.py").write_text("LOSS = 'l'\n", "utf-8")  # a folder without __init__
    file = folder / "json.py"
    file.write_text(
        "from parts import DEPTH\nfrom bare.deep import LOSS\n\ndef build():\n    return DEPTH, LOSS, 0\n",
        "utf-8",
    )
    built = Builder.of(f"{file}:build")()
    assert (built.model, built.loss) == (4, "l")
    assert json.loads("[1]") == [1] and sys.modules["json"] is json


def test_a_builders_file_runs_anew_each_time(folder):
    file = folder / "counted.py"
    file.write_text(
        "CALLS = []\n\ndef build():\n    CALLS.append(0)\n    return len(CALLS), 0, 0\n", "utf-8"
    )
    assert [Builder.of(f"{file}:build")().model for _ in range(2)] == [1, 1]


def test_a_session_keeps_its_own_helper_of_the_same_folder(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    helper = importlib.import_module("helper")
    (folder / "my_model.py").write_text(BUILD, "utf-8")
    assert Builder.of(f"{folder / 'my_model.py'}:build")().model == 3
    assert sys.modules["helper"] is helper
    del sys.modules["helper"]


@pytest.mark.parametrize(
    "text", ["raise SystemExit(3)\n", "import nothing_of_this_name\n", "def f(:\n"]
)
def test_a_file_that_does_not_import_leaves_nothing_behind(folder, text):
    before = set(sys.modules), list(sys.path), list(sys.meta_path)
    (folder / "random.py").write_text("import helper\n" + text, "utf-8")
    with pytest.raises(UserError, match="random.py does not import: "):
        Builder.of(f"{folder / 'random.py'}:build")
    left = set(sys.modules) - before[0] - {"helper"}
    assert not left and (list(sys.path), list(sys.meta_path)) == before[1:]
