"""vc-dimension: dichotomies by exact arithmetic, by random frequencies and by linear programs; and bad input."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from steepest.claims.expressivity._halfspaces import halfspace_dichotomies
from steepest.claims.expressivity.vc_dimension.claim import VcDimension, _cover, _totient
from steepest.claims.expressivity.vc_dimension.experiment import (
    all_labels,
    all_tables,
    counting_bound,
    read_labels,
    shallow_reader,
    sine_frequencies,
    sine_signs,
    spaced_patterns,
    wrong_labels,
)
from steepest.claims.expressivity.vc_dimension.labels import (
    fitted,
    separated,
    separated_features,
)
from steepest.core.errors import UserError
from steepest.core.words import Verdict
from steepest.engine.run import run
from steepest.geometry import bit_reader, central_cell_count, weights_used

RNG = np.random.default_rng(0)


def test_the_sine_in_whole_numbers():
    """ω/π is whole, so that the sign of the sine at 2^(−k) is told by ω/π modulo 2^(k+1), without rounding."""
    labels = all_labels(7)
    whole = np.rint(sine_frequencies(labels) / np.pi).astype(int)
    k = np.arange(1, 8)
    angles = whole[:, None] % 2 ** (k + 1)
    np.testing.assert_array_equal(np.where(angles < 2**k, 1, -1), labels)
    nearest = np.minimum(angles % 2**k, 2**k - angles % 2**k) / 2.0**k
    assert nearest.min() == 2.0**-7
    assert sine_signs(7) == (pytest.approx(np.sin(np.pi / 2**7), rel=1e-9), 2**7)


@pytest.mark.parametrize("m", [3, 4, 7])
def test_no_frequency_gives_another_pattern_on_equally_spaced_points(m):
    patterns = spaced_patterns(np.arange(1, m + 1))
    omega = RNG.uniform(0, 1000, 100_000)
    drawn = np.unique(np.sin(omega[:, None] * np.arange(1, m + 1)) < 0, axis=0)
    np.testing.assert_array_equal(drawn, patterns.astype(bool))
    assert len(patterns) == 2 * sum(_totient(q) for q in range(1, m + 1))


def test_the_pattern_of_the_remark_is_missing():
    patterns = {tuple(row) for row in spaced_patterns(np.arange(1, 5)).tolist()}
    assert len(patterns) == 12 and (0, 0, 1, 0) not in patterns
    assert len({Fraction(k, x) for x in range(1, 5) for k in range(2 * x)}) == 12


@pytest.mark.parametrize(("m", "d"), [(5, 1), (5, 2), (6, 3), (3, 3)])
def test_halfspaces_by_linear_programs(m, d):
    points = RNG.standard_normal((m, d))
    count = 0
    for labels in itertools.product([-1.0, 1.0], repeat=m):
        rows = -np.array(labels)[:, None] * np.column_stack([points, np.ones(m)])
        answer = linprog(np.zeros(d + 1), A_ub=rows, b_ub=-np.ones(m), bounds=(None, None))
        count += answer.status == 0
    assert halfspace_dichotomies(points) == count == central_cell_count(m, d + 1)


def test_all_tables_are_read():
    tables = all_tables(2, 3)
    assert len(np.unique(tables.reshape(64, 6), axis=0)) == 64
    assert wrong_labels(tables)[0] == 0
    assert wrong_labels(RNG.integers(0, 2, (2, 40, 8)), width=4.0)[0] > 0


def test_one_hidden_layer_reads_a_table_with_more_weights_than_it_has_places():
    table = RNG.integers(0, 2, (30, 6))
    layers = shallow_reader(table)
    np.testing.assert_array_equal(read_labels(layers, table.shape), table.astype(bool))
    assert weights_used(layers) > table.size > weights_used(bit_reader(table)) / 3


def test_the_counting_bound_is_where_patterns_reach_all_labellings():
    network = bit_reader(RNG.integers(0, 2, (20, 5)))
    bound = counting_bound(network)
    assert bound > 100
    units = np.array([len(layer.matrix) for layer in network])
    weights = np.cumsum(
        [np.count_nonzero(layer.matrix) + np.count_nonzero(layer.bias) for layer in network]
    )
    orders = np.arange(1, len(network) + 1)
    for m, reaches in ((0.9 * bound, True), (1.1 * bound, False)):
        patterns = (1 + weights * np.log2(2 * np.e * m * units * orders / weights)).sum()
        assert (patterns > m) is np.bool_(reaches)


def test_training_fits_two_points_and_not_a_point_with_two_labels():
    points = np.array([[1.0, 0.0], [-1.0, 0.5], [1.0, 0.0]])
    labels = np.array([[1.0, -1.0, -1.0], [1.0, 1.0, -1.0]])
    starts = (
        RNG.standard_normal((1, 2, 3, 5, 4)) * (np.arange(5) < 4)[:, None]
    )  # the last one is idle
    right = fitted(np.tile(points, (2, 1, 1)), labels, np.array([[2, 3]]), starts, 200)
    assert right.tolist() == [[[True, True], [False, False]]]


def test_frozen_features_are_separated_as_cover_says():
    """Halves by symmetry at 2p points; the formula by sums of binomials; and a linear program by its answer."""
    assert _cover(20, 10) == 0.5
    assert _cover(7, 3) == sum(math.comb(6, k) for k in range(3)) / 2**6
    assert _cover(3, 3) == 1
    features = RNG.standard_normal((12, 4))
    weights = RNG.standard_normal(4)
    assert separated(features, np.sign(features @ weights))
    doubled = np.concatenate([features, features])
    assert not separated(doubled, np.repeat([1.0, -1.0], 12))
    shares = separated_features(np.random.default_rng(0), (5,), (0.8, 2.0, 4.0), 60, "tanh")
    expected = [_cover(n, 5) for n in (4, 10, 20)]
    np.testing.assert_allclose(shares.mean(-1)[0], expected, atol=0.2)


@pytest.mark.parametrize("fields", [{"bits": (60,)}, {"rows": 1}])
def test_out_of_range(fields):
    small = {"dimensions": (1,), "beyond": 2, "labellings": 3}
    assert run(VcDimension(**small, **fields)).verdict is Verdict.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"sine_points": 17}, "at most 16"),
        ({"spaced": 3}, "at least 4"),
        ({"bits": (1,)}, "at least 2"),
        ({"dimensions": (9,)}, "at most 8"),
    ],
)
def test_bad_input(fields, words):
    with pytest.raises(UserError, match=words):
        VcDimension(**fields)
