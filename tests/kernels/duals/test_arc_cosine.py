"""The arc-cosine kernels: integrals over angles, drawn neurons, and the ends."""

import numpy as np
import pytest
from scipy.integrate import quad

from steepest.kernels import arc_cosine


@pytest.mark.parametrize("cosine", [-1.0, -0.7, 0.0, 0.3, 0.999, 1.0])
def test_they_are_integrals_over_the_direction_of_a_neuron(cosine):
    """In the plane of both inputs the direction is uniform, and the mean square length is two."""
    angle = np.arccos(cosine)
    first = (-np.pi / 2, np.pi / 2)
    both = (angle - np.pi / 2, np.pi / 2)  # where the second input is on the neuron's side too
    product = quad(lambda turn: np.cos(turn) * np.cos(turn - angle), *both)[0] / np.pi
    kernels = arc_cosine(cosine)
    assert kernels.outer == pytest.approx(product, abs=1e-12)
    share = (both[1] - both[0]) / (first[1] - first[0]) / 2
    assert kernels.inner == pytest.approx(cosine * share, abs=1e-12)


def test_they_are_means_over_drawn_neurons():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    inputs = rng.standard_normal((100_000, 3)) @ x.T
    kernels = arc_cosine(x @ x.T)
    for theory, features in (
        (kernels.outer, np.maximum(inputs, 0)),
        (kernels.inner / (x @ x.T), (inputs > 0).astype(float)),
    ):
        products = features[:, :, None] * features[:, None]
        z = (products.mean(0) - theory) / (products.std(0) / np.sqrt(len(inputs)))
        assert np.abs(z).max() < 4


def test_rounding_beyond_one_is_cut_off():
    beyond = arc_cosine(np.array([1 + 1e-15, -1 - 1e-15]))
    np.testing.assert_allclose(beyond.outer, [0.5, 0])
    np.testing.assert_allclose(beyond.inner, [0.5, 0])
