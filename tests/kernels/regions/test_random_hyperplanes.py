"""The law of random hyperplanes: jets of sampled networks, Kac and Rice by quadrature, brute force at small widths."""

import math

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.geometry import crossings, homogeneous, relu_layers
from steepest.kernels import (
    finite_crossings,
    line_crossings,
    random_hyperplane_scales,
    wide_crossings,
)

LINE = [[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]


def network(rng, widths, c_w, c_b, inputs=1, draw=np.random.Generator.standard_normal):
    shapes = list(zip(widths, (inputs, *widths[:-1]), strict=True))
    weights = [draw(rng, shape) * (c_w / shape[1]) ** 0.5 for shape in shapes]
    biases = [draw(rng, shape[0]) * c_b**0.5 for shape in shapes]
    return weights, biases


def jets(weights, biases, x):
    """(z, ∇z) of the neurons of the last layer at one input, by forward differentiation."""
    z = x
    slope = np.eye(len(x))
    for place, (w, b) in enumerate(zip(weights, biases, strict=True)):
        if place:
            slope = slope * (z > 0)[:, None]
            z = np.maximum(z, 0)
        z = w @ z + b
        slope = w @ slope
    return np.concatenate([z[:, None], slope], 1)


@pytest.mark.parametrize("widths", [(3, 3, 400), (200, 200, 200)])
def test_jets_of_networks_have_the_moments_of_an_affine_function(widths):
    """At every width: E z² = B + A‖x‖², E z∇z = A x, E ∇z∇zᵀ = A I; and near Gaussian where it is wide."""
    rng = np.random.default_rng(0)
    x = np.array([1.0, -0.5])
    c_w, c_b = 1.6, 0.7
    rows = [jets(*network(rng, widths, c_w, c_b, 2), x) for _ in range(300)]
    second = np.array([row.T @ row / len(row) for row in rows])
    scale = random_hyperplane_scales(c_w, c_b, 2, 3)[-1]
    weight = (c_w / 2) ** 2 * c_w / 2
    bias = scale**2 * weight
    expected = weight * np.block(
        [[np.array([[x @ x]]) + scale**2, x[None]], [x[:, None], np.eye(2)]]
    )
    assert bias == pytest.approx(c_b * (1 + 0.8 + 0.64))
    z = (second.mean(0) - expected) / (second.std(0, ddof=1) / len(rows) ** 0.5)
    assert np.abs(z).max() < 4
    if widths[0] == 200:
        values = np.concatenate(rows) @ np.array([1.0, 0.3, -0.8])
        kurtosis = (values**4).mean() / (values**2).mean() ** 2
        assert kurtosis == pytest.approx(3, abs=0.25)


def test_the_angle_is_kac_and_rice_s_integral():
    """Density of zeros √(det cov(z, ż))/(π var z), along the segment by quadrature."""
    ends = np.array([[0.3, -2.0, 0.1], [1.0, 1.0, 0.5]])
    step = ends[1] - ends[0]
    t = (np.arange(20_000) + 0.5) / 20_000
    x = ends[0] + t[:, None] * step
    for layer, s in enumerate(random_hyperplane_scales(1.5, 0.4, 3, 3)):
        variance = s**2 + (x**2).sum(1)
        covariance = x @ step
        density = np.sqrt(variance * (step @ step) - covariance**2) / (math.pi * variance)
        expected = wide_crossings(ends, 1.5, 0.4, 3)[layer]
        assert density.mean() == pytest.approx(expected, rel=1e-8)


def test_wide_is_the_limit_of_finite():
    ends = np.array([[[-1.0, 0.2], [1.0, 0.5]], [[3.0, 0.0], [0.0, 4.0]]])
    finite = finite_crossings(ends, (4000,) * 3, 2.0, 0.5, np.random.default_rng(0), 4000)
    np.testing.assert_allclose(finite.mean, wide_crossings(ends, 2.0, 0.5, 3), rtol=2e-3)
    assert (finite.error[:, 0] == 0).all()


@pytest.mark.parametrize("start", [-3e6, 1e8])
def test_the_first_layer_s_angle_is_exact_far_from_the_origin(start):
    end = -start if start < 0 else start + 1e3
    expected = (math.atan(end) - math.atan(start)) / math.pi
    if start > 0:
        expected = math.atan2(end - start, 1 + start * end) / math.pi
    rng = np.random.default_rng(0)
    finite = finite_crossings([[start], [end]], (3, 3), 1.0, 1.0, rng, 100)
    assert finite.mean[0] == pytest.approx(expected, rel=1e-9)
    assert wide_crossings([[start], [end]], 1.0, 1.0, 2)[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("width", "c_b"), [(2, 1.0), (3, 0.3), (6, 1.0)])
def test_finite_widths_against_networks(width, c_b):
    """Brute force, on a segment and on the line, z ≤ 4."""
    rng = np.random.default_rng(width)
    widths = (width,) * 3
    ends = [[-1.0], [0.5]]
    counts = np.array([(*crossings(relu_layers(*network(rng, widths, 2.0, c_b)), ends),
                        *crossings(homogeneous(relu_layers(*network(rng, widths, 2.0, c_b))), LINE))
                       for _ in range(1000)]) / width  # fmt: skip
    # relu_layers makes the last layer linear, so it counts no corner of its own
    predicted = finite_crossings(ends, widths, 2.0, c_b, rng).mean
    expected = np.array([*predicted[:2], 0, *line_crossings(widths)[:2], 0])
    error = counts.std(0) / len(counts) ** 0.5
    assert (np.abs(counts.mean(0) - expected) <= 4 * error + 2e-3).all()


def test_the_line_s_law_needs_no_gaussian_weights():
    rng = np.random.default_rng(5)
    cauchy = [
        crossings(
            homogeneous(relu_layers(*network(rng, (2, 2, 2, 1), 1, 1, 1, np.random.Generator.standard_cauchy))), LINE
        )[:3]
        for _ in range(1500)
    ]  # fmt: skip
    counts = np.array(cauchy) / 2
    z = (counts.mean(0) - line_crossings((2, 2, 2))) / (counts.std(0) / len(counts) ** 0.5 + 1e-12)
    assert np.abs(z).max() < 4


def test_without_biases_width_changes_nothing_but_dead_networks():
    """At C_b = 0: E(χ_{K−1}/χ_K) = 1 for every K ≥ 2."""
    ends = [[1.0, 0.3], [-0.5, 0.8]]
    finite = finite_crossings(ends, (3, 3, 3), 2.0, 0.0, np.random.default_rng(0), 400_000)
    alive = np.array([1, 0.5, 0.25])
    z = (finite.mean - wide_crossings(ends, 2.0, 0.0, 3) * alive)[1:] / finite.error[1:]
    assert np.abs(z).max() < 4


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda: finite_crossings([[-1.0], [1.0]], (2,), 1.0, 0.0, np.random.default_rng(0)),
            "no line through",
        ),
        (
            lambda: finite_crossings([[1.0], [1.0]], (2,), 1.0, 1.0, np.random.default_rng(0)),
            "different ends",
        ),
        (lambda: random_hyperplane_scales(0.0, 1.0, 1, 1), "positive"),
        (lambda: random_hyperplane_scales(1.0, 1.0, 0, 1), "an input"),
        (lambda: wide_crossings([1.0, 2.0], 1.0, 1.0, 1), "two ends"),
        (lambda: line_crossings(()), "whole numbers"),
        (
            lambda: finite_crossings([[0.0], [1.0]], (2.5,), 1.0, 1.0, np.random.default_rng(0)),
            "whole numbers",
        ),
        (
            lambda: finite_crossings([[0.0], [1.0]], (2,), 1.0, 1.0, np.random.default_rng(0), 1),
            "two samples",
        ),
    ],
)
def test_what_no_network_has_is_refused(build, words):
    with pytest.raises(UserError, match=words):
        build()
