"""What linear-network-landscape rests on: turned critical points, the fall of f."""

import itertools

import jax
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.descent.linear_network_landscape.experiment import STEPS, fall
from steepest.claims.descent.linear_network_landscape.theory import without_factor


@pytest.fixture(scope="module")
def claim():
    return load("linear-network-landscape")()


@pytest.fixture(scope="module")
def setting(claim):
    return claim.setting(jax.random.key(0))


def test_critical_points_are_turned_as_described(claim, setting):
    """Products are Y on S; layers are balanced; no basis is the coordinates'."""
    for points in setting.points:
        for layers in zip(*points, strict=True):
            product = np.linalg.multi_dot(layers[::-1])
            levels = np.diag(setting.left.T @ product @ setting.right)
            assert np.allclose(np.minimum(abs(levels), abs(levels - claim.singular)), 0)
            for first, second in itertools.pairwise(layers):
                assert np.allclose(first @ first.T, second.T @ second)
    assert np.abs(setting.points[0][0][-1]).min() > 1e-3


def test_falls_are_what_they_say(claim, setting):
    target = setting.left * np.array(claim.singular) @ setting.right.T
    for depth, layers in zip(claim.depths, setting.falls, strict=True):
        exact = claim.singular[1] * STEPS**depth - STEPS ** (2 * depth) / 2
        assert np.allclose(fall(target, layers), exact, rtol=1e-5)


def test_the_rival_without_the_factor_is_right_for_two_layers(claim):
    """It differs at other depths only, and then in what it is about."""
    points = claim.all_points(claim.depths)
    levels = np.array(claim.singular)
    two = points[3]
    assert np.allclose(without_factor(two.eigenvalues, levels, two.chosen, 2), two.eigenvalues)
    three = next(point for point in points[8:] if point.chosen == (2,))
    assert without_factor(three.eigenvalues, levels, three.chosen, 3).min() == pytest.approx(-2.5)
    assert three.lowest == pytest.approx(-2.5 * 0.5 ** (1 / 3))


def test_each_set_is_looked_at_once_in_each_network(claim):
    """Points are named by their network and set, and a network of two neurons has no set of three pairs."""
    names = claim.axes()["point"]
    assert len(set(names)) == len(names) == 8 + 8 + 7
    assert "L = 4, S = {1 2 3}" not in names
