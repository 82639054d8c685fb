"""Ranges and lists in words and as values; bad ones get one sentence."""

import numpy as np
import pytest
from scipy.stats import qmc

from steepest.core.errors import UserError
from steepest.engine.sweeps._axes import axes, design
from tests.engine.sweeps.toy import Toy


def values(field, said, **options):
    (axis,) = axes(Toy, {field: said}, **options)
    return list(axis.values)


def test_ranges_in_words_are_numpys():
    np.testing.assert_allclose(
        values("scale", "log:0.01:1:20"), np.geomspace(0.01, 1, 20), rtol=1e-11
    )
    np.testing.assert_allclose(values("shift", "linear:-1:1:7"), np.linspace(-1, 1, 7), rtol=1e-11)
    assert values("scale", "linear:0.1:0.5:5") == [
        0.1,
        0.2,
        0.3,
        0.4,
        0.5,
    ]  # as one would write them
    assert values("seed", "0:8") == list(range(8))
    assert values("seed", "0:9:3") == [0, 3, 6]
    assert values("width", "64,256, 1024") == [64, 256, 1024]
    assert values("word", "tanh,relu") == ["tanh", "relu"]
    assert values("flag", "true,false") == [True, False]


def test_whole_numbers_are_rounded_and_counted_once():
    assert values("width", "log:1:8:20") == list(range(1, 9))


def test_python_values_are_taken_as_they_are():
    assert values("width", range(1, 4)) == [1, 2, 3]
    assert values("scale", np.array([0.5, 1.0])) == [0.5, 1.0]
    assert values("scale", 2) == [2.0]
    assert values("parts", [0.5, 2]) == [0.5, 2.0]  # each becomes a tuple of one


def test_a_grid_is_every_combination_once():
    chosen = axes(Toy, {"scale": [1, 2, 3], "width": [4, 5], "seed": "0:2"})
    rows = design(chosen)
    assert rows.shape == (12, 3)
    assert len({tuple(row) for row in rows}) == 12
    assert rows.max(0).tolist() == [2, 1, 1]


def test_sobol_points_are_scipys_and_cross_other_fields():
    chosen = axes(Toy, {"scale": "log:0.1:10", "seed": "0:2", "shift": "linear:-1:1"}, sobol=8)
    expected = qmc.Sobol(2, scramble=False).random(16)[1:9]
    scale, _, shift = chosen
    np.testing.assert_allclose(np.log10(scale.values), 2 * expected[:, 0] - 1, atol=1e-9)
    np.testing.assert_allclose(shift.values, 2 * expected[:, 1] - 1, atol=1e-9)
    rows = design(chosen)
    assert len(rows) == 16  # eight points at each of two seeds
    np.testing.assert_array_equal(rows[:, 0], rows[:, 2])  # the two fields move together


def test_sobol_points_may_coincide_in_whole_numbers():
    chosen = axes(Toy, {"scale": "log:0.1:10", "width": "linear:1:3"}, sobol=8)
    assert len(design(chosen)) == 8
    assert set(chosen[1].values) == {1, 2, 3}


@pytest.mark.parametrize(
    ("over", "sobol", "sentence"),
    [
        ({"widht": "1,2"}, None, r"Toy has no field 'widht'; did you mean 'width'\?"),
        (
            {"scale": "log:0.1:1"},
            None,
            "scale=log:0.1:1 names no number of points; write log:0.1:1:20, or draw points",
        ),
        ({"shift": "log:-1:1:5"}, None, "passes through zero, where there is no logarithm"),
        ({"shift": "log:0:1:5"}, None, "passes through zero"),
        ({"scale": "log:1:0.1:5"}, None, "from a smaller to a larger finite number, got 1 and 0.1"),
        ({"scale": "log:1:2:0"}, None, "needs at least 2 points, got '0'"),
        ({"scale": "log:1:2:few"}, None, "needs at least 2 points, got 'few'"),
        ({"scale": "log:1:2:"}, None, "needs at least 2 points"),
        (
            {"scale": "geometric:1:2:3"},
            None,
            "cannot read scale=geometric:1:2:3; a range is log:LOW:HIGH:POINTS",
        ),
        ({"word": "log:1:2:3"}, None, "word is no number, so it has no range"),
        ({"width": "1,two"}, None, "width takes a whole number, got 'two'"),
        ({"width": "1.5,2"}, None, "width takes a whole number, got '1.5'"),
        ({"scale": "1,nan"}, None, "scale must be a finite number, got nan"),
        ({"flag": "maybe"}, None, "flag takes true or false"),
        ({"width": ","}, None, "has no values"),
        ({"seed": "5:5"}, None, "has no values"),
        ({"scale": []}, None, "has no values"),
        ({}, None, "nothing to sweep over"),
        ({"scale": "1,2"}, 8, "there are none"),
        ({"scale": "log:1:2"}, 0, "at least 1"),
        ({"scale": "linear:1:1e400:3"}, None, "to a larger finite number, got 1 and 1e400"),
        ({"scale": "log:1:2:99999999999"}, None, "would have 1e[+]11 points, and a plan holds at"),
        ({"seed": "0:99999999999"}, None, "a plan holds at most 1e[+]07; name fewer values"),
        ({"scale": "log:1:2:5000", "width": "1:9000"}, None, "would have 4.5e[+]07 points"),
        ({"scale": "log:1:2"}, 10**9, "would have 1e[+]09 points"),
        ({"seed": "2147483648"}, None, "seed must be at least 0 and at most 2.14748e[+]09"),
        ({"width": str(2**64)}, None, "width must be a whole number of at most 64 bits"),
        ({"scale": [True]}, None, "scale takes a number, got True"),
        ({"word": [1]}, None, "word takes a word, got 1"),
    ],
)
def test_bad_input_gets_one_sentence(over, sobol, sentence):
    with pytest.raises(UserError, match=sentence):
        axes(Toy, over, sobol)


def test_an_axis_says_itself():
    assert str(axes(Toy, {"scale": "log:1:100:30"})[0]) == "scale: 1 to 100, 30 values, logarithmic"
    assert str(axes(Toy, {"word": "tanh,relu"})[0]) == "word: tanh, relu"


def test_a_logarithmic_range_may_be_wider_than_any_number():
    assert values("scale", "log:1e-300:1e300:5") == [1e-300, 1e-150, 1.0, 1e150, 1e300]
