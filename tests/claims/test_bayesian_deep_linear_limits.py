"""Limits of the posterior and of the evidence: exact values at finite size beside them, and formulas that are wrong."""

import numpy as np
import pytest

from steepest.bayes import best_variance, limit_scale, posterior_scale

LAYERS = 64
RATIO = 4  # of two widths in turn
DEPTHS = (0.5, 2.0, 8.0)
SIZES = (3.0, 1 / 3)
MANY = (64, 128, 256, 512)


def equal_widths(points, depth):
    """Return equal widths with PΣ1/n_l = λ."""
    return (LAYERS * points / depth,) * LAYERS


def two_widths_in_turn(points, depth):
    """Return two widths in turn with PΣ1/n_l = λ; their mean is (1 + r)²/4r times the harmonic one."""
    narrow = LAYERS * points / depth * (1 + 1 / RATIO) / 2
    return (narrow, RATIO * narrow) * (LAYERS // 2)


def worst(widths, points, wrong=lambda depth: depth):
    """Return the largest relative error of the limit at a depth of choice, over depths and sizes."""
    return max(
        abs(
            limit_scale(wrong(depth), size) / posterior_scale(widths(points, depth), points, size)
            - 1
        )
        for depth in DEPTHS
        for size in SIZES
    )


@pytest.mark.parametrize("widths", [equal_widths, two_widths_in_turn])
def test_the_scale_of_large_networks_is_that_of_the_limit(widths):
    assert 100 * sum(1 / n for n in widths(100, 3.0)) == pytest.approx(3.0)
    assert worst(widths, 256) < 0.005  # 1/P is 0.004
    assert worst(widths, 8) > 0.01


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda depth: 1e-9, id="the kernel"),
        pytest.param(lambda depth: depth / 256, id="no points"),
        pytest.param(lambda depth: depth * 4 * RATIO / (1 + RATIO) ** 2, id="mean width"),
    ],
)
def test_the_limit_at_another_effective_depth_is_wrong(wrong):
    assert worst(two_widths_in_turn, 256, wrong) > 0.05


def test_the_distance_to_the_limit_falls_as_one_over_points():
    limit = limit_scale(2.0, 3.0)
    many = np.array([64, 128, 256])
    exact = [posterior_scale((32 * p**2 / 2.0,) * (32 * p), p, 3.0) for p in many.tolist()]
    gaps = np.abs(np.array(exact) / limit - 1)
    exponent = np.polyfit(np.log(many), np.log(gaps), 1)[0]
    assert exponent == pytest.approx(-1, abs=0.03)  # and not −½


@pytest.mark.parametrize("layers", [1, 4])
def test_the_best_variance_exceeds_the_size_by_the_layers_over_the_points(layers):
    excess = np.array([np.log(best_variance((p,) * layers, p, 3.0) / 3.0) for p in MANY])
    np.testing.assert_allclose(excess * MANY, layers, rtol=0.01)
    # wrong: no excess; the mean of log σ̃² taken for its mode
    for wrong in (0.0, layers + 1):
        assert np.abs(excess * MANY - wrong).min() > 0.2
