"""What a phase diagram shows, as data."""

import numpy as np
import pytest

from steepest.app.notebook import shown_sweep
from steepest.core.panels import Map, Panel
from steepest.engine.sweeps import gather, plan, work
from steepest.engine.sweeps._diagram import VERDICTS

pytestmark = pytest.mark.usefixtures("toy")


def swept(out, over, **options):
    planned = plan("toy", over, **options)
    work(planned, out).run()
    return gather(planned, out)


def maps(sweep):
    return {each.title: each for each in sweep.panels if isinstance(each, Map)}


def test_two_fields_give_maps_with_boundaries(tmp_path):
    sweep = swept(tmp_path, {"scale": "log:1:8:4", "width": "2,3", "seed": "0:2"})
    found = maps(sweep)
    assert list(found) == ["Verdict", "level, measured", "level, predicted", "spread, measured"]
    verdict, measured, predicted = list(found.values())[:3]
    assert verdict.words == VERDICTS
    assert (np.array(verdict.values) == VERDICTS.index("holds")).all()
    assert measured.values.shape == (2, 4)
    assert (measured.xscale, measured.yscale) == ("log", "linear")
    assert measured.limits == predicted.limits
    assert [curve.label for curve in measured.curves] == ["edge"]
    assert (measured.role, predicted.role) == ("observed", "predicted")
    np.testing.assert_allclose(predicted.values, 2 * np.geomspace(1, 8, 4)[None].repeat(2, 0))


def test_maps_show_the_mean_over_seeds(tmp_path):
    sweep = swept(tmp_path, {"scale": "1,2", "width": "2,3", "seed": "0:3"})
    values = maps(sweep)["level, measured"].values
    columns = {name: np.array(column) for name, column in sweep.plan.columns.items()}
    for row, width in enumerate((2, 3)):
        for column, scale in enumerate((1, 2)):
            chosen = (columns["scale"] == scale) & (columns["width"] == width)
            np.testing.assert_allclose(
                values[row, column], sweep.columns["level_measured"][chosen].mean(), rtol=1e-14
            )


def test_points_in_any_order_land_in_their_cells(tmp_path):
    sweep = swept(tmp_path, {"scale": "4,1,2", "width": "3,2"})
    found = maps(sweep)["level, predicted"]
    assert list(found.across) == [1, 2, 4]
    assert list(found.up) == [2, 3]
    np.testing.assert_array_equal(found.values, [[2, 4, 8], [2, 4, 8]])


def test_what_could_not_be_computed_is_a_category_and_a_gap(tmp_path):
    found = maps(swept(tmp_path, {"scale": "12,13", "width": "2,3"}))
    assert np.array(found["Verdict"].values)[:, 1].tolist() == [VERDICTS.index("crashed")] * 2
    assert np.isnan(found["level, measured (predicted: 24)"].values[:, 1]).all()
    assert "level, predicted" not in found  # one number for the whole plane needs no map


def test_a_sweep_that_is_not_whole_has_gaps(tmp_path):
    planned = plan("toy", {"scale": "log:1:8:4", "width": "2,3"}, batch=2)
    work(planned, tmp_path, shard=(1, 2)).run()
    found = maps(gather(planned, tmp_path))["Verdict"]
    assert np.isnan(found.values).sum() == 4


def test_a_third_field_has_maps_of_its_own(tmp_path):
    found = maps(swept(tmp_path, {"scale": "1,2", "width": "2,3", "shift": "0,0.1"}))
    assert "Verdict, shift = 0.0" in found
    assert "Verdict, shift = 0.1" in found


def test_one_field_gives_lines_with_exponents(tmp_path):
    sweep = swept(tmp_path, {"scale": "log:1:100:9"})
    level, _ = sweep.panels
    assert isinstance(level, Panel)
    assert (level.xscale, level.yscale) == ("log", "log")
    assert level.curves[0].label.startswith("measured, exponent 1.00 (")
    assert level.curves[1].role == "predicted"


def test_line_families_have_one_line_a_value(tmp_path):
    sweep = swept(tmp_path, {"scale": "log:1:100:9", "width": "2,3"})
    (family,) = (each for each in sweep.panels if isinstance(each, Panel))
    assert [curve.label.partition(",")[0] for curve in family.curves if curve.label] == [
        "width = 2",
        "width = 3",
    ]


def test_sobol_points_are_scattered(tmp_path):
    found = maps(swept(tmp_path, {"scale": "log:1:8", "shift": "linear:0:1"}, sobol=8))[
        "level, measured"
    ]
    assert found.values.shape == found.across.shape == found.up.shape == (8,)


def test_words_alone_have_no_diagram(tmp_path):
    planned = plan("toy", {"flag": "true,false"}, whole=True)
    work(planned, tmp_path).run()
    assert gather(planned, tmp_path).panels == ()


def test_panels_are_drawn(tmp_path):
    shown = shown_sweep(swept(tmp_path, {"scale": "1,2,13", "width": "2,3"}))
    assert len(shown.figure().axes) >= 4
    assert "<svg" in shown._repr_html_()
    assert repr(shown).startswith("<toy over ")
    assert "of 6 points" in repr(shown)


def test_contours_are_where_a_column_takes_a_value(tmp_path, monkeypatch, toy):
    monkeypatch.setattr(
        toy.point,
        "contours",
        {"level_predicted": (8.0, "eight"), "nothing_measured": (1.0, "none")},
    )
    sweep = swept(tmp_path, {"scale": "log:1:16:5", "width": "2,3,4", "seed": "0:2"})
    edge, eight = maps(sweep)["Verdict"].curves
    assert (edge.label, eight.label) == ("edge", "eight")
    # level = 2 scale: between scale 4 and the next grid point the interpolation is exact at the grid point itself
    np.testing.assert_allclose(eight.x, 4, rtol=1e-9)
    assert (min(eight.y), max(eight.y)) == (2, 4)


def test_wide_quantities_are_mapped_by_their_logarithms(tmp_path):
    found = maps(swept(tmp_path, {"scale": "log:1:100:5", "width": "2,3"}))
    np.testing.assert_allclose(
        found["log₁₀ level, predicted"].values,
        np.log10(2 * np.geomspace(1, 100, 5))[None] * [[1], [1]],
    )
    assert found["log₁₀ level, measured"].label == "log₁₀ level"
    assert "level, measured" not in found


def test_no_exponent_where_there_is_no_power_law():
    from steepest.engine.sweeps._diagram import _exponent

    x = np.geomspace(1, 100, 9)
    assert _exponent(x, 3 * x**-2) == ", exponent -2.00 (-2.00 … -2.00)"
    assert _exponent(x, x / (1 + x)) == ""  # it saturates
    assert _exponent(x, np.log10(x) - 1) == ""  # it is not positive
    assert _exponent(x, 1 + 0.01 * x) == ""  # it does not double
