import json
import os
import shutil
import warnings

import numpy as np
import pytest

from steepest.errors import UserError
from steepest.running import run
from steepest.store import Damaged, Store, identity
from tests.small import small_catalogue


@pytest.fixture(scope="module", autouse=True)
def _claims(tmp_path_factory):
    with small_catalogue(tmp_path_factory.mktemp("claims")):
        yield


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def folder(store):
    (found,) = (store.root / "plain-decay").glob("[0-9a-f]*")
    return found


def test_what_is_saved_is_what_is_found(store):
    first = run("plain-decay", store=store)
    again = run("plain-decay", store=store)
    assert again.to_json() == first.to_json()
    assert again.checks == first.checks
    assert again.seconds == first.seconds  # read, not run
    for name, values in first.arrays.items():
        np.testing.assert_array_equal(values, again.arrays[name])
        assert first.observed.quantity("path").dims == again.observed.quantity("path").dims
    assert {path.name for path in folder(store).iterdir()} == {"result.json", "arrays.npz", "figure.svg"}


def test_again_runs_again(store):
    first = run("plain-decay", store=store)
    before = folder(store).stat().st_ino
    second = run("plain-decay", store=store, again=True)
    assert folder(store).stat().st_ino != before
    assert second.checks == first.checks
    assert sorted(p.name for p in (store.root / "plain-decay").iterdir()) == [folder(store).name]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"seed": 0}, {"seed": 1}),
        ({"preset": "quick"}, {"preset": "full"}),
        ({"params": {"a": 1}}, {"params": {"a": 1.5}}),
        ({"version": 1}, {"version": 2}),
        ({"claim": "a"}, {"claim": "b"}),
    ],
)
def test_the_identity_tells_runs_apart(one, other):
    usual = {"claim": "a", "version": 1, "params": {"a": 1}, "preset": "quick", "seed": 0}
    assert identity(**{**usual, **one}) != identity(**{**usual, **other})
    assert identity(**{**usual, **one}) == identity(**{**usual, **one})


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def change_a_number(path):
    record = json.loads(path.read_text())
    record["checks"][0]["measured"] = 0.123
    path.write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("result.json", truncate),
        ("result.json", change_a_number),
        ("result.json", os.remove),
        ("result.json", lambda path: path.write_text("[]")),
        ("result.json", lambda path: path.write_text("null")),
        ("arrays.npz", truncate),
        ("arrays.npz", os.remove),
        ("arrays.npz", lambda path: path.write_bytes(b"")),
        ("figure.svg", truncate),
    ],
)
def test_a_damaged_result_is_reported_and_recomputed(store, name, harm):
    first = run("plain-decay", store=store)
    harm(folder(store) / name)
    with pytest.warns(Damaged, match="damaged"):
        second = run("plain-decay", store=store)
    assert second.checks == first.checks
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run("plain-decay", store=store).checks == first.checks  # whole again


def test_listing_leaves_the_damaged_out(store):
    run("plain-decay", store=store)
    run("shifted-decay", store=store)
    truncate(folder(store) / "arrays.npz")
    with pytest.warns(Damaged):
        assert [result.claim for _, result in store] == ["shifted-decay"]


def test_what_a_killed_run_left_behind_is_no_result(store):
    run("plain-decay", store=store)
    shutil.copytree(folder(store), store.root / "plain-decay" / ".new-abc-1")
    assert len(list(store)) == 1
    os.utime(store.root / "plain-decay" / ".new-abc-1", (0, 0))
    run("plain-decay", store=store, again=True)
    assert not (store.root / "plain-decay" / ".new-abc-1").exists()  # a day old: swept


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(UserError, match="cannot write to the folder"):
        run("plain-decay", store=Store(blocked / "results"), watch=lambda stage: pytest.fail("it started to work"))


def test_no_pickle_is_written_or_read(store):
    run("plain-decay", store=store)
    with np.load(folder(store) / "arrays.npz", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)
