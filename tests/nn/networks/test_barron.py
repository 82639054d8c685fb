"""Barron's law of steps: the identity by quadrature, moments by plain Monte Carlo, errors by drawn networks."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.nn.networks import Ridges, barron

RNG = np.random.default_rng(0)


def test_cosines_are_integrals_of_steps():
    """cos(r z) − 1 = −r ∫₀¹ sin(r t) (1[z > t] + 1[z < −t]) dt, by sums."""
    t = (np.arange(200_000) + 0.5) / 200_000
    for r, z in ((3.0, 0.7), (8.0, -0.4), (0.5, 1.0)):
        steps = (z > t).astype(float) + (z < -t)
        assert -r * (np.sin(r * t) * steps).mean() == pytest.approx(np.cos(r * z) - 1, abs=1e-4)


@pytest.mark.parametrize(("d", "scale"), [(1, 1.0), (3, 0.5), (6, 0.8)])
def test_moments_by_monte_carlo(d, scale):
    f = barron(d, scale)
    n = 200_000
    w = RNG.normal(size=(n, d)) / scale
    r = np.linalg.norm(w, axis=1)
    t = RNG.random(n)
    assert abs(r.mean() - f.constant) <= 4 * r.std() / np.sqrt(n)
    mass = 2 * r * np.abs(np.sin(r * t))
    assert abs(mass.mean() - f.mass) <= 4 * mass.std() / np.sqrt(n)
    assert f.mass <= 2 * f.constant
    x = f.ball(RNG, n)
    assert np.linalg.norm(x, axis=1).max() <= 1
    above = mass * (x[:, 0] > t)
    ratio = above.mean() / mass.mean()
    assert abs(ratio - f.second_moment) <= 4 * above.std() / np.sqrt(n) / mass.mean()
    squares = f.target(x) ** 2
    assert abs(squares.mean() - f.norm) <= 4 * squares.std() / np.sqrt(n)


def test_the_target_is_its_fourier_integral():
    f = barron(2, 0.7)
    x = np.array([0.3, -0.5])
    waves = np.cos(RNG.normal(size=(400_000, 2)) / 0.7 @ x) - 1
    assert abs(waves.mean() - f.target(x)) <= 4 * waves.std() / np.sqrt(len(waves))


def test_drawn_networks_are_unbiased_and_err_as_computed():
    f = barron(3, 0.5)
    networks, proposals = f.sample(RNG, 400, 32)
    x = f.ball(RNG, 200)
    outputs = networks.apply(x)  # (networks, points)
    z = (outputs.mean(0) - f.target(x)) / (outputs.std(0) / 20)
    assert np.abs(z).max() <= 4.5  # of 200 points
    errors = 32 * ((outputs - f.target(x)) ** 2).mean(1)
    assert abs(errors.mean() / f.variance - 1) <= 4 * errors.std() / 20 / f.variance + 0.05
    mass = 2 * f.constant * 400 * 32 / proposals
    assert mass == pytest.approx(f.mass, rel=0.03)


def test_networks_are_sums_of_steps():
    network = Ridges(np.eye(2), np.array([0.5, 0.2]), np.array([3.0, -1.0]))
    x = np.array([[0.6, 0.3], [0.4, 0.9], [0.6, 0.1]])
    assert network.apply(x).tolist() == [2.0, -1.0, 3.0]


@pytest.mark.parametrize(
    ("d", "scale", "sentence"),
    [(0, 0.5, "dimension must be"), (2, 0.0, "a scale above zero, got 0")],
)
def test_functions_that_cannot_be(d, scale, sentence):
    with pytest.raises(UserError, match=sentence):
        barron(d, scale)
