"""Exit codes: every way in which a verdict may stand to the record."""

import json
from dataclasses import replace

import pytest

from steepest import record
from steepest.app.cli import main
from steepest.app.standing import Standing, exit_code, record_for, standing
from steepest.app.summary import by_chapter, change, exception, spelled_record, verdict_of
from steepest.catalogue import entry
from steepest.core.words import Verdict
from steepest.engine.crew import Outcome
from steepest.engine.rates import spelled_rates
from steepest.engine.run import run
from steepest.record import HoldRate, Record
from tests.small import small_catalogue

ALONE = ["--workers", "1"]
NAME = "plain-decay"


@pytest.fixture(scope="module", autouse=True)
def _claims(tmp_path_factory):
    with small_catalogue(tmp_path_factory.mktemp("claims")):
        yield


@pytest.fixture(scope="module")
def held():
    return run(NAME)


@pytest.fixture
def recorded(monkeypatch):
    """Set what the package records of the small claim."""

    def set_record(verdict, **more):
        recorded = {} if verdict is None else {NAME: Record(1, Verdict(verdict), **more)}
        monkeypatch.setattr(record, "records", lambda: recorded)

    return set_record


def outcome(result, verdict):
    return Outcome(result.claim, replace(result, verdict=Verdict(verdict)))


@pytest.mark.parametrize(
    ("verdict", "known", "where", "code"),
    [
        ("holds", "holds", Standing.AS_RECORDED, 0),
        ("fails", "fails", Standing.AS_RECORDED, 0),
        ("inconclusive", "inconclusive", Standing.AS_RECORDED, 0),
        ("out-of-range", "out-of-range", Standing.AS_RECORDED, 0),
        ("fails", "holds", Standing.CHANGED, 1),
        ("holds", "fails", Standing.CHANGED, 1),
        ("holds", "inconclusive", Standing.CHANGED, 1),
        ("fails", "out-of-range", Standing.CHANGED, 1),
        ("inconclusive", "holds", Standing.UNSETTLED, 3),
        ("inconclusive", "fails", Standing.UNSETTLED, 3),
        ("out-of-range", "holds", Standing.UNSETTLED, 3),
        ("out-of-range", "inconclusive", Standing.UNSETTLED, 3),
        ("holds", None, Standing.HOLDS, 0),
        ("fails", None, Standing.FAILS, 1),
        ("inconclusive", None, Standing.UNDECIDED, 3),
        ("out-of-range", None, Standing.UNDECIDED, 3),
    ],
)
def test_the_exit_code_says_how_a_verdict_stands_to_the_record(
    held, recorded, verdict, known, where, code
):
    recorded(known)
    landed = outcome(held, verdict)
    assert standing(landed) is where
    assert exit_code([landed]) == code


@pytest.mark.parametrize("known", ["holds", "fails", None])
@pytest.mark.parametrize(
    ("verdict", "code"), [("holds", 0), ("fails", 1), ("inconclusive", 3), ("out-of-range", 3)]
)
def test_strict_asks_that_all_hold_whatever_is_recorded(held, recorded, verdict, known, code):
    recorded(known)
    assert exit_code([outcome(held, verdict)], strict=True) == code


@pytest.mark.parametrize("strict", [False, True])
def test_a_crash_is_1_and_the_worst_outcome_counts(held, recorded, strict):
    recorded(None)
    crashed = Outcome("other", None, "ZeroDivisionError: division by zero")
    good, undecided, bad = (outcome(held, v) for v in ("holds", "inconclusive", "fails"))
    assert exit_code([crashed], strict) == 1
    assert standing(crashed) is Standing.CRASHED
    assert exit_code([good, undecided, bad], strict) == 1
    assert exit_code([undecided, good], strict) == 3
    assert exit_code([good, good], strict) == 0
    assert exit_code([], strict) == 0


@pytest.mark.parametrize(
    "other",
    [
        {"preset": "tiny"},
        {"seed": 1},
        {"changes": {"rate": 0.4}},
        {"claim_version": 2},
        {"claim": "wide-decay"},
    ],
)
def test_a_record_is_for_the_claim_as_it_stands(held, recorded, other):
    recorded("fails")
    assert record_for(held) is not None
    assert record_for(replace(held, **other)) is None


def test_a_record_is_not_for_claims_of_others_or_on_other_networks(held, recorded):
    recorded("fails")
    for about in ({"origin": "plain_decay.py"}, {"subject": {"where": "model.py:build"}}):
        assert record_for(replace(held, about={**held.about, **about})) is None


def test_a_changed_verdict_is_said(held, recorded):
    recorded("fails")
    landed = outcome(held, "holds")
    assert change(landed.result) == "recorded fails, now holds"
    assert exception(landed).startswith("plain-decay: recorded fails, now holds — ")
    assert verdict_of(landed).endswith(", recorded fails")


def test_other_packages_are_named_where_a_verdict_changed(held, recorded):
    recorded("fails", versions={"jax": "0.0.1", "numpy": held.versions["numpy"]})
    assert change(held) == "recorded fails (with jax 0.0.1), now holds"


def test_a_recorded_failure_is_a_result(held, recorded):
    recorded("fails")
    landed = outcome(held, "fails")
    assert change(landed.result) == ""
    assert exception(landed).startswith("plain-decay: fails, as recorded — ")
    recorded("holds")
    assert exception(outcome(held, "holds")) == ""
    assert verdict_of(outcome(held, "holds")).endswith("holds[/]")


def test_rates_are_said_where_they_are_recorded():
    assert spelled_rates(Record(1, Verdict.HOLDS)) == ""
    recorded = Record(1, Verdict.HOLDS, "2026-11-23", seeds=HoldRate(20), settings=HoldRate(9, 1))
    assert spelled_rates(recorded) == "holds at 20 of 20 fresh seeds, 9 of 10 settings (1 fails)"
    assert spelled_record(recorded).startswith("holds (version 1, 2026-11-23), holds at 20 of 20")


def test_the_summary_has_a_line_for_each_chapter(held, recorded):
    """Every claim is in one part of its chapter's line."""
    recorded("fails")
    other = replace(held, claim="other")
    last = [
        outcome(held, "fails"),  # as recorded
        outcome(held, "holds"),  # changed
        outcome(held, "inconclusive"),  # changed too
        outcome(other, "fails"),
        outcome(other, "out-of-range"),
        Outcome("other", None, "it broke"),
    ]
    first = [outcome(other, "holds"), outcome(other, "holds")]
    lines = [entry(NAME)] * len(first) + [entry("growing")] * len(last)
    chapters, counts = (list(column.cells) for column in by_chapter(lines, [*first, *last]).columns)
    assert chapters == ["first steps", "last steps"]
    assert counts[0] == "[green]2 hold[/]"
    parts = [part.partition("]")[2].removesuffix("[/]") for part in counts[1].split(", ")]
    assert parts == ["1 fails as recorded", "1 undecided", "1 fails", "2 changed", "1 crashed"]


# ----------------------------------------------------------------------------- on the command line


@pytest.mark.parametrize(
    ("verdict", "words", "code"),
    [
        ("holds", [], 0),
        ("fails", [], 1),
        ("fails", ["--strict"], 0),
        ("fails", ["--seed", "1"], 0),
        ("fails", ["--rate", "0.4"], 0),
        ("holds", ["--bias", "0.3"], 1),
        ("fails", ["--bias", "0.3"], 1),  # no record is of other fields
        ("out-of-range", ["--rate", "1.5"], 3),
    ],
)
def test_the_command_ends_with_the_code(recorded, verdict, words, code):
    recorded(verdict)
    assert main(["run", NAME, *words]) == code


def test_what_changed_is_said_and_json_carries_the_record(recorded, capsys):
    recorded("fails", date="2026-11-23", seeds=HoldRate(holds=1, fails=19))
    assert main(["run", NAME]) == 1
    said = capsys.readouterr().out
    assert "recorded fails, now holds" in said
    assert "holds at 1 of 20 fresh seeds" in said
    assert main(["run", NAME, "--json"]) == 1
    printed = capsys.readouterr()
    assert "steepest: plain-decay: recorded fails, now holds" in printed.err
    assert json.loads(printed.out)["recorded"] == {
        "version": 1,
        "verdict": "fails",
        "date": "2026-11-23",
        "seeds": {"holds": 1, "fails": 19, "undecided": 0, "out_of_range": 0},
    }
    assert main(["run", NAME, "--seed", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["recorded"] is None


def test_several_claims_end_with_the_worst_and_name_it(recorded, capsys):
    recorded("fails")
    assert main(["run", NAME, "wide-decay", *ALONE]) == 1
    said = capsys.readouterr()
    assert "plain-decay: recorded fails, now holds" in said.out
    assert "plain-decay: holds, recorded fails" in said.err
    assert "wide-decay: holds (" in said.err


def test_list_shows_what_is_recorded_until_there_is_a_result(recorded, capsys):
    recorded("fails")
    assert main(["list"]) == 0
    listed = capsys.readouterr().out
    assert "✗ recorded plain-decay" in listed
    assert "recorded wide-decay" not in listed
    assert main(["list", "--json"]) == 0
    lines = {line["claim"]: line for line in json.loads(capsys.readouterr().out)}
    assert lines[NAME]["verdict"] == ""
    assert lines[NAME]["recorded"] == {"version": 1, "verdict": "fails"}
    assert lines["wide-decay"]["recorded"] is None
    main(["run", NAME])
    capsys.readouterr()
    assert main(["list"]) == 0
    listed = capsys.readouterr().out
    assert "✓ plain-decay" in listed
    assert "✗ recorded" not in listed


def test_show_says_what_is_recorded(recorded, capsys):
    recorded("holds", date="2026-11-23")
    assert main(["show", NAME]) == 0
    assert "recorded: holds (version 1, 2026-11-23)" in capsys.readouterr().out
