import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steepest.cli import main
from tests.small import small_catalogue

FREE_OF = """
import sys
from steepest.cli import main
main({})
print(*(name for name in ('jax', 'torch', 'matplotlib', 'scipy') if name in sys.modules), file=sys.stderr)
"""


@pytest.fixture(scope="module", autouse=True)
def _claims(tmp_path_factory):
    with small_catalogue(tmp_path_factory.mktemp("claims")):
        yield


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_json_is_one_object_and_nothing_else(capsys):
    assert main(["run", "plain-decay", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["claim"] == "plain-decay"
    assert record["verdict"] == "holds"
    assert record["params"]["rate"] == 0.5


def test_json_of_several_claims_is_a_list(capsys):
    assert main(["run", "plain-decay", "wide-decay", "--json"]) == 0
    assert [record["claim"] for record in json.loads(capsys.readouterr().out)] == ["plain-decay", "wide-decay"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ([], 0),
        (["--bias", "0.3"], 1),
        (["--bias", "0.05", "--spread", "0.02"], 3),
        (["--rate", "1.5"], 3),
    ],
)
def test_exit_codes(fields, code):
    assert main(["run", "plain-decay", *fields]) == code


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "plane-decay"], "did you mean 'plain-decay'?"),
        (["run", "plain-decay", "--rat", "1"], "did you mean 'rate'?"),
        (["run", "plain-decay", "--rate", "-1"], "rate must be > 0, got -1"),
        (["run", "plain-decay", "--rate", "abc"], "abc"),
        (["run", "plain-decay", "--rate"], "--rate"),
        (["run", "plain-decay", "--seed", "x"], "invalid int value: 'x'"),
        (["run", "plain-decay", "--preset", "fast"], "invalid choice: 'fast'"),
        (["run", "--rate=1"], "need exactly one claim"),
        (["list", "--chapter", "first"], "there is no chapter 'first'"),
        (["list", "--nonsense"], "unexpected --nonsense"),
        (["show", "plane-decay"], "did you mean"),
        (["atlas", "--results", "nowhere"], "nowhere"),
        (["nonsense"], "invalid choice: 'nonsense'"),
        ([], "required"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(words, sentence, capsys):
    try:
        code = main(words)
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    assert code == 2
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_an_unwritable_folder_is_one_sentence(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert main(["run", "plain-decay", "--out", "file/results"]) == 2
    assert "cannot write to the folder" in capsys.readouterr().err


def test_a_damaged_result_is_reported_in_one_sentence_and_recomputed(capsys, tmp_path):
    main(["run", "plain-decay"])
    (path,) = tmp_path.glob("results/plain-decay/*/arrays.npz")
    path.write_bytes(path.read_bytes()[:50])
    capsys.readouterr()
    assert main(["run", "plain-decay"]) == 0
    assert "is damaged" in capsys.readouterr().err
    assert path.stat().st_size > 50


def test_run_of_everything_ends_with_verdicts_and_the_atlas(capsys, tmp_path):
    assert main(["run"]) in (0, 1, 3)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"atlas: {tmp_path / 'atlas' / 'index.html'}"
    assert (tmp_path / "atlas" / "index.html").is_file()
    assert sum("holds" in line for line in lines) >= 3


def test_a_crash_in_one_claim_does_not_cost_the_others(capsys, monkeypatch):
    from steepest.claims import load

    kind = load("wide-decay")
    monkeypatch.setattr(kind, "observe", lambda self, setting, key: 1 / 0)
    assert main(["run", "--out", "crash"]) == 1
    said = capsys.readouterr()
    assert "crashed" in said.out
    assert "ZeroDivisionError" in said.err
    assert "plain-decay" in said.out


def test_list_and_show(capsys):
    assert main(["list"]) == 0
    assert "plain-decay" in capsys.readouterr().out
    assert main(["list", "--json", "--chapter", "last_steps"]) == 0
    assert {e["claim"] for e in json.loads(capsys.readouterr().out)} == {"growing", "powerless", "unrun"}
    assert main(["show", "plain-decay"]) == 0
    shown = capsys.readouterr().out
    assert "--rate" in shown
    assert "what is kept each step [1/step]" in shown


def test_new_writes_a_claim(capsys):
    assert main(["new", "fresh-claim", "--chapter", "first_steps"]) == 0
    path = Path(capsys.readouterr().out.strip())
    assert "class FreshClaim(Claim)" in path.read_text()


@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["new", "Bad Name"]])
def test_light_commands_import_nothing_heavy(words):
    done = subprocess.run([sys.executable, "-c", FREE_OF.format(words)], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == ""


def test_python_m_steepest_is_the_command():
    done = subprocess.run([sys.executable, "-m", "steepest", "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("steepest 0")


def test_help_lists_every_command():
    done = subprocess.run([sys.executable, "-m", "steepest", "--help"], capture_output=True, text=True)
    assert all(word in done.stdout for word in ("run", "list", "show", "atlas", "new"))


def test_a_killed_run_loses_at_most_the_claim_in_flight(tmp_path):
    """SIGKILL while claims run; then the same command finishes, and what was there is not run again."""
    environment = {**os.environ, "JAX_ENABLE_X64": "1", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    words = [sys.executable, "-m", "steepest", "run", "early-alignment", "catapult", "--out", "killed"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    deadline = time.time() + 120
    while not list(tmp_path.glob("killed/early-alignment/*/result.json")) and time.time() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (first,) = tmp_path.glob("killed/early-alignment/*/result.json")
    before = first.stat().st_mtime_ns
    assert not list(tmp_path.glob("killed/catapult/[0-9a-f]*"))
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, env=environment, timeout=300)
    assert [record["claim"] for record in json.loads(done.stdout)] == ["early-alignment", "catapult"]
    assert first.stat().st_mtime_ns == before
