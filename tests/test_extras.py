"""The suite is collected whatever extras are missing, and what they skip is named, counted and can be run later."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.extras import EXTRA_OF, EXTRAS, ROOT, MissingPackage, missing_package, need

OPTIONAL = [extra for extra in EXTRAS if extra != "test"]
WITHOUT = """
from importlib.machinery import PathFinder

found = PathFinder.find_spec

@classmethod
def find_spec(cls, name, path=None, target=None):
    return None if name.partition(".")[0] in {blocked!r} else found(name, path, target)

PathFinder.find_spec = find_spec
"""
"""What makes every Python process that starts with it one of a machine where some packages are not installed."""


def without(extras, *words, cwd):
    """Run pytest in a folder without the packages of these extras; return its exit code and output."""
    blocked = [package for extra in extras for package in EXTRAS[extra]]
    with TemporaryDirectory() as folder:
        # workers of pytest are processes of their own, which read this too
        (Path(folder) / "sitecustomize.py").write_text(WITHOUT.format(blocked=blocked))
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words],
            cwd=cwd,
            env=os.environ
            | {"PYTHONPATH": f"{folder}:{ROOT}", "STEEPEST_TEST_LISTS": str(cwd / "lists")},
            capture_output=True,
            text=True,
        )
    return done.returncode, done.stdout + done.stderr


def test_doctests_are_collected_without_any_extra():
    """As on a fresh machine, where the adapters of torch made four errors and the command exit with 1."""
    code, said = without(OPTIONAL, "src", "--co", "-n0", cwd=ROOT)
    assert code == 0, said
    assert "src/steepest/measurement/adapters/_torch.py::needs torch" in said
    assert "src/steepest/site/book/_extension.py::needs book" in said


@pytest.mark.parametrize("extra", OPTIONAL)
def test_everything_is_collected_without_one_extra(extra):
    code, said = without([extra], "--co", "-n0", cwd=ROOT)
    assert code == 0, said


@pytest.fixture
def suite(tmp_path):
    """A suite of its own: a module that needs torch, a test that does, and a test that does not."""
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tests.extras"]\n')
    (tmp_path / "test_module.py").write_text("import torch\n\n\ndef test_a():\n    pass\n")
    (tmp_path / "test_some.py").write_text(
        "from tests.extras import need\n\n\ndef test_b():\n    need('torch')\n\n\ndef test_c():\n    pass\n"
    )
    return tmp_path


@pytest.mark.parametrize("processes", ["0", "2"])
def test_what_is_skipped_is_listed_once(suite, processes):
    """In one process and in several, of which none reports a collection that was skipped."""
    words = ["-n", processes, "-p", "no:cacheprovider", "--rootdir", str(suite), "-q", "-rs"]
    code, said = without(["torch"], *words, cwd=suite)
    assert code == 0
    assert "1 passed, 2 skipped" in said, said
    assert "2 skipped, as they need packages of steepest[torch]" in said
    assert "needs torch: pip install 'steepest[torch]'" in said
    assert (suite / "lists" / "torch").read_text().split() == [
        "test_module.py",
        "test_some.py::test_b",
    ]


def test_an_error_of_our_own_is_no_missing_extra(suite):
    (suite / "test_broken.py").write_text("import steepest.no_such_room\n")
    code, said = without(["torch"], "-n0", "--rootdir", str(suite), cwd=suite)
    assert code == 2
    assert "no_such_room" in said


def test_what_an_extra_brings_is_known():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    for extra in OPTIONAL:
        names = {re.match(r"[\w-]+", line)[0].replace("-", "_") for line in extras[extra]}
        # pandas comes with xarray, which every claim needs
        assert names - {"setuptools", "steepest", "pandas"} <= set(EXTRA_OF), extra


def test_only_packages_of_extras_may_be_missing():
    with pytest.raises(
        MissingPackage, match=r"needs wandb: pip install 'steepest\[integrations\]'"
    ):
        raise MissingPackage("wandb")
    with pytest.raises(ModuleNotFoundError):
        need("no_such_package")
    assert missing_package(ModuleNotFoundError(name="torch.nn")) == "torch"
    assert missing_package(ModuleNotFoundError(name="steepest.torch")) is None
    assert missing_package(ValueError()) is None
