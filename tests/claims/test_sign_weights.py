"""The kurtosis of networks of signs: in closed form, by all matrices of a small network, and what is drawn."""

import itertools

import numpy as np
import pytest

from steepest.claims.signals._three_inputs import matrix_of, three_images
from steepest.claims.signals.nngp_limit.theory import Case, kernel_after
from steepest.claims.signals.sign_weights.claim import _draw_signs, draw_outputs, of_signs
from steepest.nn.activations import activation

INPUTS = three_images()


def test_kurtosis_of_signs_in_closed_form():
    """ReLU: 3/n with one hidden layer, 18/n − 9/n² with two."""
    for n in (1, 8, 50):
        assert of_signs(n, 1) == pytest.approx(3 / n)
        assert of_signs(n, 2) == pytest.approx(18 / n - 9 / n**2)


def test_kurtosis_of_signs_by_all_matrices():
    """Two ReLU layers of width two: every sign matrix and readout, Gaussian quadrature for the first layer."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    first = np.array(list(itertools.product(nodes, repeat=2)))
    mass = np.array([a * b for a, b in itertools.product(weights, repeat=2)])
    second = fourth = 0.0
    signs = list(itertools.product((-1.0, 1.0), repeat=6))
    for row in signs:
        matrix = np.reshape(row[:4], (2, 2))
        hidden = np.maximum(np.maximum(first, 0) @ matrix, 0)
        z = hidden @ np.array(row[4:])
        second += mass @ z**2 / len(signs)
        fourth += mass @ z**4 / len(signs)
    # the kink of the second layer costs the quadrature some accuracy
    assert fourth / second**2 - 3 == pytest.approx(of_signs(2, 2), rel=0.01)


def test_signs_are_fair_and_independent():
    draws = _draw_signs(np.random.default_rng(0), (400, 101))
    assert set(np.unique(draws)) == {-1.0, 1.0}
    z = draws.sum() / np.sqrt(draws.size)
    lag = (draws[:, 1:] * draws[:, :-1]).sum() / np.sqrt(draws[:, 1:].size)
    assert abs(z) < 4 and abs(lag) < 4


@pytest.mark.parametrize("signs", [True, False])
def test_explicit_networks_have_the_kernel(signs):
    """With one hidden layer E z z' is K at every width, whatever the law of the weights."""
    drawn = draw_outputs(INPUTS, (5, 1, 4), 20_000, np.random.default_rng(2), signs=signs)
    products = np.einsum("kao,kbo->kab", drawn, drawn) / 4
    errors = products.std(0) / np.sqrt(len(products))
    kernel = matrix_of(kernel_after(Case(activation("relu"), 2.0, 0.0), INPUTS, 1))
    assert (np.abs(products.mean(0) - kernel) < 4 * errors).all()
