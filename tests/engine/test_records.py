"""Records of results are enough for lists; what is kept of them between runs is never believed after a change."""

import json
import os
import warnings

import pytest

from steepest import cache
from steepest.engine import records as reading
from steepest.engine.records import Damaged, Records
from steepest.engine.run import run
from steepest.engine.store import Store
from tests.small import small_catalogue


@pytest.fixture(scope="module", autouse=True)
def _claims(tmp_path_factory):
    with small_catalogue(tmp_path_factory.mktemp("claims")):
        yield


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "TICK", 0)  # the file is as old as it will be
    store = Store(tmp_path / "results")
    run("plain-decay", store=store)
    return store


def listed(store):
    """The records of a claim as a new process reads them, which then keeps them."""
    records = Records(store.root)
    listed_records = list(records.of_claim("plain-decay"))
    records.keep()
    return listed_records


def test_a_record_says_what_the_result_says(store):
    ((folder, record),) = listed(store)
    result = store.read(folder)
    for name in ("claim", "claim_version", "verdict", "reason", "preset", "seed", "judged_at"):
        assert getattr(record, name) == getattr(result, name)
    for name in ("params", "stamp", "versions"):
        assert dict(getattr(record, name)) == dict(getattr(result, name))
    assert record.answers("quick", 0)
    assert not record.answers("full", 0)
    assert not record.answers("quick", 1)


def test_a_record_that_is_kept_is_not_read_again(store, monkeypatch):
    before = listed(store)
    monkeypatch.setattr(reading, "read_record", lambda folder: pytest.fail("it was read again"))
    assert listed(store) == before


def test_arrays_are_not_read_for_a_record(store):
    before = listed(store)
    ((folder, _),) = before
    (folder / "arrays.npz").write_bytes(b"")
    assert listed(store) == before
    with pytest.warns(Damaged):
        assert store.read(folder) is None
    with pytest.warns(Damaged):
        assert store.read(folder, arrays=False) is None  # their checksum is checked in any case


@pytest.mark.parametrize("same", ["size", "size and time"])
def test_a_change_behind_what_is_kept_is_damage(store, same):
    ((folder, _),) = listed(store)
    path = folder / "result.json"
    times = path.stat()
    text = path.read_text("utf-8").replace('"holds"', '"fails"', 1)
    path.write_text(text, "utf-8")
    if same == "size and time":
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_size == times.st_size
    with pytest.warns(Damaged, match="checksum"):
        assert listed(store) == []


def test_a_file_that_was_just_written_is_not_kept(store, monkeypatch):
    """Its times would not tell whether it is written again."""
    monkeypatch.setattr(cache, "TICK", 10**12)
    assert len(listed(store)) == 1
    assert Records(store.root)._table.values == {}


def test_records_of_results_that_are_gone_are_forgotten(store):
    listed(store)
    run("plain-decay", store=store, seed=1)
    ((first, _), (second, _)) = listed(store)
    for path in first.iterdir():
        path.unlink()
    first.rmdir()
    run("plain-decay", store=store, seed=2)
    listed(store)
    names = set(Records(store.root)._table.values)
    assert str(first.absolute()) not in names
    assert str(second.absolute()) in names


def test_what_is_kept_may_be_damaged(store):
    before = listed(store)
    table = Records(store.root)._table
    for harm in ({"state": "x"}, None, 3, [], {"state": [], "record": {}}):
        table.replace(dict.fromkeys(table.values, harm))
        assert listed(store) == before
    kept = json.loads(table.path.read_text("utf-8"))
    for value in kept["values"].values():
        value["record"].pop("verdict")
    table.path.write_text(json.dumps(kept), "utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert listed(store) == before
