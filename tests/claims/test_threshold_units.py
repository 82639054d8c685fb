"""threshold-units: dichotomies by enumeration, by counting changes and by random networks; groups on planes."""

import itertools

import numpy as np
import pytest

from steepest.claims.expressivity._halfspaces import halfspace_dichotomies, halfspace_patterns
from steepest.claims.expressivity.threshold_units.experiment import (
    group_units,
    moment_curve,
    threshold_dichotomies,
    threshold_functions,
    units_around,
)

RNG = np.random.default_rng(0)


def test_threshold_functions_are_as_many_as_are_known():
    """Separable labellings of a cube's corners: 4, 14, 104; of two bits parity and its complement are missing."""
    assert [len(threshold_functions(inputs)) for inputs in (1, 2, 3)] == [4, 14, 104]
    parities = {(0, 1, 1, 0), (1, 0, 0, 1)}
    assert parities.isdisjoint(map(tuple, threshold_functions(2).tolist()))


@pytest.mark.parametrize(("d", "h", "n"), [(1, 3, 6), (2, 2, 6), (2, 2, 7), (3, 2, 8)])
def test_threshold_units_on_a_curve_make_what_changes_at_most_hd_times(d, h, n):
    """By an order of the points and by all labellings; halfspaces of hd dimensions on as many points are as many."""
    places = np.sort(RNG.uniform(-1, 1, n))
    changes = [
        sum(a != b for a, b in itertools.pairwise(labels))
        for labels in itertools.product([0, 1], repeat=n)
    ]
    expected = sum(number <= h * d for number in changes)
    assert threshold_dichotomies(halfspace_patterns(moment_curve(places, d)), h) == expected
    assert halfspace_dichotomies(RNG.standard_normal((n, h * d))) == expected
    assert expected < 2**n


def test_random_networks_of_threshold_units_make_no_other_dichotomies():
    """Weights at random in place of an enumeration: none is missing, and most are met."""
    rng = np.random.default_rng(0)  # its own: how many are met depends on the points
    points = rng.standard_normal((7, 2))
    count = 100_000
    units = np.einsum("cud,nd->cnu", rng.standard_normal((count, 2, 2)), points)
    units = units + rng.standard_normal((count, 1, 2)) > 0
    values = np.einsum("cu,cnu->cn", rng.standard_normal((count, 2)), units)
    made = np.unique(values > rng.standard_normal((count, 1)), axis=0)
    every = threshold_dichotomies(halfspace_patterns(points), 2)
    assert every < 2**7
    assert 0.75 * every <= len(made) <= every


def test_groups_of_points_are_no_larger_than_the_dimension():
    """Random points, four on no plane; on a line no group has two points, and equal points have no network."""
    points = RNG.standard_normal((1, 25, 3))
    assert group_units(points, (7, 13, 20, 25)).ravel().tolist() == [2, 4, 8, 8]
    assert units_around(points[0, :3], points[0, 3:]) == 2
    assert units_around(points[0, :4], points[0, 4:]) == 4
    assert units_around(points[0, :4], points[0, 4:5]) == 4  # five points are still not on a plane
    line = np.outer(RNG.standard_normal(9), [1.0, 2.0, -1.0])
    assert units_around(line[:4], line[4:]) == 8
    assert np.isinf(units_around(points[0, :3], points[0, :1]))  # a point with two labels
