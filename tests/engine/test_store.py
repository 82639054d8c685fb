"""Results on disk: whole or not at all, checked when read, and answering only what they are asked."""

import json
import os
import shutil
import warnings
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from steepest.core import writing
from steepest.core.errors import UserError
from steepest.core.records import canonical_digest
from steepest.engine import store as storing
from steepest.engine.run import ready, run
from steepest.engine.store import Damaged, Question, Store
from tests.small import small_catalogue


@pytest.fixture(scope="module", autouse=True)
def _claims(tmp_path_factory):
    with small_catalogue(tmp_path_factory.mktemp("claims")):
        yield


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def folder(store, claim="plain-decay"):
    (only,) = (store.root / claim).glob("[0-9a-f]*")
    return only


def test_what_is_saved_is_what_is_found(store):
    first = run("plain-decay", store=store)
    again = run("plain-decay", store=store)
    assert (first.how, again.how) == ("computed", "stored")
    assert again.to_json() == first.to_json()
    assert again.checks == first.checks
    assert again.rivals == first.rivals
    assert again.seconds == first.seconds  # read, not run
    for name, values in first.arrays.items():
        np.testing.assert_array_equal(values, again.arrays[name])
        assert first.observed.quantity("path").dims == again.observed.quantity("path").dims
    for ours, theirs in zip(first.rival_predictions, again.rival_predictions, strict=True):
        assert (ours.id, ours.why, ours.label) == (theirs.id, theirs.why, theirs.label)
        for name, values in ours.prediction.items():
            np.testing.assert_array_equal(values, theirs.prediction[name])
    assert {path.name for path in folder(store).iterdir()} == {
        "result.json",
        "arrays.npz",
        "panels.json",
    }


def test_panels_are_kept_and_drawn_alike(store):
    from steepest.site.drawing import svg

    first = run("plain-decay", store=store)
    again = run("plain-decay", store=store)
    assert svg(first.panels) == svg(again.panels)


def test_out_of_range_is_kept_too(store):
    first = run("plain-decay", store=store, rate=1.5)
    again = run("plain-decay", store=store, rate=1.5)
    assert again.how == "stored"
    assert again.to_json() == first.to_json()
    assert not again.observed
    assert again.panels == ()


def test_force_runs_again(store):
    first = run("plain-decay", store=store)
    before = folder(store).stat().st_ino
    second = run("plain-decay", store=store, force=True)
    assert second.how == "computed"
    assert folder(store).stat().st_ino != before
    assert second.checks == first.checks
    assert sorted(p.name for p in (store.root / "plain-decay").iterdir()) == [folder(store).name]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"seed": 0}, {"seed": 1}),
        ({"preset": "quick"}, {"preset": "full"}),
        ({"params": {"a": 1}}, {"params": {"a": 1.5}}),
        ({"params": {"a": 1}}, {"params": {"b": 1}}),
        ({"version": 1}, {"version": 2}),
        ({"claim": "a"}, {"claim": "b"}),
    ],
)
def test_the_key_tells_questions_apart(one, other):
    usual = {"claim": "a", "version": 1, "params": {"a": 1}, "preset": "quick", "seed": 0}
    assert Question(**{**usual, **one}).key != Question(**{**usual, **other}).key
    assert Question(**{**usual, **one}).key == Question(**{**usual, **one}).key


def test_the_key_does_not_depend_on_lists_and_order():
    one = Question("a", 1, {"a": (1.0, 2.0), "b": 1}, "quick", 0)
    assert one.key == Question("a", 1, {"b": 1, "a": [1.0, 2.0]}, "quick", 0).key


# ----------------------------------------------------------------------------------------------- damage


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def write(text):
    return lambda path: path.write_text(text, "utf-8")


def change_a_number(path):
    record = json.loads(path.read_text())
    record["checks"][0]["measured"] = 0.123
    path.write_text(json.dumps(record))


def signed(path, change):
    """Change a record and give it the checksum of the change, as another program might."""
    record = json.loads(path.read_text())
    record.pop("digest")
    change(record)
    record["digest"] = canonical_digest(record)
    path.write_text(json.dumps(record))


def of_another_format(path):
    signed(path, lambda record: record.update(format=storing.FORMAT + 1))


def without_checks(path):
    signed(path, lambda record: record.pop("checks"))


def without_a_target(path):
    signed(path, lambda record: record["about"].pop("target"))


def with_a_number_for_a_stamp(path):
    signed(path, lambda record: record["stamp"].update(judgement=1))


def with_a_list_of_versions(path):
    signed(path, lambda record: record.update(versions=[]))


def as_a_folder(path):
    path.unlink()
    path.mkdir()


def dangling(path):
    path.unlink()
    path.symlink_to(path.parent / "nowhere")


def adopt(path):
    """Give the record the checksum of a changed array file."""

    def change(record):
        record["files"]["arrays.npz"] = storing._digest(path)

    signed(path.parent / "result.json", change)


def empty_archive(path):
    with zipfile.ZipFile(path, "w"):
        pass
    adopt(path)


def empty_file(path):
    path.write_bytes(b"")
    adopt(path)


def zip_bomb(path):
    """A small file that says it holds three gigabytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("observed/rate.npy", b"0" * 1000)
    # the size that is declared, in the local header and in the directory behind the data
    real = (1000).to_bytes(4, "little")
    declared = (3 * 2**30).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(real, declared))
    with zipfile.ZipFile(path) as archive:
        assert archive.infolist()[0].file_size == 3 * 2**30
    adopt(path)


def pickled(path):
    np.savez(path, **{"observed/rate": np.array([{}], object)})
    adopt(path)


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("result.json", truncate),
        ("result.json", change_a_number),
        ("result.json", os.remove),
        ("result.json", write("")),
        ("result.json", write("[]")),
        ("result.json", write("null")),
        ("result.json", write("[" * 100_000 + "]" * 100_000)),
        ("result.json", write('{"digest": ' + '{"a":' * 100_000 + "1" + "}" * 100_001)),
        ("result.json", lambda path: path.write_bytes(b"\xff\xfe{}")),
        ("result.json", of_another_format),
        ("result.json", without_checks),
        ("result.json", without_a_target),
        ("result.json", with_a_number_for_a_stamp),
        ("result.json", with_a_list_of_versions),
        ("result.json", as_a_folder),
        ("result.json", dangling),
        ("arrays.npz", truncate),
        ("arrays.npz", os.remove),
        ("arrays.npz", lambda path: path.write_bytes(b"")),
        ("arrays.npz", empty_file),
        ("arrays.npz", empty_archive),
        ("arrays.npz", zip_bomb),
        ("arrays.npz", pickled),
        ("arrays.npz", as_a_folder),
        ("panels.json", truncate),
        ("panels.json", os.remove),
        ("panels.json", write("[" * 100_000)),
    ],
)
def test_a_damaged_result_is_reported_and_recomputed(store, name, harm):
    first = run("plain-decay", store=store)
    harm(folder(store) / name)
    with pytest.warns(Damaged, match="is damaged") as said:
        second = run("plain-decay", store=store)
    assert all("\n" not in str(warning.message) for warning in said)
    assert second.how == "computed"
    assert second.checks == first.checks
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run("plain-decay", store=store).how == "stored"  # whole again
    assert [path.name for path in (store.root / "plain-decay").iterdir()] == [folder(store).name]


def test_a_zip_bomb_is_not_unpacked(store, monkeypatch):
    run("plain-decay", store=store)
    zip_bomb(folder(store) / "arrays.npz")
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was unpacked"))
    with pytest.warns(Damaged, match="more than 2 GB"):
        assert store.read(folder(store)) is None


def replace_by(kind, path, foreign):
    """Put something else where a result's folder should be."""
    shutil.rmtree(path)
    if kind == "file":
        path.write_text("mine")
    elif kind == "dangling link":
        path.symlink_to(foreign / "nowhere")
    elif kind == "link to a folder":
        path.symlink_to(foreign)
    elif kind == "link to a result":
        path.symlink_to(foreign / "copy")
    elif kind == "empty folder":
        path.mkdir()


@pytest.mark.parametrize(
    "kind", ["file", "dangling link", "link to a folder", "link to a result", "empty folder"]
)
def test_what_is_no_folder_of_ours_is_replaced_and_not_followed(store, tmp_path, kind):
    first = run("plain-decay", store=store)
    path = folder(store)
    foreign = tmp_path / "foreign"
    shutil.copytree(path, foreign / "copy")
    (foreign / "thesis.tex").write_text("years of work")
    before = {p: p.read_bytes() for p in foreign.rglob("*") if p.is_file()}
    replace_by(kind, path, foreign)
    with pytest.warns(Damaged):
        second = run("plain-decay", store=store)
    assert (second.how, second.checks) == ("computed", first.checks)
    assert path.is_dir() and not path.is_symlink()
    assert run("plain-decay", store=store).how == "stored"
    assert {p: p.read_bytes() for p in foreign.rglob("*") if p.is_file()} == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]  # no leftovers


@pytest.mark.parametrize(
    "other",
    [
        ("plain-decay", {"seed": 1}),
        ("plain-decay", {"rate": 0.4}),
        ("plain-decay", {"preset": "full"}),
        ("wide-decay", {}),
    ],
    ids=["seed", "field", "preset", "claim"],
)
def test_the_sound_result_of_another_question_is_never_believed(store, other):
    name, options = other
    expected = run("plain-decay", store=store)
    path = folder(store)
    wrong = run(name, store=Store(store.root / "elsewhere"), **options)
    shutil.rmtree(path)
    shutil.copytree(folder(Store(store.root / "elsewhere"), name), path)
    assert wrong.seed == options.get("seed", 0)
    with pytest.warns(Damaged, match="it is the result of another question"):
        found = run("plain-decay", store=store)
    assert (found.how, found.checks, found.seed) == ("computed", expected.checks, 0)
    assert found.params == expected.params


def test_a_result_that_was_signed_for_another_name_is_not_believed(store):
    """The claim's name in the record changed, with a checksum that fits."""
    run("wide-decay", store=store)
    path = folder(store, "wide-decay")
    moved = store.root / "plain-decay" / path.name
    shutil.copytree(path, moved)
    signed(moved / "result.json", lambda record: record.update(claim="plain-decay"))
    with pytest.warns(Damaged, match="another question"):
        assert store.read(moved) is None


def test_listing_leaves_the_damaged_out(store):
    run("plain-decay", store=store)
    run("shifted-decay", store=store)
    truncate(folder(store) / "arrays.npz")
    with pytest.warns(Damaged):
        assert [result.claim for _, result in store] == ["shifted-decay"]
    with pytest.warns(Damaged):
        assert list(store.of_claim("plain-decay")) == []


# ----------------------------------------------------------------------------------------------- writing


def test_what_a_killed_run_left_behind_is_no_result(store):
    run("plain-decay", store=store)
    leftover = store.root / "plain-decay" / ".new-abc-1"
    shutil.copytree(folder(store), leftover)
    assert len(list(store)) == 1
    beside = folder(store) / ".new-figure.svg-2"
    beside.write_text("<svg")
    run("plain-decay", store=store, force=True)
    assert not leftover.exists()
    assert not list(store.root.rglob(".*"))


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(UserError, match="cannot write to the folder"):
        run(
            "plain-decay",
            store=Store(blocked / "results"),
            watch=lambda stage: pytest.fail("it started to work"),
        )


@pytest.mark.parametrize("stage", ["arrays", "panels", "rename"])
def test_a_full_disk_is_said_and_leaves_nothing_behind(store, monkeypatch, stage):
    first = run("plain-decay", store=store)
    before = {path: path.read_bytes() for path in store.root.rglob("*") if path.is_file()}

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    places = {
        "arrays": "numpy.savez",
        "panels": "pathlib.Path.write_text",
        "rename": "steepest.core.writing.os.rename",
    }
    with monkeypatch.context() as patch:
        patch.setattr(places[stage], full)
        with pytest.raises(UserError, match=r"cannot write .*No space left on device.* --out"):
            store.save(first, Question.of(first))
    assert {path: path.read_bytes() for path in store.root.rglob("*") if path.is_file()} == before
    assert run("plain-decay", store=store).how == "stored"


def test_a_result_that_cannot_be_moved_into_place_keeps_the_old_one(store, monkeypatch):
    """The old folder is moved aside, and then the disk fails: what was there comes back."""
    first = run("plain-decay", store=store)
    path = folder(store)
    honest = os.rename
    calls = []

    def second_fails(source, target):
        calls.append(target)
        if len(calls) == 3:
            raise OSError(5, "Input/output error")
        honest(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(writing.os, "rename", second_fails)
        with pytest.raises(UserError, match="Input/output error"):
            store.save(replace(first, seconds=9.0), Question.of(first))
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert store.read(path).seconds == first.seconds


def test_no_pickle_is_written_or_read(store):
    run("plain-decay", store=store)
    with np.load(folder(store) / "arrays.npz", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)


def test_the_question_of_a_run_is_that_of_its_result():
    asked = ready("plain-decay", "full", 3, {"rate": 0.25})
    assert (
        Question.of(run("plain-decay", preset="full", seed=3, rate=0.25)).key == asked.question.key
    )


def test_another_process_that_was_quicker_keeps_its_folder(tmp_path, monkeypatch):
    final = tmp_path / "final"
    ours = tmp_path / "ours"
    theirs = tmp_path / "theirs"
    for path in (final, ours, theirs):
        path.mkdir()
        (path / path.name).write_text("")
    honest = os.rename

    def raced(source, target):
        if source == final:  # between our two steps they put theirs there
            honest(source, target)
            honest(theirs, final)
        else:
            honest(source, target)

    monkeypatch.setattr(writing.os, "rename", raced)
    assert writing.move_into_place(ours, final) == final
    assert [path.name for path in tmp_path.iterdir()] == ["final"]
    assert [path.name for path in final.iterdir()] == ["theirs"]


def test_results_are_listed_by_when_they_were_written_whatever_is_drawn_beside_them(store):
    run("plain-decay", store=store)
    run("plain-decay", store=store, seed=1)
    before = [result.seed for _, result in store]
    first = next(iter(store))[0]
    (first / "figure.svg").write_text("<svg/>")  # changes the folder's time and not the result's
    assert [result.seed for _, result in store] == before == [0, 1]
