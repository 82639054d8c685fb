"""What linear-network-landscape rests on: turned critical points, one program for all depths, the fall of f."""

import itertools

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.catalogue import load
from steepest.claims.descent.linear_network_landscape.claim import (
    STEPS,
    _fall,
    _without_factor,
)
from steepest.claims.descent.linear_network_landscape.experiment import time_to_learn


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
        assert np.allclose(_fall(target, layers), exact, rtol=1e-5)


def test_layers_beyond_the_depth_do_not_matter():
    """Two layers of four: the time of a network of two alone, by SciPy's integrator."""
    rng = np.random.default_rng(0)
    target = np.diag([2.0, 0.5])
    start = 0.05 * rng.normal(size=(4, 2, 2))
    with jax.enable_x64(True):
        time, arrived = time_to_learn(start, 2, target, 0.5)
    assert bool(arrived)

    def speed(_, flat):
        first, second = flat.reshape(2, 2, 2)
        rest = target - second @ first
        return np.concatenate([(second.T @ rest).ravel(), (rest @ first.T).ravel()])

    def learned(_, flat):
        first, second = flat.reshape(2, 2, 2)
        return ((second @ first - target) ** 2).sum() - (4.25 - 3)

    learned.terminal = True
    path = solve_ivp(speed, (0, 100), start[:2].ravel(), events=learned, rtol=1e-10, atol=1e-13)
    assert float(time) == pytest.approx(path.t_events[0][0], rel=1e-5)


def test_the_rival_without_the_factor_is_right_for_two_layers(claim):
    """It differs at other depths only, and then in what it is about."""
    points = claim.all_points(claim.depths)
    levels = np.array(claim.singular)
    two = points[3]
    assert np.allclose(_without_factor(two.eigenvalues, levels, two.chosen, 2), two.eigenvalues)
    three = next(point for point in points[8:] if point.chosen == (2,))
    assert _without_factor(three.eigenvalues, levels, three.chosen, 3).min() == pytest.approx(-2.5)
    assert three.lowest == pytest.approx(-2.5 * 0.5 ** (1 / 3))


def test_times_grow_as_those_of_one_mode_from_small_starts(claim, setting):
    """The growth from size to size is a limit of the exact time of one mode, whose integral is another way to it."""
    small = load("linear-network-landscape")(sizes=(1e-4, 1e-5, 1e-6))
    law = small.predict(setting)
    two, *deep = law["time"]
    assert np.allclose(np.diff(two), law["added"], rtol=1e-6)
    for times, growth in zip(deep, law["growth"], strict=True):
        assert np.allclose(times[1:] / times[:-1], growth, rtol=1e-3)


def test_each_set_is_looked_at_once_in_each_network(claim):
    """Points are named by their network and set, and a network of two neurons has no set of three pairs."""
    names = claim.axes()["point"]
    assert len(set(names)) == len(names) == 8 + 8 + 7
    assert "L = 4, S = {1 2 3}" not in names
