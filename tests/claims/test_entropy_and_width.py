"""Widths and entropies: parts of the experiment by a second way, the figures of the page, what is refused."""

from math import ceil, log

import jax
import numpy as np
import pytest

from steepest.claims.expressivity.entropy_and_width.claim import EntropyAndWidth
from steepest.claims.expressivity.entropy_and_width.experiment import (
    autoencoders,
    boundary,
    maximal_packing,
    quantized,
    shell,
    shortest_images,
    stretches,
)
from steepest.claims.expressivity.entropy_and_width.extension import (
    constant_of,
    cube_constant,
    needed_constant,
)
from steepest.core.errors import UserError
from steepest.engine.run import ready
from steepest.geometry import ellipsoid_entropy, farthest_points

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("size", "least", "most"), [(6000, 1.40, 1.50), (400_000, 1.60, 1.70)])
def test_few_points_make_coverings_of_many_balls_narrow(size, least, most):
    """The remark's radii over the bound at 9 bits: that 1.5 times it was rejected came from few points."""
    axes = 2.0 ** -np.arange(1, 13)
    radius = farthest_points(shell(axes, size, np.random.default_rng(77)), 2**9).radii[-1]
    assert least < radius / ellipsoid_entropy(axes, 9) < most


def test_unit_vectors_are_projected_as_any_points_are():
    few = [stretches(40, 30, np.random.default_rng(seed)) for seed in range(200)]
    many = [stretches(np.eye(40), 30, np.random.default_rng(seed + 1000)) for seed in range(200)]
    error = np.std(few, axis=0) * np.sqrt(2 / 200)
    assert (np.abs(np.mean(few, 0) - np.mean(many, 0)) < 4 * error).all()


def test_stretches_by_loops():
    x = RNG.standard_normal((5, 3))
    images = x @ np.random.default_rng(1).standard_normal((3, 4)) / 2
    ratios = [
        np.linalg.norm(images[i] - images[j]) / np.linalg.norm(x[i] - x[j])
        for i in range(5)
        for j in range(i)
    ]
    ours = stretches(x, 4, np.random.default_rng(1))
    np.testing.assert_allclose(ours, [min(ratios), max(ratios)])


def test_linear_maps_of_norm_one_shorten_some_unit_vector():
    """No projection of rank m is longer than √(m/k) on all e_i, and harmonic frames are on none shorter."""
    frame, gaussian = shortest_images(8, 64, RNG)
    assert frame == pytest.approx(np.sqrt(8 / 64))
    assert gaussian < frame
    # the notes' constant: too few dimensions from n = 11 on
    assert [np.sqrt(32 * n / 2**n) > 0.5 for n in (9, 10, 11, 12)] == [True, True, False, False]


def test_the_constant_of_one_point_more_by_its_dual():
    """The least t² is the largest ½Σλ_iλ_j‖f_i − f_j‖²/Σλ_i r_i² over weights λ; Kirszbraun's theorem follows."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        images = rng.standard_normal((3, 2))
        distances = 0.5 + rng.random(3)
        weights = rng.dirichlet(np.ones(3), 200_000)
        apart = ((images[:, None] - images) ** 2).sum(-1)
        dual = np.einsum("ni,ij,nj->n", weights, apart, weights) / 2 / (weights @ distances**2)
        assert needed_constant(images, distances) == pytest.approx(np.sqrt(dual.max()), rel=2e-3)


def test_isometries_and_numbers_extend_with_the_same_constant():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((4, 3))
    x -= rng.dirichlet(np.ones(4)) @ x  # 0 is among them
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    assert constant_of(x, 2 * x @ turn, 2) == pytest.approx(1, abs=1e-6)
    assert cube_constant(1, np.inf, rng) == pytest.approx(1, abs=1e-9)
    # the triangle of edge 2, by hand: three corners of a square of the plane
    corners = np.array([[-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    triangle = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 3**0.5]])
    assert constant_of(corners, triangle, np.inf) == pytest.approx(2 / 3**0.5, rel=1e-6)


def test_the_shell_is_on_the_ellipsoid():
    axes = np.array([1.0, 0.5, 0.25])
    points = shell(axes, 50, RNG)
    assert (points[0] == 0).all()
    np.testing.assert_allclose(((points[1:] / axes) ** 2).sum(1), 1)


def test_a_packing_on_a_line():
    assert maximal_packing(np.array([[0.0], [2.0], [3.9]]), 4.0) == pytest.approx(3.9)
    points = shell(np.array([1.0, 0.5]), 500, RNG)
    assert maximal_packing(points, 0.4) < 0.4


def test_four_balls_cover_the_ball_better_than_two_numbers_code_it():
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / 3**1.5
    ball = RNG.standard_normal((200_000, 3))
    ball *= (RNG.random((200_000, 1)) ** (1 / 3)) / np.linalg.norm(ball, axis=1, keepdims=True)
    radius = np.linalg.norm(ball[:, None] - corners, axis=-1).min(1).max()
    assert 0.93 < radius <= np.sqrt(8) / 3


def test_the_page_s_formulas():
    """The theorem's δ_32n ≤ 3ε_n with formulas for both: it is kept, with a tenth at most."""
    for rate, most in ((0.5, 0.098), (1.0, 0.020), (2.0, 0.0006)):
        bits = np.arange(1, 1001)
        bound = ellipsoid_entropy(np.arange(1.0, 4001.0) ** -rate, bits)
        largest = ((32.0 * bits + 1) ** -rate / (3 * bound)).max()
        assert largest == pytest.approx(most, rel=0.03)
    assert ceil(32 * log(2) * 10) == 222
    for rate, ratio in ((0.5, 1.179), (1.0, 0.697), (2.0, 0.123)):
        bound = ellipsoid_entropy(np.arange(1.0, 4001.0) ** -rate, 1000)
        assert 1001.0**-rate / bound == pytest.approx(ratio, abs=0.002)


def test_every_code_has_two_opposite_points():
    """Untrained networks have large errors, never below the shorter semi-axis."""
    errors = autoencoders(jax.random.key(0), 0.5, 3, 2, 0.01)
    assert errors.shape == (2, 3, 2048)
    assert errors.max(-1).min() > 0.499
    assert quantized(0.5).max() < 0.05
    np.testing.assert_allclose((boundary(0.5, 8) ** 2 / [1, 0.25]).sum(1), 1)


@pytest.mark.parametrize(
    "fields",
    [
        {"continuous": False},
        {"steps": 20},
        {"dimensions": (32, 128)},
        {"short": 0.36},
        {"short": 0.9},
        {"lr": 0.5},
    ],
)
def test_out_of_range(fields):
    claim = EntropyAndWidth(**{**EntropyAndWidth.tiny, **fields})
    assumed = tuple(claim.hypotheses(claim.setting(jax.random.key(0))))
    assert sum(not hypothesis.holds for hypothesis in assumed) == 1


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"bits": 10}, "at most 9"),
        ({"points": (600,)}, "at most 512"),
        ({"short": 1.0}, "at most 0.9"),
    ],
)
def test_refused(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ready("entropy-and-width", changes=fields)


def test_stretches_that_do_not_depend_on_k_and_m_are_refuted():
    """Means over k and m, which were judged before, accept the law reversed and flat."""
    claim = EntropyAndWidth(**EntropyAndWidth.tiny)
    with jax.enable_x64(True):
        setting = claim.setting(jax.random.key(0))
        predicted = claim.predict(setting)
        observed = claim.observe(setting, jax.random.key(1))
    verdict = lambda law: {c.id: c.verdict.value for c in claim.checks(law, observed)}["low"]
    low = predicted["low"]
    for wrong in (low[::-1, ::-1], np.full_like(low, low.mean())):
        assert verdict(predicted.replace(low=("points dimension", wrong))) != "holds"
