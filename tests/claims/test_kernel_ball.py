"""Least weights that fit, against least squares, Wishart's law and independent features."""

import numpy as np

from steepest.claims.kernels.kernel_ball.experiment import least_weights
from steepest.claims.kernels.kernel_ball.theory import least_weights_law


def test_least_weights_are_those_of_least_squares():
    """By NumPy's least squares of least norm on the features themselves; with copies, those of half as many."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((5, 9))
    y = rng.choice([-1.0, 1.0], 5)
    squares = least_weights(np.tanh, x, y, (8, 12), 3, np.random.default_rng(3))
    turned = np.linalg.qr(x.T, mode="r")
    np.testing.assert_allclose(turned.T @ turned, x @ x.T)
    weights = np.random.default_rng(3).standard_normal((3, 12, 5))
    for i in range(3):
        for place, n in enumerate((8, 12)):
            features = np.tanh(weights[i, :n] @ turned).T / np.sqrt(n)
            least, *_ = np.linalg.lstsq(features, y)
            assert np.allclose(features @ least, y)
            assert np.isclose(squares[i, place], least @ least)
    half = least_weights(np.tanh, x, y, (12,), 4, np.random.default_rng(4))
    pairs = least_weights(np.tanh, x, y, (24,), 4, np.random.default_rng(4), copies=2)
    np.testing.assert_allclose(pairs, half)


def test_least_weights_of_gaussian_features_are_wisharts():
    """σ(z) = z, where K is the inputs' Gram matrix; at the law's own n and not at n/(n − m)."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((6, 8))
    y = rng.standard_normal(6)
    neurons = np.array([16, 24, 60])
    squares = least_weights(lambda z: z, x, y, neurons, 20_000, rng)
    law = least_weights_law(x @ x.T, y, neurons)
    error = squares.std(0) / np.sqrt(len(squares))
    assert (np.abs(squares.mean(0) - law) < 4 * error).all()
    without_one = law[0] * (16 - 7) / (16 - 6)
    assert abs(squares.mean(0)[0] - without_one) > 8 * error[0]


def test_the_excess_kurtosis_of_independent_features():
    """Signs, whose excess is −2, on orthonormal inputs; the Gaussian law is too large there."""
    rng = np.random.default_rng(6)
    y = np.ones(8)
    neurons = np.array([32, 64])
    squares = least_weights(np.sign, np.eye(8), y, neurons, 20_000, rng)
    law = least_weights_law(np.eye(8), y, neurons, -2.0)
    np.testing.assert_allclose(squares.mean(0), law, rtol=0.01)
    assert least_weights_law(np.eye(8), y, neurons)[0] > 1.04 * squares.mean(0)[0]
