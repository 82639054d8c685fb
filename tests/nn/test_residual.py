"""Residual networks: as layers of geometry, the folding by brute force, the running formula."""

import jax
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.geometry import preactivations, residual_layers
from steepest.nn.networks import folding, residual, residual_outputs


@pytest.mark.parametrize(("d", "blocks", "hidden"), [(2, 4, 1), (3, 2, 2), (1, 1, 1)])
def test_outputs_in_two_ways_and_by_hand(d, blocks, hidden):
    net = residual(d, blocks, hidden)
    params = jax.tree.map(np.asarray, net.init(jax.random.key(1)))
    x = np.random.default_rng(0).standard_normal((6, d))
    h = x
    for u, b, v in zip(params.inner, params.bias, params.outer, strict=True):
        h = h + np.maximum(h @ u.T + b, 0) @ v.T
    expected = h @ params.readout + params.offset
    np.testing.assert_allclose(net.apply(params, x), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(preactivations(residual_layers(*params), x)[-1][:, 0], expected)


@pytest.mark.parametrize("folds", [0, 1, 2, 3, 6])
def test_a_folding_is_the_angle_folded(folds):
    turns = np.linspace(-np.pi, np.pi, 5001)
    x = np.stack([np.cos(turns), np.sin(turns)], 1)
    outputs = np.asarray(residual_outputs(folding(folds), x))
    angle = np.mod(turns, 2 * np.pi)
    for k in range(folds):
        edge = np.pi / 2**k
        angle = np.where(angle > edge, 2 * edge - angle, angle)
    np.testing.assert_allclose(outputs, np.cos(angle - np.pi / 2**folds), atol=1e-6)
    assert (1 - outputs).max() == pytest.approx(1 - np.cos(np.pi / 2**folds), abs=1e-6)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: residual(2, 0), "blocks must be"),
        (lambda: folding(-1), "from zero on"),
        (lambda: residual_layers(np.ones((2, 2)), [], [], []), "inner must be"),
        (lambda: residual_layers([[[1.0]]], [[0.0]], [[[1.0]]], [1.0, 2.0]), "readout must be"),
    ],
)
def test_what_is_no_residual_network_is_refused(build, words):
    with pytest.raises(UserError, match=words):
        build()
