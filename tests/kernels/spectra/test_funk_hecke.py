"""Multipliers on spheres: closed form against quadrature, Fourier series, Parseval's sum and a mean over the sphere."""

import math

import numpy as np
import pytest
from scipy import special

from steepest.core.errors import UserError
from steepest.kernels import funk_hecke, harmonic_count, relu_multipliers, zonal

DEGREES = range(9)


def relu(t):
    return np.maximum(t, 0)


@pytest.mark.parametrize("d", [3, 4, 7])
def test_zonal_harmonics_are_gegenbauers(d):
    t = np.linspace(-1, 1, 11)
    alpha = (d - 2) / 2
    for degree, ours in zip(DEGREES, zonal(d, DEGREES, t), strict=True):
        theirs = special.eval_gegenbauer(degree, alpha, t) / special.eval_gegenbauer(
            degree, alpha, 1.0
        )
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_zonal_harmonics_of_the_circle_are_cosines():
    theta = np.linspace(0, np.pi, 9)
    np.testing.assert_allclose(
        zonal(2, DEGREES, np.cos(theta)), np.cos(np.outer(DEGREES, theta)), atol=1e-12
    )


@pytest.mark.parametrize("d", [2, 3, 4, 9])
def test_harmonics_of_all_degrees_are_the_polynomials(d):
    assert sum(harmonic_count(d, degree) for degree in range(6)) == math.comb(d + 4, 5) + math.comb(
        d + 3, 4
    )


@pytest.mark.parametrize("d", [2, 3, 4, 9, 40])
def test_relu_in_closed_form_and_by_quadrature(d):
    np.testing.assert_allclose(
        relu_multipliers(d, DEGREES), funk_hecke(relu, d, DEGREES), atol=1e-13
    )


@pytest.mark.parametrize("d", [2, 3, 6])
def test_multipliers_have_parsevals_sum(d):
    """E relu(t)² = 1/(2d) is the sum of N_l λ_l², of which degree 80 leaves little."""
    degrees = range(80)
    counts = np.array([harmonic_count(d, degree) for degree in degrees], float)
    assert counts @ relu_multipliers(d, degrees) ** 2 == pytest.approx(1 / (2 * d), rel=1e-3)


def test_the_transform_of_a_harmonic_is_a_multiple_of_it():
    """Not only at the pole: averaged over random points of the sphere, at random places."""
    d = 4
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400_000, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    w = rng.standard_normal((3, d))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    for degree, multiplier in zip((0, 1, 2, 3), funk_hecke(np.exp, d, range(4), ()), strict=True):
        harmonic = zonal(d, [degree], x[:, 0])[0]
        products = np.exp(x @ w.T) * harmonic[:, None]
        error = products.std(0) / np.sqrt(len(x))
        expected = multiplier * zonal(d, [degree], w[:, 0])[0]
        assert (np.abs(products.mean(0) - expected) <= 4 * error).all()


def test_steps_need_their_jump_among_the_breaks():
    """The sign at 0.3 on the circle: (2/(π l)) sin(l arccos 0.3) for l ≥ 1."""
    edge = math.acos(0.3)
    expected = [2 * math.sin(degree * edge) / (math.pi * degree) for degree in range(1, 6)]
    ours = funk_hecke(lambda t: np.sign(t - 0.3), 2, range(1, 6), (0.3,))
    np.testing.assert_allclose(ours, expected, atol=1e-13)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: funk_hecke(relu, 1, [0]), "at least 2 dimensions"),
        (lambda: funk_hecke(relu, 3, [-1]), "start at 0"),
        (lambda: funk_hecke(relu, 3, [101]), "up to degree 100"),
        (lambda: funk_hecke(relu, 3, [1], (1.5,)), "between −1 and 1"),
        (lambda: funk_hecke(lambda t: t / 0, 3, [1]), "finite"),
        (lambda: relu_multipliers(1, [1]), "at least 2 dimensions"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_bad_input(call, words):
    with pytest.raises(UserError, match=words):
        call()
