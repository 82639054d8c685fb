"""Logs that are long, odd, or not files: what is kept of them, and that nothing breaks off or hangs."""

import json
import math
import os
import random

import pytest

from steepest.core.errors import UserError
from steepest.measurement import watch
from steepest.measurement.training import _log


def entry(value, **more):
    return {"value": value, **more}


def record(step, value=1.0, **more):
    quantities = {"risk": entry(value, compared=2.3, theory="2.3 for a constant guess")}
    return {"step": step, "quantities": quantities, **more}


def written(folder, lines):
    file = folder / "run.jsonl"
    text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines)
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    return file


def test_a_long_training_keeps_its_ends_its_extremes_and_evenly_spaced_records(
    tmp_path, monkeypatch
):
    """Against the whole list: a spike that lasts one record stays, whatever its place."""
    monkeypatch.setattr(_log, "HISTORY", 64)
    monkeypatch.setattr(_log, "NEWEST", 10)
    draw = random.Random(3)
    values = [draw.random() for _ in range(5000)]
    values[1357], values[2468] = 50.0, -50.0
    lines = [record(step, value) for step, value in enumerate(values)]
    lines[777]["warnings"] = ["look"]
    run = watch(written(tmp_path, lines))
    steps = run.steps.tolist()
    assert steps == sorted(set(steps))
    assert {0, 1357, 2468, 777, *range(4990, 5000)} <= set(steps)
    assert len(steps) <= 64 + 2 * 10 + 3
    assert run.left_out == 5000 - len(steps)
    assert f"{len(steps)} records of 5000" in run.title
    (row,) = run.rows
    assert (row.first, row.last) == (values[0], values[-1])
    assert (row.least, row.most) == (min(values), max(values))
    even = [step for step in steps if step % 128 == 0]
    assert even == list(range(0, 5000, 128))


def test_the_largest_ratio_to_a_limit_that_changes_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(_log, "HISTORY", 16)
    monkeypatch.setattr(_log, "NEWEST", 2)
    lines = [record(step, 10.0 - step / 1000) for step in range(1000)]
    for line in lines:
        line["quantities"]["risk"]["compared"] = 5.0
    lines[501]["quantities"]["risk"]["compared"] = 0.1
    assert 501 in watch(written(tmp_path, lines)).steps


def test_of_ordinary_length_everything_is_kept(tmp_path):
    lines = [record(step, draw) for step, draw in enumerate([3.0, 1.0, 2.0] * 300)]
    run = watch(written(tmp_path, lines))
    assert run.left_out == 0
    assert list(run.records) == lines


def test_trainings_of_one_file_are_told_apart_as_they_are_read(tmp_path):
    lines = [record(0, 1.0), record(5, 2.0), record(5, 3.0), record(2, 4.0), record(2, 5.0)]
    lines.append(record(2, 6.0, started="again"))
    file = written(tmp_path, lines)
    for number, values in ((1, [1.0, 3.0]), (2, [5.0]), (3, [6.0]), (None, [6.0])):
        run = watch(file, number)
        assert run.columns["risk"].tolist() == values
        assert (run.number, run.total) == (number or 3, 3)
    for number in (0, 4, -1):
        with pytest.raises(UserError, match="3 trainings"):
            watch(file, number)


DEEP = "[" * 100_000
HUGE = "9" * 5000
ODD = [
    '{"step": WORD, "quantities": {}}'.replace("WORD", HUGE),
    '{"step": 9223372036854775808, "quantities": {}}',
    '{"step": 1, "quantities": {"risk": {"value": WORD}}}'.replace("WORD", HUGE),
    '{"step": 1, "quantities": {"risk": {"value": WORD}}}'.replace("WORD", HUGE[:400]),
    '{"step": 1, "quantities": {"risk": {"value": 1, "compared": WORD}}}'.replace(
        "WORD", HUGE[:400]
    ),
    '{"step": 1, "quantities": {"risk": {"value": 1, "interval": [WORD, 1]}}}'.replace(
        "WORD", HUGE[:400]
    ),
    '{"step": 1, "lr": "large", "quantities": {}}',
    '{"step": 1, "lr": [], "quantities": {}}',
    '{"step": 1, "momentum": {}, "quantities": {}}',
    '{"step": 1, "quantities": {"risk": {"value": nan}}}',
    '{"step": 1, "quantities": {"risk": {"value": +Infinity}}}',
    '{"step": 1, "quantities": {"risk": {"value": 1, "more": WORD}}}'.replace("WORD", DEEP),
    DEEP,
    "\x00" * 100,
    "\udcff\udcfe",
]


@pytest.mark.parametrize("line", ODD, ids=range(len(ODD)))
def test_a_line_that_no_monitor_writes_costs_only_itself(tmp_path, line):
    run = watch(written(tmp_path, [record(0, 2.0), line, record(3, 1.0)]))
    assert run.steps.tolist() == [0, 3]
    assert run.findings is not None and run.rows and json.dumps(run.to_json())
    with pytest.raises(UserError, match="no log of a monitor"):
        watch(written(tmp_path, [line]))


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e-999"])
def test_numbers_beyond_all_floats_are_read_as_python_spells_them(tmp_path, word):
    odd = '{"step": 1, "quantities": {"risk": {"value": WORD, "compared": WORD}}}'.replace(
        "WORD", word
    )
    run = watch(written(tmp_path, [record(0, 2.0), odd, record(3, 1.0)]))
    assert run.steps.tolist() == [0, 1, 3]
    value = run.columns["risk"][1]
    assert value == float(word) or math.isnan(value)
    assert run.findings is not None and run.panels and json.dumps(run.to_json())


@pytest.mark.parametrize("sign", ["\x00", "\x1b[2J", "\u202e", "\ud800", "\n", "\x7f"])
def test_names_and_sentences_show_what_no_terminal_can(tmp_path, sign):
    odd = record(1, 1.0, warnings=[f"look{sign}here"])
    odd["quantities"][f"risk{sign}"] = entry(1.0, theory=f"2{sign}")
    run = watch(written(tmp_path, [odd, record(2)]))
    texts = [*run.names, *(text for _, text in run.warnings), *(row.theory for row in run.rows)]
    assert all(text.isprintable() for text in texts)
    assert len(run.names) == 2 and len(run.warnings) == 1
    assert run.panels and run._repr_html_().encode()


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "loop"])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path, kind):
    path = tmp_path / "run.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else path.name)
    with pytest.raises(UserError, match="cannot read the log|there is no log"):
        watch(path)


def test_a_line_without_end_is_not_held_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(_log, "LONGEST", 1000)
    long = '{"step": 1, "quantities": {}, "more": "' + "x" * 5000 + '"}'
    run = watch(written(tmp_path, [record(0), long, "y" * 999, record(2)]))
    assert run.steps.tolist() == [0, 2]
