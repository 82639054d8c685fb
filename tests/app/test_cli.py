import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import steepest
from steepest.app.cli import main
from tests.small import SOURCE, small_catalogue

FREE_OF = """
import sys
from steepest.app.cli import main
main({})
print(*(name for name in ('jax', 'torch', 'matplotlib', 'scipy') if name in sys.modules), file=sys.stderr)
"""


ALONE = ["--workers", "1"]  # other processes would not find the small claims


@pytest.fixture(scope="module", autouse=True)
def _claims(tmp_path_factory):
    with small_catalogue(tmp_path_factory.mktemp("claims")):
        yield


def test_json_is_one_object_and_nothing_else(capsys):
    assert main(["run", "plain-decay", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["claim"] == "plain-decay"
    assert record["verdict"] == "holds"
    assert record["params"]["rate"] == 0.5


def test_json_of_several_claims_is_a_list(capsys):
    assert main(["run", "plain-decay", "wide-decay", "--json", *ALONE]) == 0
    assert [record["claim"] for record in json.loads(capsys.readouterr().out)] == [
        "plain-decay",
        "wide-decay",
    ]


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
        (["run", "plain-decay", "--rate", "-1"], "rate must be above 0, got -1"),
        (["run", "plain-decay", "--rate", "abc"], "abc"),
        (["run", "plain-decay", "--rate"], "rate needs a value, such as 0.5"),
        (["run", "plain-decay", "--seed", "x"], "a whole number from 0 to 2147483647, got 'x'"),
        (["run", "plain-decay", "--preset", "fast"], "invalid choice: 'fast'"),
        (["run", "--rate=1"], "need exactly one claim"),
        (["list", "--chapter", "first"], "there is no chapter 'first'"),
        (["list", "--nonsense"], "unexpected --nonsense"),
        (["show", "plane-decay"], "did you mean"),
        (["atlas", "--results", "nowhere"], "nowhere"),
        (["run", "plain-decay", "--rate", "1", "--rate=2"], "--rate is given twice; write it once"),
        (["run", "plain-decay", "0.3"], "there is no claim '0.3'"),
        (["run", "plain-decay", "wide-decay", "--rate", "1"], "need exactly one claim, got 2"),
        (["run", "nowhere.py"], "there is no file nowhere.py; steepest new nowhere.py writes one"),
        (["show"], "CLAIM"),
        (["new"], "NAME"),
        (["check", "nowhere.py"], "there is no file nowhere.py"),
        (["nonsense"], "there is no command 'nonsense'; known are: atlas, book, check, cite, "),
        (["runn"], "there is no command 'runn'; did you mean 'run'?"),
        (["lst", "--json"], "there is no command 'lst'; did you mean 'list'?"),
        (["show", "x" * 300], "its name is too long"),
        (["list", "x" * 5000], "unexpected " + "x" * 40 + "…"),
        (["run", "--atlas", "loop"], "loop is not a folder"),
        (["run", "--atlas", "file"], "file is not a folder"),
        (["measure", "-"], "expected FILE.py:FUNCTION, got '-'"),
        (["measure", "exits.py:build"], "exits.py does not import: SystemExit: 5"),
        (["measure", "model.py:build", "--page", "file/x.html"], "cannot write --page file/x.html"),
        (["measure", "model.py:build", "--page", "folder.html"], "cannot write --page folder.html"),
        (["watch"], "FILE"),
        (["watch", "nowhere.jsonl"], "there is no log nowhere.jsonl"),
        (["watch", "file"], "the log file is empty"),
        (["watch", "exits.py"], "exits.py is no log of a monitor"),
        (["watch", "folder.html"], "cannot read the log folder.html"),
        (["watch", "file", "--page", "folder.html"], "cannot write --page folder.html"),
        (["watch", "file", "--training", "0"], "a whole number from 1"),
        (["sweep", "plain-decay", "--over", "rate=0.1,0.2", "--on", "x"], "a sweep runs on local"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(words, sentence, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "exits.py").write_text("raise SystemExit(5)")
    (tmp_path / "loop").symlink_to("loop")
    try:
        code = main(words)
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    assert code == 2
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not (tmp_path / "results").exists()


def test_a_claim_that_is_named_twice_is_run_once(capsys):
    assert main(["run", "plain-decay", "plain-decay", "--rate", "0.25", "--json"]) == 0
    assert [record["claim"] for record in json.loads(capsys.readouterr().out)] == ["plain-decay"]


def test_what_looks_like_markup_is_printed_as_it_is(capsys, monkeypatch):
    from steepest.catalogue import load

    def crash(self, setting, key):
        raise RuntimeError("no [/markup] here")

    monkeypatch.setattr(load("wide-decay"), "observe", crash)
    assert main(["run", "wide-decay"]) == 1
    assert "no [/markup] here" in capsys.readouterr().out


def test_a_folder_in_the_place_of_the_picture_is_replaced(capsys, tmp_path):
    assert main(["run", "plain-decay"]) == 0
    (picture,) = tmp_path.glob("results/plain-decay/*/figure.svg")
    picture.unlink()
    picture.mkdir()
    assert main(["run", "plain-decay"]) == 0
    assert picture.read_text("utf-8").startswith("<?xml")


def test_a_name_that_is_no_text_is_printed_all_the_same(capsys, tmp_path):
    folder = tmp_path / "d\udcff"
    folder.mkdir()
    assert main(["new", "d\udcff/my_claim.py"]) == 0
    assert capsys.readouterr().out.startswith("d?/my_claim.py: run it with")
    assert main(["show", "d\udcff/my_claim.py"]) == 0


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
    assert main(["run", "--all", *ALONE]) in (0, 1, 3)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2] == f"atlas: {tmp_path / 'atlas' / 'index.html'}"
    assert (tmp_path / "atlas" / "index.html").is_file()
    assert [line.split()[:3] for line in lines[:2]] == [
        ["first", "steps", "3"],
        ["last", "steps", "3"],
    ]
    assert main(["run", "--all", "--table", *ALONE]) in (0, 1, 3)
    lines = capsys.readouterr().out.splitlines()
    assert sum("holds" in line for line in lines) >= 3


def test_a_crash_in_one_claim_does_not_cost_the_others(capsys, monkeypatch):
    from steepest.catalogue import load

    kind = load("wide-decay")
    monkeypatch.setattr(kind, "observe", lambda self, setting, key: 1 / 0)
    assert main(["run", "--all", "--table", "--out", "crash", *ALONE]) == 1
    said = capsys.readouterr()
    assert "crashed" in said.out
    assert "ZeroDivisionError" in said.err
    assert "plain-decay" in said.out
    assert main(["run", "wide-decay", "plain-decay", "--json", "--out", "crash", *ALONE]) == 1
    said = capsys.readouterr()
    assert [record["claim"] for record in json.loads(said.out)] == ["plain-decay"]
    assert "steepest: wide-decay crashed: ZeroDivisionError" in said.err
    assert main(["run", "wide-decay", "--json", "--out", "crash"]) == 1
    assert json.loads(capsys.readouterr().out) == []


def test_list_and_show(capsys):
    assert main(["list"]) == 0
    assert "plain-decay" in capsys.readouterr().out
    assert main(["list", "--json", "--chapter", "last_steps"]) == 0
    assert {e["claim"] for e in json.loads(capsys.readouterr().out)} == {
        "growing",
        "powerless",
        "unrun",
    }
    assert main(["list", "--chapter", "last-steps"]) == 0
    assert "powerless" in capsys.readouterr().out
    assert main(["show", "plain-decay"]) == 0
    shown = capsys.readouterr().out
    assert "--rate" in shown
    assert "what is kept each step [1/step]" in shown


def test_new_writes_a_claim_that_runs(capsys, tmp_path):
    assert main(["new", "fresh-claim"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("fresh_claim.py: run it with steepest run fresh_claim.py")
    assert "class FreshClaim(kit.Claim" in (tmp_path / "fresh_claim.py").read_text("utf-8")
    assert main(["run", "fresh_claim.py", "--preset", "tiny", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["claim"], record["command"]) == (
        "fresh-claim",
        "steepest run fresh_claim.py --preset tiny",
    )
    assert main(["list"]) == 0
    listed = capsys.readouterr().out
    assert "fresh-claim" in listed and "[fresh_claim.py]" in listed
    assert main(["show", "fresh_claim.py"]) == 0
    assert "from: fresh_claim.py" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Bad Name", "a claim's name is lower-case words joined by hyphens, got 'Bad Name'"),
        ("", "a claim's name is lower-case words joined by hyphens, got ''"),
        ("none", "the class of 'none' would be called None, which means something else"),
        ("named-tuple", "would be called NamedTuple, which means something else in its file"),
        ("plain-decay", "there is a claim 'plain-decay' in steepest already"),
        ("there.py", "there.py is there already and was not touched"),
        ("no/where/claim.py", "there is no folder no/where; make it first"),
    ],
)
def test_new_refuses_what_it_cannot_write(name, sentence, capsys, tmp_path):
    (tmp_path / "there.py").write_text("mine")
    assert main(["new", name]) == 2
    assert sentence in capsys.readouterr().err
    assert (tmp_path / "there.py").read_text() == "mine"


@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["new", "Bad Name"]])
def test_light_commands_import_nothing_heavy(words):
    done = subprocess.run(
        [sys.executable, "-c", FREE_OF.format(words)], capture_output=True, text=True
    )
    assert done.stderr.splitlines()[-1] == ""


def test_python_m_steepest_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "steepest", "--version"], capture_output=True, text=True
    )
    assert done.stdout.startswith("steepest 0")


def test_help_lists_every_command():
    done = subprocess.run(
        [sys.executable, "-m", "steepest", "--help"], capture_output=True, text=True
    )
    assert all(word in done.stdout for word in ("run", "list", "show", "atlas", "new"))


def test_a_killed_run_loses_at_most_the_claims_in_flight(tmp_path):
    """SIGKILL while claims run; then the same command finishes, and what was there is not run again."""
    environment = {**os.environ, "JAX_ENABLE_X64": "1", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    claims = {"early-alignment", "catapult"}
    more = ["--preset", "tiny", "--out", "killed", *ALONE]
    words = [sys.executable, "-m", "steepest", "run", *sorted(claims), *more]
    process = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    deadline = time.time() + 120
    while not list(tmp_path.glob("killed/*/[0-9a-f]*/result.json")) and time.time() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (first,) = tmp_path.glob("killed/*/[0-9a-f]*/result.json")
    before = first.stat().st_mtime_ns
    done = subprocess.run(
        [*words, "--json"], capture_output=True, text=True, env=environment, timeout=300
    )
    assert {record["claim"] for record in json.loads(done.stdout)} == claims
    assert f"{first.parent.parent.name}: " in done.stderr
    assert ", stored earlier" in done.stderr
    assert first.stat().st_mtime_ns == before


# ------------------------------------------------------------------------- faults of the command line


def refused(words, capsys):
    """The one sentence with which a command is refused, before anything is written."""
    try:
        code = main(words)
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    assert code == 2, said
    assert said.out == ""
    assert said.err.count("\n") == 1, said.err
    assert len(said.err) < 500
    return said.err


def test_without_words_the_help_is_printed(capsys):
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2
    assert "Start with `steepest run`" in capsys.readouterr().out


LARGE = str(2**64)
HUGE = "9" * 5000


@pytest.mark.parametrize(
    "words",
    [
        ["run", "plain-decay", "--seed", LARGE],
        ["run", "plain-decay", "--seed", HUGE],
        ["run", "plain-decay", "--seed", "-1"],
        ["run", "plain-decay", "--seed", "1.0"],
        ["run", "plain-decay", "--seed", "²"],
        ["run", "plain-decay", "--workers", LARGE],
        ["run", "plain-decay", "--workers", "0"],
        ["sweep", "plain-decay", "--over", "rate=0.1,0.2", "--batch", LARGE],
        ["sweep", "plain-decay", "--over", "rate=0.1,0.2", "--batch", "0"],
        ["sweep", "plain-decay", "--over", "rate=0.1,0.2", "--workers", HUGE],
        ["sweep", "plain-decay", "--over", "rate=log:0.1:0.2", "--sobol", LARGE],
        ["sweep", "plain-decay", "--over", "rate=0.1,0.2", "--seed", LARGE],
        ["measure", "model.py:build", "--micro-batch", LARGE],
        ["measure", "model.py:build", "--seed", LARGE],
    ],
)
def test_numbers_past_all_bounds_are_refused(words, capsys, tmp_path):
    assert "a whole number from " in refused(words, capsys)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "catapult", "--steps", LARGE], "steps must be a whole number of at most 64 bits"),
        (["run", "catapult", "--steps", HUGE], "steps takes a whole number"),
        (["run", "catapult", "--multiples"], "multiples needs a value, such as"),
        (["run", "catapult", "--multiples", "1", "nan"], "multiples must be a finite number"),
        (["run", "catapult", "--multiples="], "multiples needs a value, such as"),
        (
            ["run", "catapult", "--widths", "64", "1e400"],
            "widths takes a whole number, got '1e400'",
        ),
        (["run", "catapult", "--multiples", "1", "1e400"], "multiples must be a finite number"),
        (["run", "catapult", "--multiple", "1", "2"], "multiple takes one value, got 2: 1 2"),
        (["sweep", "catapult", "--over", f"seed={LARGE}"], "seed must be "),
        (
            ["sweep", "catapult", "--over", f"seed=0:{LARGE}"],
            "cannot read seed=0:18446744073709551616",
        ),
        (["sweep", "catapult", "--over", "seed=0:99999999999999"], "a plan holds at most"),
        (["sweep", "catapult", "--over", f"seed={HUGE}"], "seed takes a whole number"),
        (["sweep", "catapult", "--over", f"width={LARGE}"], "width must be a whole number of at"),
        (["sweep", "catapult", "--over", f"width=0:{HUGE}"], "cannot read width=0:999"),
        (["sweep", "catapult", "--over", "multiple=nan"], "multiple must be a finite number"),
        (["sweep", "catapult", "--over", "multiple=1,2", "--shard", "²/3"], "--shard takes I/N"),
        (["sweep", "catapult", "--over", "multiple=1,2", "--shard", "3/2"], "shards count from 1"),
        (["sweep", "catapult", "--over", "multiple=1,2", "--shard", f"1/{HUGE}"], "--shard takes"),
    ],
)
def test_values_of_real_claims_past_all_bounds_are_refused(
    real_claims, words, sentence, capsys, tmp_path
):
    said = refused([*words, "--out", str(tmp_path / "out")], capsys)
    assert sentence in said
    assert not list((tmp_path / "out").rglob("*.json"))


@pytest.fixture
def real_claims(monkeypatch):
    """The claims of this package again."""
    from steepest import catalogue

    monkeypatch.setattr(catalogue, "ROOT", Path(steepest.__file__).parent / "claims")
    catalogue.built_in.cache_clear()
    yield
    catalogue.built_in.cache_clear()


@pytest.mark.parametrize("address", ["garbage", "tcp://", "tcp://nowhere", "tcp://host:x"])
def test_garbage_for_a_cluster_is_refused_quickly(address, capsys):
    start = time.monotonic()
    words = ["sweep", "plain-decay", "--over", "rate=0.1,0.2", "--on", f"dask:{address}"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert f"a scheduler's address is like tcp://HOST:PORT, got {address!r}" in said
    assert "Traceback" not in said
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("where", ["folder.csv", "no/where/t.csv", "locked/t.csv", "t.txt", "t"])
def test_a_table_that_cannot_be_written_is_refused_before_any_work(
    where, capsys, tmp_path, monkeypatch
):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "locked").mkdir()
    honest = os.access
    closed = lambda path, mode: "locked" not in str(path) and honest(path, mode)
    monkeypatch.setattr(os, "access", closed)  # root may write everywhere
    said = refused(["sweep", "plain-decay", "--over", "rate=0.1,0.2", "--export", where], capsys)
    assert where in said or "folder" in said
    assert not (tmp_path / "results").exists()


def steepest_command(*words, **options):
    """The command in a process of its own, with standard error kept."""
    return subprocess.run(
        [sys.executable, "-m", "steepest", *words], stderr=subprocess.PIPE, timeout=300, **options
    )


@pytest.fixture
def claim_file(tmp_path):
    """A claim whose texts have all kinds of signs."""
    text = SOURCE.format(says="Was ρ überlebt: λ₀ ≤ ½, 漢字, 🙂 and “quotes”.")
    (tmp_path / "my_decay.py").write_text(text, "utf-8")
    return "my_decay.py"


def test_a_terminal_without_our_signs_gets_plain_words(claim_file):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = steepest_command("run", claim_file, env=environment, stdout=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    done.stdout.decode("ascii")
    done.stderr.decode("ascii")
    assert b"+ holds" in done.stdout
    for words in (["list"], ["show", claim_file], ["list", "--json"]):
        done = steepest_command(*words, env=environment, stdout=subprocess.PIPE)
        assert done.returncode == 0, done.stderr
        assert b"Traceback" not in done.stderr
        done.stdout.decode("ascii")
    done = steepest_command("list", env=environment, stdout=subprocess.PIPE)
    assert b"my-decay" in done.stdout
    assert b"rho" in done.stdout
    assert b"lambda" in done.stdout


@pytest.mark.parametrize(
    "words", [["list"], ["run", "my_decay.py"], ["run", "my_decay.py", "--json"]]
)
def test_a_full_standard_output_is_one_sentence(claim_file, words):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = steepest_command(*words, stdout=full)
    said = done.stderr.decode()
    assert done.returncode == 1, said
    assert "No space left on device" in said
    assert "Traceback" not in said and "Exception ignored" not in said
    assert sum(line.startswith("steepest:") for line in said.splitlines()) == 1


@pytest.mark.parametrize("words", [["list"], ["show", "my_decay.py"]])
def test_a_closed_pipe_is_no_error(claim_file, words):
    """As in ``steepest list | head -0``."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = steepest_command(*words, stdout=pipe)
    assert done.returncode == 0
    assert done.stderr == b""


def test_a_closed_standard_output_is_no_traceback(claim_file):
    done = subprocess.run(
        f"{sys.executable} -m steepest list >&-", shell=True, stderr=subprocess.PIPE, timeout=60
    )
    assert b"Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 1


def test_options_may_stand_behind_equal_signs_and_again_is_force(capsys):
    assert main(["run", "plain-decay", "--rate=0.25", "--seed=3", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["params"]["rate"], first["seed"]) == (0.25, 3)
    assert main(["run", "plain-decay", "--rate=0.25", "--seed=3"]) == 0
    assert "stored earlier: --force runs it again" in capsys.readouterr().out
    for word in ("--force", "--again"):
        assert main(["run", "plain-decay", "--rate=0.25", "--seed=3", word]) == 0
        assert "stored earlier" not in capsys.readouterr().out


def test_the_json_of_a_result_has_the_promised_keys(capsys):
    assert main(["run", "plain-decay", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    promised = "claim verdict checks hypotheses rivals params seed seconds versions"
    assert set(promised.split()) <= set(record)
    of_check = "id name predicted measured interval margin verdict"
    assert all(set(of_check.split()) <= set(check) for check in record["checks"])
    assert all({"id", "name", "rejected"} <= set(rival) for rival in record["rivals"])


def test_a_stale_verdict_is_listed_as_stale(claim_file, capsys, tmp_path):
    assert main(["run", claim_file]) == 0
    capsys.readouterr()
    assert main(["list"]) == 0
    assert "stale" not in capsys.readouterr().out
    path = tmp_path / claim_file
    path.write_text(path.read_text("utf-8").replace("self.rate + self.bias", "self.rate"), "utf-8")
    assert main(["list"]) == 0
    said = capsys.readouterr().out
    assert "~ my-decay" in said
    assert "~ stale: the code has changed since" in said
    assert main(["list", "--json"]) == 0
    (line,) = [e for e in json.loads(capsys.readouterr().out) if e["claim"] == "my-decay"]
    assert line["verdict"] == "holds, stale"
