"""sawtooth: pieces by exact breakpoints, the bound by networks that are fitted, and bad input."""

from fractions import Fraction

import numpy as np
import pytest

from steepest.claims.expressivity.sawtooth.claim import Sawtooth
from steepest.claims.expressivity.sawtooth.experiment import (
    SawtoothPoint,
    count_pieces,
    count_spikes,
    on_grid,
    printed_network,
    shallow_neurons,
    shares,
    teeth,
)
from steepest.core.errors import UserError
from steepest.core.words import Verdict
from steepest.engine.run import run
from steepest.geometry import zigzag

RNG = np.random.default_rng(0)


def exact_breaks(depth):
    """Breakpoints in (0, 1) of the tent's iterates, by preimages of ½ in fractions."""
    breaks = {Fraction(1, 2)}
    level = breaks
    for _ in range(depth - 1):
        level = {y / 2 for y in level} | {1 - y / 2 for y in level}
        breaks = breaks | level
    return breaks


def test_the_printed_network_is_the_sawtooth_of_two_neurons_a_layer():
    steps = 4 * 2**6
    printed = on_grid(printed_network(6), 0, 1, steps)
    assert np.array_equal(printed, on_grid(zigzag(6), 0, 1, steps))


def test_tents_of_half_the_height_do_not_fold():
    """What one gives is at most ½, where the next goes straight up: L layers are one tent."""
    for depth in (1, 3, 6):
        values = on_grid(printed_network(depth, 0.5), 0, 1, 4 * 2**depth)
        assert (count_pieces(values), count_spikes(values)) == (2, 1)


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_pieces_are_counted(depth):
    breaks = exact_breaks(depth)
    values = on_grid(zigzag(depth), 0, 1, 4 * 2**depth)
    assert count_pieces(values) == len(breaks) + 1 == 2**depth
    assert count_spikes(values) == 2 ** (depth - 1)
    assert count_pieces(on_grid(printed_network(depth), -1, 2, 12 * 2**depth)) == 2**depth + 2


def test_shallow_networks_of_fixed_corners_stay_above_the_bound():
    """Least squares on n random corners: worse than the optimum over all pieces, which is above the bound."""
    values = teeth(5)
    x = (np.arange(len(values)) + 0.5) / len(values)
    for n in (3, 8, 15):
        optimum = shares(values, n)[-1]
        assert optimum >= 1 - n / 16
        for _ in range(5):
            columns = np.maximum(x[:, None] - RNG.uniform(size=n), 0)
            columns = np.hstack([columns, np.ones((len(x), 1)), x[:, None]])
            residual = np.linalg.lstsq(columns, values, rcond=None)[1].item()
            assert residual / len(x) / values.var() >= optimum


def test_each_tooth_has_the_variance_of_the_whole_and_no_slope():
    values = teeth(4).reshape(8, -1)
    np.testing.assert_allclose(values.var(axis=1), teeth(4).var(), rtol=1e-12)
    steps = np.arange(values.shape[1])
    np.testing.assert_allclose(np.polyfit(steps, values.T, 1)[0], 0, atol=1e-12)


def test_one_neuron_fewer_than_pieces_is_not_enough():
    assert [shallow_neurons(depth) for depth in (1, 2)] == [2, 4]


def test_the_point_is_the_claim_s_share():
    claim = Sawtooth(error_depths=(5,), neurons=(4,))
    point = SawtoothPoint.of(claim)
    ours = point.observe(None, None)["share"]
    assert ours == claim.observe(None, None)["share"][0, 0]
    assert point.predict(None)["share"] == claim.predict(None)["share"][0, 0] == 0.75


def test_out_of_range():
    assert run(Sawtooth(depths=(2,), neurons=(40,))).verdict is Verdict.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"widths": (3,)}, "go together"),
        ({"widths": (10,), "width_depths": (9,)}, "at most 65536"),
        ({"error_depths": (9,)}, "at most 8"),
        ({"neurons": (0,)}, "at least 1"),
    ],
)
def test_bad_input(fields, words):
    with pytest.raises(UserError, match=words):
        Sawtooth(**fields)
