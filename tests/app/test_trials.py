"""The command: what it prints, writes and records, and its sentences."""

import json

import pytest

import steepest
from steepest import catalogue, record
from steepest.app import recording
from steepest.app.cli import main
from steepest.core.words import Verdict
from steepest.engine.rates import spelled_counts
from steepest.record import HoldRate, Record
from tests.engine.trials.falling import write_falling
from tests.small import SOURCE

FEW = ["--seeds", "2", "--settings", "3", "--on", "here"]


@pytest.fixture
def falling(tmp_path):
    return str(write_falling(tmp_path))


@pytest.fixture
def ours(falling, tmp_path, monkeypatch):
    """The falling ball as a claim of the package, in a checkout with a record of its own."""
    path = tmp_path / "falling.py"
    line = catalogue.Entry("falling", "balls", "A ball falls.", "steepest", path, "falling")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(catalogue, "built_in", lambda: {"falling": line})
    monkeypatch.setattr(catalogue, "registered", dict)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(recording, "PROJECT", tmp_path)
    monkeypatch.setattr(record, "PATH", tmp_path / "record.json")
    recorded = Record(1, Verdict.HOLDS, "2026-11-23")
    (tmp_path / "record.json").write_text(record.spelled({"falling": recorded}), "utf-8")
    record.records.cache_clear()
    yield "falling"
    record.records.cache_clear()


def test_it_says_how_often_and_shows_what_does_not_hold(falling, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["trials", falling, *FEW, "--page", str(page)]) == 1
    out, said = capsys.readouterr()
    assert "[1/5] fresh seed 1000: holds" in said
    assert "[3/5] setting, seed 1500: " in said
    assert "gravity" in out
    assert f"steepest run {falling} --gravity" in out
    text = page.read_text("utf-8")
    assert "<svg" in text
    assert "Where in its scope it holds" in text
    assert main(["trials", falling, *FEW, "--json"]) == 1
    out, said = capsys.readouterr()
    assert "0 runs to compute" in said
    printed = json.loads(out)
    assert printed["seeds"]["holds"] == printed["seeds"]["runs"] == 2
    assert printed["settings"]["runs"] == 3
    assert [run["kind"] for run in printed["runs"]] == ["seed"] * 2 + ["setting"] * 3
    assert set(printed["scope"]) == set(printed["runs"][-1]["fields"])


def test_a_run_that_is_shown_has_the_same_verdict_by_its_command(falling, capsys):
    trials = steepest.trials(falling, seeds=0, settings=4)
    row = next(row for row in trials.rows if row.verdict == "fails")
    assert main(row.command.split()[1:]) == 1
    assert row.reason in capsys.readouterr().out


def test_a_claim_without_a_scope_says_so(tmp_path, capsys):
    (tmp_path / "plain_decay.py").write_text(SOURCE.format(says="Slowly."), "utf-8")
    assert main(["trials", "plain_decay.py", *FEW, "--json"]) == 0
    out, said = capsys.readouterr()
    assert "plain-decay states no scope, so no settings are drawn" in said
    printed = json.loads(out)
    assert printed["settings"] is None
    assert printed["seeds"]["holds"] == 2


def test_python_gives_the_same(falling, tmp_path):
    trials = steepest.trials(falling, seeds=2, settings=3, out=tmp_path / "out")
    assert repr(trials).startswith("<falling, version 1: holds at 2 of 2 fresh seeds, ")
    assert "<table>" in trials._repr_html_()
    again = steepest.trials(falling, seeds=2, settings=3, out=tmp_path / "out")
    assert again.to_json() == trials.to_json()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "there is no claim 'nowhere'"),
        (["falling.py", "--seeds", "501"], "a whole number from 0 to 500"),
        (["falling.py", "--seeds", "0", "--settings", "0"], "there is nothing to try"),
        (["falling.py", "--shard", "3"], "--shard takes I/N such as 3/40"),
        (["falling.py", "--on", "slurm"], "a sweep runs on local, here or dask:ADDRESS"),
        (["falling.py", "--page", "page.txt"], "a page is an .html file"),
        (["falling.py", "--record"], "--record is for the claims of Steepest"),
        (["falling.py", "--gravity", "3"], "unexpected --gravity 3"),
    ],
)
def test_bad_input_is_one_sentence(words, sentence, falling, capsys):
    try:
        code = main(["trials", *words])
    except SystemExit as left:
        code = left.code
    assert code == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert "Traceback" not in said


def test_the_record_takes_the_counts_and_every_run(ours, tmp_path, capsys):
    main(["trials", ours, *FEW, "--record"])
    (tmp_path / "results").rename(tmp_path / "kept")
    recorded = record.records()[ours]
    assert recorded.seeds == HoldRate(2)
    assert recorded.settings.runs == 3
    assert recorded.date == "2026-11-23"
    lines = (tmp_path / "benchmarks" / "trials" / "falling.jsonl").read_text("utf-8").splitlines()
    runs = [json.loads(line) for line in lines]
    assert [run["seed"] for run in runs] == [1000, 1001, 1500, 1501, 1502]
    assert set(runs[0]) == {"claim", "version", "kind", "seed", "fields", "verdict", "reason"}
    capsys.readouterr()
    rates = spelled_counts(recorded.seeds, recorded.settings)
    assert rates.startswith(f"holds at 2 of 2 fresh seeds, {recorded.settings.holds} of 3 settings")
    main(["show", ours])
    assert rates in capsys.readouterr().out
    main(["run", ours, "--json"])
    counts = json.loads(capsys.readouterr().out)["hold_rates"]
    assert counts == {"seeds": recorded.seeds.to_json(), "settings": recorded.settings.to_json()}
    main(["cite", ours])
    assert f"holds at preset quick, seed 0, {rates};" in capsys.readouterr().out
    main(["cite", ours, "--json"])
    assert json.loads(capsys.readouterr().out)["hold_rates"] == counts
    main(["atlas"])
    assert rates in (tmp_path / "atlas" / "falling" / "index.html").read_text("utf-8")
    capsys.readouterr()
    main(["run", ours, "--preset", "tiny", "--json"])
    assert json.loads(capsys.readouterr().out)["hold_rates"] is None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--preset", "tiny"], "the record is of preset quick, got --preset tiny"),
        (["--shard", "1/2"], "runs are not computed yet"),
    ],
)
def test_what_cannot_be_recorded_is_refused(ours, words, sentence, capsys):
    assert main(["trials", ours, "--seeds", "2", "--settings", "0", "--record", *words]) == 2
    assert sentence in capsys.readouterr().err
    assert record.records()[ours].seeds is None


def test_a_version_without_a_recorded_verdict_is_refused(ours, tmp_path, capsys):
    later = record.spelled({"falling": Record(2, Verdict.HOLDS)})
    (tmp_path / "record.json").write_text(later, "utf-8")
    assert main(["trials", ours, *FEW, "--record"]) == 2
    assert "there is no recorded verdict of version 1 of falling" in capsys.readouterr().err


def test_what_others_wrote_meanwhile_is_kept(ours, tmp_path, monkeypatch):
    """Trials take long: the record is read again before it is written."""
    write = recording.write_record

    def written_by_others_first(trials):
        meanwhile = {"falling": record.records()["falling"], "other": Record(3, Verdict.FAILS)}
        (tmp_path / "record.json").write_text(record.spelled(meanwhile), "utf-8")
        return write(trials)

    monkeypatch.setattr(recording, "write_record", written_by_others_first)
    main(["trials", ours, *FEW, "--record"])
    assert record.records()["other"] == Record(3, Verdict.FAILS)
    assert record.records()["falling"].seeds == HoldRate(2)


def test_an_installed_package_has_no_record_to_write(ours, tmp_path, capsys):
    (tmp_path / "pyproject.toml").unlink()
    assert main(["trials", ours, *FEW, "--record"]) == 2
    assert "this one is installed" in capsys.readouterr().err
