"""What is kept between runs may be lost, damaged or of another state, and nothing goes wrong."""

import pytest

from steepest.cache import Table, cache_folder


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "steepest"


def test_a_value_is_there_for_the_next_process(folder):
    assert cache_folder() == folder
    Table("sums", "a").put("x", {"y": 1})
    assert Table("sums", "a").get("x") == {"y": 1}
    assert Table("sums", "a").get("z") is None


def test_values_of_another_state_are_forgotten():
    Table("sums", "a").put("x", 1)
    assert Table("sums", "b").get("x") is None
    Table("sums", "b").put("y", 2)
    assert Table("sums", "a").get("x") is None


def test_what_others_kept_meanwhile_stays():
    mine = Table("sums", "a")
    Table("sums", "a").put("theirs", 1)
    mine.put("mine", 2)
    kept = Table("sums", "a")
    assert (kept.get("theirs"), kept.get("mine")) == (1, 2)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"state": "a", "values": 3}'])
def test_a_damaged_file_holds_nothing(folder, text):
    folder.mkdir()
    Table("sums", "a").path.write_text(text)
    table = Table("sums", "a")
    assert table.get("x") is None
    table.put("x", 1)
    assert Table("sums", "a").get("x") == 1


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    table = Table("sums", "a")
    table.put("x", 1)
    assert table.get("x") == 1
