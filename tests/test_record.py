"""What the package knows of its claims before anything runs."""

import json

import pytest

from steepest import catalogue, record
from steepest.core.words import Verdict
from steepest.record import HoldRate, Record
from tests.contract import green
from tests.small import small_catalogue

FULL = Record(
    version=1,
    verdict=Verdict.HOLDS,
    date="2026-11-23",
    versions={"jax": "0.10.2", "numpy": "2.4.6"},
    seeds=HoldRate(19, 0, 1, 0),
    settings=HoldRate(7, 1, 1, 1),
)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A record of two small claims and one that is gone."""
    path = tmp_path / "record.json"
    whole = {
        "wide-decay": Record(2, Verdict.FAILS),
        "plain-decay": FULL,
        "gone": Record(1, Verdict.HOLDS),
    }
    path.write_text(record.spelled(whole), "utf-8")
    monkeypatch.setattr(record, "PATH", path)
    record.records.cache_clear()
    with small_catalogue(tmp_path):
        yield path
    record.records.cache_clear()


def test_every_claim_has_a_record_of_its_version_and_of_the_verdict_that_tests_know():
    lines = catalogue.built_in()
    verdicts = {name: green_run["verdict"] for name, green_run in green.recorded().items()}
    assert {name: str(record.recorded(line).verdict) for name, line in lines.items()} == verdicts
    assert set(record.records()) == set(lines)


def test_the_file_is_as_it_is_written():
    """Sorted, a block for each claim: a difference shows what changed and nothing else."""
    assert record.PATH.read_text("utf-8") == record.spelled(record.records())


@pytest.mark.parametrize("one", [FULL, Record(3, Verdict.FAILS)])
def test_a_record_is_read_back_as_it_was(one):
    assert Record.from_json(json.loads(json.dumps(one.to_json()))) == one


def test_what_is_not_known_is_left_out():
    assert Record(3, Verdict.FAILS).to_json() == {"version": 3, "verdict": "fails"}


def test_rates_count_every_run():
    assert FULL.seeds.runs == 20
    assert FULL.settings.to_json() == {"holds": 7, "fails": 1, "undecided": 1, "out_of_range": 1}


def test_a_record_of_another_version_is_ignored(small):
    lines = catalogue.built_in()
    assert record.recorded(lines["plain-decay"]) == FULL
    assert record.recorded(lines["wide-decay"]) is None  # the installed one is version 1
    assert record.recorded(lines["growing"]) is None


@pytest.mark.parametrize(
    ("stated", "version"),
    [
        ("", 1),
        ("    version = 2  # 1 had too few seeds\n", 2),
        ("    version: ClassVar[int] = 12\n", 12),
        ("    version = (\n        3  # 2 had a long reason\n    )\n", 3),
        ("    versions = 4\n", 1),
        ("version = 5\n", 1),
    ],
)
def test_the_version_is_read_without_an_import(stated, version, tmp_path):
    source = tmp_path / "claim.py"
    source.write_text(f"class Trial:\n{stated}    rate = 1\n", "utf-8")
    assert record.installed_version(source) == version


def test_a_claim_from_a_file_has_no_record(small, tmp_path):
    (tmp_path / "own.py").write_text('"""Mine."""', "utf-8")
    assert record.recorded(catalogue.entry(tmp_path / "own.py")) is None


def test_a_run_renews_a_record_and_keeps_its_counts(small):
    """A version that is raised starts again: its counts were of other settings."""
    fresh = Record(1, Verdict.FAILS, "2027-01-01")
    assert record.renewed(FULL, fresh).seeds == FULL.seeds
    assert record.renewed(FULL, fresh).verdict == "fails"
    assert record.renewed(FULL, Record(2, Verdict.HOLDS)).seeds is None
    assert record.renewed(None, fresh) == fresh


def test_the_command_of_green_writes_the_record(small):
    from steepest.engine.run import run

    result = run("wide-decay")
    green.keep(result, small)
    written = record.records()
    assert set(written) == {"plain-decay", "wide-decay"}  # what is gone is left out
    assert written["plain-decay"] == FULL
    assert written["wide-decay"].version == 1
    assert written["wide-decay"].date == result.judged_at[:10]
    assert set(written["wide-decay"].versions) == {"jax", "numpy"}
