"""Recommended initializations, phase diagrams and per-layer predictions."""

import jax
import numpy as np
import pytest

from steepest.kernels import (
    finite_width,
    phase_diagram,
    predict_signal,
    propagate,
    recommended_initialization,
)
from steepest.nn.activations import activation
from steepest.nn.networks import mlp


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("relu", "weights from N(0, 2/fan_in), biases zero"),
        ("gelu", "biases from N(0, 0.1729"),
        ("tanh", "weights from N(0, 1/fan_in), biases zero; inputs of order one"),
        ("sigmoid", "no critical initialization"),
    ],
)
def test_the_recommendation_reads_like_one(name, words):
    assert words in str(recommended_initialization(name))


def test_the_recommended_width_is_that_of_the_exact_product():
    """ReLU: the relative variance of the kernel is Π(1 + 5/n) − 1, five for each layer and neuron."""
    assert recommended_initialization("relu").width_per_layer == pytest.approx(5, rel=1e-6)
    spread = finite_width(activation("tanh"), 1.0, 0.0, 1.0, [10**9] * 32)
    found = recommended_initialization("tanh").width_per_layer
    assert found == pytest.approx(float(spread.variance[-1] / spread.kernel[-1] ** 2) * 1e9 / 32)


def test_the_phase_diagram_of_tanh():
    """Order below C_W = 1, chaos far above; the depth scale is longest near the line χ⊥ = 1."""
    diagram = phase_diagram("tanh", [0.5, 0.95, 4.0], [0.0, 0.05])
    assert (diagram.chi_perpendicular[0] < 1).all()
    assert (diagram.chi_perpendicular[2] > 1).all()
    assert (diagram.correlation[0, 1], diagram.correlation[2, 1] < 0.9) == (1.0, True)
    assert diagram.depth[1, 0] > 3 * diagram.depth[0, 0]


@pytest.mark.parametrize("options", [{}, {"skip": 0.5}, {"normalize": True}], ids=str)
def test_wide_networks_have_the_predicted_variances(key, options):
    """Mean square of the pre-activations over ten networks of width 500: z ≤ 4, and 3 % for the correction in 1/n."""
    net = mlp((4, 500, 500, 500, 500), "gelu", c_w=1.5, c_b=0.2, **options)
    x = np.array([[1.0, -1.0, 2.0, 0.5], [0.1, 0.3, 0.2, 0.0]])
    found = predict_signal(net.limit(), (x**2).mean(1)).variance
    squares = lambda k: jax.numpy.stack(
        [(z**2).mean(-1) for z in net.preactivations(net.init(k), x)]
    )
    sampled = np.asarray(jax.lax.map(squares, jax.random.split(key, 10)))
    error = sampled.std(0, ddof=1) / np.sqrt(10)
    assert (np.abs(sampled.mean(0) - found) <= 4 * error + 0.03 * found).all()


def test_the_prediction_is_the_recursion():
    net = mlp((2, 9, 9, 9), "tanh", c_w=1.3, c_b=0.1)
    sigma = activation("tanh")
    found = predict_signal(net.limit(), np.array([2.0])).variance[:, 0]
    start = jax.numpy.array([1.3 * 2 + 0.1] * 3)
    np.testing.assert_allclose(found, propagate(sigma, 1.3, 0.1, start, 2)[:, 0], rtol=1e-12)
