"""The bound of the error of ``pair_kernels`` holds for both kernels; bounds that leave something out do not."""

import numpy as np
import pytest

from steepest.kernels import pair_kernels
from steepest.kernels.connected import _errors, _layers
from steepest.nn.networks import mlp
from tests.kernels.wide import long_double

FIRST, SECOND = np.triu_indices(4)
ANGLES = np.array([0.0, 0.4, 1.1, 1.9])
"""Of four inputs in a plane."""


def limit_of(name, depth, c_w, c_b):
    widths = (2, *[8] * depth, 1)
    return mlp(widths, name, parameterized="ntk", c_w=c_w, c_b=c_b).limit()


def computed(limit, angles, tolerance):
    """Both kernels of inputs of norms below one, the roots of the products of their own, and the bound."""
    squares = np.linspace(0.4, 0.9, 4) ** 2
    between = np.abs(angles[FIRST] - angles[SECOND])
    kernels = pair_kernels(limit, squares, FIRST, SECOND, between, tolerance)
    sizes = [np.sqrt(k[FIRST] * k[SECOND]) for k in kernels.singles]
    return kernels.pairs, sizes, kernels.error


def exact(name, angles, depth, c_w, c_b):
    """Both kernels in extended precision."""
    lengths = np.linspace(0.4, 0.9, 4)[:, None]
    x = np.sqrt(long_double.LONG(2)) * lengths * np.stack([np.cos(angles), np.sin(angles)], 1)
    hidden = [step for _ in range(depth) for step in (("dense", c_w, c_b), ("act", name))]
    steps = [*hidden, ("dense", c_w, c_b)]
    right = long_double.kernels(steps, x, np.ones(4, bool), bias=True)
    return right.k[FIRST, SECOND], right.theta[FIRST, SECOND]


def deviation(pairs, sizes, right):
    """The largest error of either kernel, relative as the bound is."""
    both = zip(pairs, right, sizes, strict=True)
    return max(float((np.abs(k - reference) / size).max()) for k, reference, size in both)


NETWORKS = [
    ("tanh", 10, 4.0, 0.0, 1e-2),
    ("tanh", 6, 1.5, 0.1, 1e-3),
    ("gelu", 5, 1.8, 0.05, 1e-2),
    ("relu", 8, 2.0, 0.1, 1e-2),
    ("erf", 10, 4.0, 0.0, 1e-2),
]


@pytest.mark.parametrize(("name", "depth", "c_w", "c_b", "tolerance"), NETWORKS)
def test_both_kernels_err_by_no_more_than_the_bound(name, depth, c_w, c_b, tolerance):
    pairs, sizes, error = computed(limit_of(name, depth, c_w, c_b), ANGLES, tolerance)
    assert deviation(pairs, sizes, exact(name, ANGLES, depth, c_w, c_b)) <= error


def test_a_bound_with_slopes_that_stand_still_is_exceeded(monkeypatch):
    """What the bound once left out: an error of K turns the slopes of later layers."""
    monkeypatch.setattr(
        _errors, "moved_slope", lambda activation, pair, error, tolerance: 0 * error
    )
    pairs, sizes, error = computed(limit_of("tanh", 10, 4.0, 0.0), ANGLES, 1e-2)
    assert deviation(pairs, sizes, exact("tanh", ANGLES, 10, 4.0, 0.0)) > error


PLANTED = 1e-7
NEAR = np.array([0.0, 1e-6, 1.0, 2.0])


def plant(monkeypatch):
    """Let each E σσ be too small by the share ``PLANTED`` of √(E σ(u)² E σ(v)²), and say so."""
    right = _layers.pair_moments

    def wrong(activation, variances, first, second, *rest):
        moments = right(activation, variances, first, second, *rest)
        own, _ = _layers.single_moments(activation, variances)
        off = PLANTED * np.sqrt(own[first] * own[second])
        return moments._replace(
            value=moments.value - off, value_error=moments.value_error + off * (1 + 1e-12)
        )

    monkeypatch.setattr(_layers, "pair_moments", wrong)


@pytest.mark.parametrize("name", ["relu", "leaky_relu(0.3)", "abs"])
def test_corners_turn_by_the_root_of_an_error(name, monkeypatch):
    plant(monkeypatch)
    pairs, sizes, error = computed(limit_of(name, 3, 1.5, 0.0), NEAR, 1e-10)
    off = deviation(pairs, sizes, exact(name, NEAR, 3, 1.5, 0.0))
    assert error / 10 < off <= error


def test_a_bound_that_is_linear_at_a_corner_is_exceeded(monkeypatch):
    plant(monkeypatch)
    linear = lambda pair, error: error / pair.scale
    monkeypatch.setattr(_errors, "_turned", linear)
    pairs, sizes, error = computed(limit_of("relu", 3, 1.5, 0.0), NEAR, 1e-10)
    assert deviation(pairs, sizes, exact("relu", NEAR, 3, 1.5, 0.0)) > error


def test_jumps_turn_with_the_angle(monkeypatch):
    """E step(u) step(v) is (π − θ)/2π, which K alone moves by the root."""
    plant(monkeypatch)
    limit = limit_of("step", 2, 1.5, 0.0)
    pairs, sizes, error = computed(limit, NEAR, 1e-10)
    first = (np.pi - np.abs(NEAR[FIRST] - NEAR[SECOND])) / (2 * np.pi)
    angle = np.arccos(np.clip(2 * first, -1, 1))
    right = 1.5 * (np.pi - angle) / (2 * np.pi)
    assert 1e-6 < (np.abs(pairs.nngp - right) / sizes[0]).max() <= error


@pytest.mark.parametrize("name", ["hard_tanh", "elu"])
def test_kinks_away_from_zero_move_by_no_more(name):
    """E σ'σ' at covariances a little apart, by quadrature."""
    activation = mlp((2, 8, 1), name, parameterized="ntk").limit().activation
    count = 9
    one, two = np.full(count, 1.3), np.full(count, 0.8)
    covariance = np.sqrt(one * two) * np.linspace(-0.95, 0.999, count)
    off = np.full(count, 1e-4)
    pair = _errors.Pair(one, two, covariance, np.sqrt(one * two - covariance**2))
    bound = _errors.moved_slope(activation, pair, off, 1e-10)
    slopes = [
        _layers.pair_moments(
            activation,
            np.array([1.3, 0.8]),
            np.zeros(count, int),
            np.ones(count, int),
            at,
            np.sqrt(one * two - at**2),
            1e-9,
        ).slope
        for at in (covariance, covariance - off)
    ]
    moved = np.abs(slopes[1] - slopes[0])
    assert (moved <= bound).all()
    assert (moved > bound / 50).any()
