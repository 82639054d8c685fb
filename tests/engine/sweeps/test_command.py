"""The command: its plan, its questions, its sentences."""

import json

import pytest

from steepest.app.cli import main

QUICK = ["--over", "multiple=1,3,5", "--width", "8", "--steps", "20", "--seeds", "3"]


def run(*words):
    return main(["sweep", *words])


def test_it_says_the_plan_and_what_came(tmp_path, capsys):
    assert (
        run(
            "catapult",
            *QUICK,
            "--out",
            str(tmp_path),
            "--on",
            "here",
            "--export",
            str(tmp_path / "t.csv"),
        )
        == 0
    )
    out, said = capsys.readouterr()
    assert "over multiple: 1, 3, 5" in said
    assert "3 points, 1 compiled program\n" in said
    assert "3 points to compute" in said
    assert "in one process" in said
    assert "catapult: 3 of 3 points" in out
    assert "phase" in out
    assert (
        (tmp_path / "t.csv")
        .read_text("utf-8")
        .startswith("multiple,verdict,reason,phase_measured,")
    )
    assert run("catapult", *QUICK, "--out", str(tmp_path), "--json") == 0
    out, said = capsys.readouterr()
    assert "0 points to compute, 3 are in" in said
    found = json.loads(out)
    assert found["total"] == 3
    assert [point["fields"] for point in found["points"]] == [
        {"multiple": m} for m in (1.0, 3.0, 5.0)
    ]
    assert [point["checks"][0]["measured"] for point in found["points"]] == [0.0, 1.0, 2.0]


def test_a_plan_computes_nothing(tmp_path, capsys):
    assert run("catapult", *QUICK, "--out", str(tmp_path), "--plan") == 0
    assert "3 points to compute" in capsys.readouterr().err
    assert not (tmp_path / "catapult").exists()


def test_more_than_an_hour_is_asked(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("steepest.app.sweep.HOUR", 0.0)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert run("catapult", *QUICK, "--out", str(tmp_path)) == 2
    assert "this takes more than an hour; say --yes to start it" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: "n")
    assert run("catapult", *QUICK, "--out", str(tmp_path)) == 2
    assert "not started; nothing was computed" in capsys.readouterr().err
    monkeypatch.setattr("builtins.input", lambda: "y")
    assert run("catapult", *QUICK, "--out", str(tmp_path), "--on", "here") == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["catapullt"], "did you mean 'catapult'?"),
        (
            ["catapult", "--over", "multiple"],
            "--over takes FIELD=VALUES such as lr=log:0.01:1:20, got 'multiple'",
        ),
        (["catapult", "--over", "multiple=1", "--over", "multiple=2"], "multiple is swept twice"),
        (["catapult", "--over", "multipel=1,2"], "did you mean 'multiple'?"),
        (["catapult", "--over", "multiple=log:-1:1:3"], "passes through zero"),
        (["catapult", "--over", "multiple=log:1:2"], "names no number of points"),
        (
            ["catapult", "--over", "widths=100,200"],
            "widths cannot be swept: a point of catapult's diagram does not",
        ),
        (["catapult", "--over", "multiple=0,1"], "multiple must be above 0, got 0"),
        (["catapult", "--over", "multiple=1,2", "--shard", "3"], "--shard takes I/N such as 3/40"),
        (
            ["catapult", "--over", "multiple=1,2", "--shard", "0/4"],
            "shards count from 1 to their number, got 0/4",
        ),
        (
            ["catapult", "--over", "multiple=1,2", "--export", "t.xlsx"],
            "a table is a .csv or .parquet file",
        ),
        (
            ["catapult", "--over", "multiple=1,2", "--export", "no/where/t.csv"],
            "there is no folder",
        ),
        (
            ["catapult", "--over", "multiple=1,2", "--on", "slurm"],
            "a sweep runs on local, here or dask:ADDRESS",
        ),
        (
            ["ntk-stays-put"],
            "ntk-stays-put has no diagram of its own; name fields and values with --over",
        ),
    ],
)
def test_bad_input_gets_one_sentence(words, sentence, tmp_path, capsys):
    assert run(*words, "--out", str(tmp_path)) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert "Traceback" not in said
    assert not (tmp_path / "catapult").exists()


def test_show_names_the_diagram(capsys):
    assert main(["show", "catapult"]) == 0
    assert (
        "phase diagram over multiple and width: steepest sweep catapult" in capsys.readouterr().out
    )
    assert main(["show", "ntk-stays-put"]) == 0
    assert "phase diagram" not in capsys.readouterr().out
