"""Tables of a sweep, and its exports."""

import csv

import numpy as np
import pytest

from steepest.app.notebook import shown_sweep
from steepest.core.errors import UserError
from steepest.engine.sweeps import gather, plan, stored_sweeps, work

pytestmark = pytest.mark.usefixtures("toy")


def swept(out, over, **options):
    planned = plan("toy", over, **options)
    work(planned, out).run()
    return gather(planned, out)


@pytest.fixture
def grid(tmp_path, toy):
    return swept(tmp_path, {"scale": "1,2,13", "width": "2,3", "seed": "0:2"})


def test_columns_hold_what_was_measured_and_predicted(grid):
    numbers = grid.numbers
    assert list(numbers) == [
        "level_measured",
        "level_predicted",
        "level_low",
        "level_high",
        "spread_measured",
    ]
    scale = np.array(grid.plan.columns["scale"])
    sound = scale != 13
    np.testing.assert_array_equal(numbers["level_predicted"][sound], 2 * scale[sound])
    np.testing.assert_allclose(numbers["level_measured"][sound], 2 * scale[sound], rtol=0.1)
    assert np.isnan(numbers["level_measured"][~sound]).all()
    assert (numbers["level_low"] <= numbers["level_high"])[sound].all()


def test_columns_are_the_whole_table(grid):
    assert list(grid.columns) == ["scale", "width", "seed", "verdict", "reason", *grid.numbers]
    np.testing.assert_array_equal(grid.columns["scale"], grid.plan.columns["scale"])
    np.testing.assert_array_equal(grid.columns["level_low"], grid.numbers["level_low"])
    assert (grid.columns["verdict"] == "crashed").sum() == 4


def test_columns_are_named_by_id_and_shown_by_label(tmp_path, toy, monkeypatch):
    labels = {"spread": "σ of the level"}
    monkeypatch.setattr(toy.point, "labels", labels)
    sweep = swept(tmp_path, {"scale": "1,2"})
    assert sweep.labels == {"level": "level", "spread": "σ of the level"}
    assert "spread_measured" in sweep.columns
    assert "<td>σ of the level</td>" in shown_sweep(sweep)._repr_html_()
    assert sweep.to_xarray().attrs["label_spread"] == "σ of the level"


def test_counts_and_crashes(grid):
    assert grid.counts == {"holds": 8, "crashed": 4}
    assert grid.crashes == {"RuntimeError: thirteen": 4}
    assert grid.total == 12


def test_a_notebook_shows_counts_and_ranges(grid):
    shown = shown_sweep(grid)._repr_html_()
    assert "8 holds, 4 crashed of 12 points" in shown
    assert "<td>level</td>" in shown
    assert f"<td>{grid.ends('level predicted')}</td>" in shown
    assert grid.ends("level_predicted") == "2 … 4"
    assert grid.ends("spread_predicted") == ""


def test_csv_has_a_row_a_point(grid, tmp_path):
    with open(grid.to_csv(tmp_path / "t.csv"), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert rows[0]["scale"] == "1.0"
    assert float(rows[0]["level_measured"]) == grid.columns["level_measured"][0]  # every digit
    assert [row["level_measured"] for row in rows if row["verdict"] == "crashed"] == [""] * 4


def test_pandas_and_parquet_are_the_same_table(grid, tmp_path):
    import pandas

    frame = grid.to_pandas()
    assert list(frame.columns[:5]) == ["scale", "width", "seed", "verdict", "reason"]
    pandas.testing.assert_frame_equal(
        pandas.read_parquet(grid.to_parquet(tmp_path / "t.parquet")), frame
    )


def test_xarray_has_a_dimension_a_field(grid, tmp_path):
    data = grid.to_xarray()
    assert dict(data.sizes) == {"scale": 3, "width": 2, "seed": 2}
    one = data["level_measured"].sel(scale=2.0, width=3, seed=1).item()
    where = [i for i in range(12) if grid.plan.at(i) == ({"scale": 2.0, "width": 3}, 1)]
    assert one == grid.columns["level_measured"][where[0]]
    drawn = swept(
        tmp_path / "sobol", {"scale": "log:1:8", "seed": "0:2", "shift": "linear:0:1"}, sobol=4
    ).to_xarray()
    assert dict(drawn.sizes) == {"point": 4, "seed": 2}
    assert drawn["scale"].dims == ("point",)


def test_stored_sweeps_are_found_newest_first(tmp_path, toy):
    import os
    import time

    first = swept(tmp_path, {"scale": "1,2"})
    second = swept(tmp_path, {"scale": "1,2,4"})
    old = tmp_path / "toy" / "sweeps" / f"{first.key}.json"
    os.utime(old, (time.time() - 100,) * 2)
    found = list(stored_sweeps(tmp_path))
    assert [each.key for each in found] == [second.key, first.key]
    assert found[1].points == first.points
    assert (
        len(list((tmp_path / "toy" / "points").iterdir())) == 3
    )  # overlapping sweeps share points


def test_a_damaged_or_outdated_plan_is_left_out_and_said(tmp_path, toy, monkeypatch):
    found = swept(tmp_path, {"scale": "1,2"})
    path = tmp_path / "toy" / "sweeps" / f"{found.key}.json"
    text = path.read_text("utf-8")
    path.write_text(text.replace("1,2", "1,3"), "utf-8")
    with pytest.warns(UserWarning, match="is left out: it does not match its checksum"):
        assert list(stored_sweeps(tmp_path)) == []
    path.write_text(text, "utf-8")
    monkeypatch.setattr(toy, "version", 2)
    with pytest.warns(UserWarning, match="it is of version 1 of the claim, which is now at 2"):
        assert list(stored_sweeps(tmp_path)) == []


def test_a_folder_in_the_place_of_a_plan_is_replaced(tmp_path, toy):
    found = swept(tmp_path, {"scale": "1,2"})
    path = tmp_path / "toy" / "sweeps" / f"{found.key}.json"
    path.unlink()
    path.mkdir()
    work(plan("toy", {"scale": "1,2"}), tmp_path, force=True).run()
    assert [sweep.key for sweep in stored_sweeps(tmp_path)] == [found.key]


def test_crashed_points_stay_until_they_are_retried(grid, tmp_path, toy):
    assert not work(grid.plan, tmp_path).missing
    assert len(work(grid.plan, tmp_path, retry=True).missing) == 4
    assert len(work(grid.plan, tmp_path, force=True).missing) == 12


def test_a_disk_that_is_full_is_said(tmp_path, monkeypatch):
    def full(self, key, record):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("steepest.engine.sweeps._points.Points.write", full)
    with pytest.raises(
        UserError, match=r"cannot write to .* \(No space left on device\); finished points are kept"
    ):
        work(plan("toy", {"scale": "1,2"}), tmp_path).run()


@pytest.mark.parametrize("shard", [(0, 3), (4, 3), (1, 0)])
def test_shards_that_are_none(shard, tmp_path):
    with pytest.raises(UserError, match="shards count from 1"):
        work(plan("toy", {"scale": "1,2"}), tmp_path, shard=shard)
