"""Reports and trainings as tables of pandas: the same numbers, and a sentence where pandas is missing."""

import json
import math
import sys

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement import Reading, Report, TrainingRun, measure
from tests.measurement.test_measure import linear, regression, squared

SHARPNESS = {"value": 3.0, "compared": 4.0, "theory": "2/η"}
RUN = TrainingRun(
    "run.jsonl",
    (
        {"step": 0, "quantities": {"risk": {"value": 1.0}}, "lr": 0.5},
        {"step": 7, "quantities": {"sharpness": SHARPNESS}},
    ),
)


def test_a_report_has_a_row_a_reading():
    readings = (
        Reading("risk", 0.5, id="risk"),
        Reading("λ", 3.0, (2.0, 4.0), "residual", "2/η", 5.0, id="sharpness", layer="0.weight"),
        Reading("NC1", math.nan, id="collapse"),
    )
    frame = Report("Net", 3, 5, readings, 1, 0.1).to_pandas()
    assert list(frame.columns) == (
        ["id", "name", "layer", "value", "low", "high", "source_of_error", "compared", "theory"]
    )
    middle = ["sharpness", "λ", "0.weight", 3.0, 2.0, 4.0, "residual", 5.0, "2/η"]
    assert frame.iloc[1].tolist() == middle
    assert frame[["low", "high", "compared"]].iloc[[0, 2]].isna().all(axis=None)
    numbers = frame[["value", "low", "high", "compared"]]
    assert all(column == np.float64 for column in numbers.dtypes)


def test_a_measurement_has_the_numbers_of_its_json():
    report = measure(
        (linear, np.zeros(6)), squared, regression(), what=["risk", "sharpness"], lr=0.1
    )
    entries = json.loads(json.dumps(report.to_json()))["quantities"]
    rows = report.to_pandas().to_dict("records")
    for entry, row in zip(entries, rows, strict=True):
        same = ("id", "name", "layer", "value", "source_of_error", "theory")
        assert {key: row[key] for key in same} == {key: entry[key] for key in same}
        low, high = entry["interval"] or (math.nan, math.nan)
        compared = math.nan if entry["compared"] is None else entry["compared"]
        np.testing.assert_equal(
            [row[k] for k in ("low", "high", "compared")], [low, high, compared]
        )


def test_a_report_of_nothing_is_an_empty_table():
    frame = Report("Net", 3, 5, (), 1, 0.1).to_pandas()
    assert frame.shape == (0, 9)
    assert frame["value"].dtype == frame["low"].dtype == frame["compared"].dtype == np.float64


def test_a_training_has_its_columns_by_step():
    frame = RUN.to_pandas()
    assert frame.index.name == "step" and frame.index.tolist() == [0, 7]
    assert list(frame.columns) == ["risk", "sharpness", "sharpness, limit", "lr"]
    for name in frame.columns:
        np.testing.assert_equal(frame[name].to_numpy(), RUN.columns[name])
    assert frame.loc[7, "sharpness"] == 3.0 and np.isnan(frame.loc[0, "sharpness"])


@pytest.mark.parametrize("table", [Report("Net", 3, 5, (), 1, 0.1), RUN], ids=["report", "run"])
def test_without_pandas_a_sentence_says_what_to_install(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match=r"needs pandas; pip install 'steepest\[export\]'"):
        table.to_pandas()
