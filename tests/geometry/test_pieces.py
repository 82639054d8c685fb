"""Best pieces against all segmentations, least squares and spline theory; zigzags against a triangle wave."""

import itertools

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.geometry import best_pieces, preactivations, zigzag

RNG = np.random.default_rng(0)


def by_force(y, pieces):
    """The best of all ways to cut the points into so many runs, each fitted by ``polyfit``."""
    best = np.inf
    for cuts in itertools.combinations(range(1, len(y)), pieces - 1):
        total = 0.0
        for low, high in itertools.pairwise([0, *cuts, len(y)]):
            x = np.arange(low, high)
            if high - low > 2:
                total += ((y[low:high] - np.polyval(np.polyfit(x, y[low:high], 1), x)) ** 2).sum()
        best = min(best, total)
    return best / len(y)


@pytest.mark.parametrize("pieces", [1, 2, 3, 4])
def test_the_dynamic_program_finds_the_best_of_all(pieces):
    y = RNG.standard_normal(9)
    assert best_pieces(y, pieces)[-1] == pytest.approx(by_force(y, pieces), abs=1e-12)


def test_errors_fall_and_end_at_zero():
    errors = best_pieces(100 + RNG.standard_normal(20), 15)
    assert (np.diff(errors) <= 1e-12).all()
    np.testing.assert_allclose(errors[9:], 0, atol=1e-12)  # two points a piece


def test_a_parabola_falls_like_the_fourth_power():
    """A straight fit to x² on an interval of length h leaves h⁴/180."""
    y = np.linspace(-1, 1, 1201) ** 2
    errors = best_pieces(y, 8)
    pieces = np.arange(1, 9)
    np.testing.assert_allclose(errors, (2 / pieces) ** 4 / 180, rtol=0.02)


@pytest.mark.parametrize(("depth", "width"), [(1, 2), (5, 2), (3, 3), (2, 5)])
def test_zigzags_are_triangle_waves(depth, width):
    x = RNG.uniform(size=200)
    turned = (x * width**depth) % 2
    wave = np.minimum(turned, 2 - turned)
    values = preactivations(zigzag(depth, width), x[:, None])[-1][:, 0]
    np.testing.assert_allclose(values, wave, atol=1e-11)
    assert sum(len(layer.matrix) for layer in zigzag(depth, width)[:-1]) == depth * width


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: best_pieces([], 1), "y must be"),
        (lambda: best_pieces([[1.0]], 1), "shape"),
        (lambda: best_pieces([1.0, np.nan], 1), "finite"),
        (lambda: best_pieces([1.0], 0), "at least one piece"),
        (lambda: zigzag(0), "at least one layer"),
        (lambda: zigzag(2, 1), "two neurons"),
    ],
)
def test_bad_input(build, words):
    with pytest.raises(UserError, match=words):
        build()
