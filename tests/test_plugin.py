"""The example package, installed into an empty folder and run from there."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parent.parent / "examples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source") / "plugin"
    shutil.copytree(PLUGIN, source)  # what a build leaves behind is not left here
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", str(folder)]
    command = [sys.executable, "-m", "pip", "install", *options, str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def steepest(*words, site, cwd):
    environment = os.environ | {"PYTHONPATH": str(site)}
    command = [sys.executable, "-m", "steepest", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd)


def test_it_is_listed_with_where_it_comes_from(installed, tmp_path):
    done = steepest("list", "--json", site=installed, cwd=tmp_path)
    (line,) = [line for line in json.loads(done.stdout) if line["claim"] == "heavy-ball-threshold"]
    assert line["origin"] == "heavy-ball-claims 1.0"


def test_it_runs_is_kept_and_has_a_page(installed, tmp_path):
    words = ("run", "heavy-ball-threshold", "--preset", "tiny", "--json")
    done = steepest(*words, site=installed, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "holds"
    assert steepest("atlas", site=installed, cwd=tmp_path).returncode == 0
    page = (tmp_path / "atlas" / "heavy-ball-threshold" / "index.html").read_text("utf-8")
    assert "heavy-ball-claims 1.0" in page


def test_it_keeps_the_contract(installed, tmp_path):
    done = steepest("check", "heavy-ball-threshold", site=installed, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_it_the_name_is_unknown(tmp_path):
    done = steepest("run", "heavy-ball-threshold", site=tmp_path, cwd=tmp_path)
    assert done.returncode == 2
    assert "no claim" in done.stderr
