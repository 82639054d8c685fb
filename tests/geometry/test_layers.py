"""Piecewise linear networks as layers: against a network of the library, and a residual one by carrying its input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.geometry import Layer, preactivations, relu_layers
from steepest.nn.networks import mlp


def test_layers_agree_with_the_network_of_the_library():
    network = mlp((3, 5, 4, 2), "relu", c_w=2.0, c_b=0.5)
    params = network.init(jax.random.key(0))
    x = np.random.default_rng(0).standard_normal((7, 3))
    layers = [(np.asarray(layer["w"], float), np.asarray(layer["b"], float)) for layer in params]
    ours = relu_layers([w for w, _ in layers], [b for _, b in layers])
    written = preactivations(ours, x)[-1]
    assert written.shape == (7, 2)
    np.testing.assert_allclose(
        written, np.asarray(network.apply(params, jnp.asarray(x))), rtol=1e-6
    )


def test_units_that_pass_their_value_on_make_residual_blocks():
    rng = np.random.default_rng(1)
    inner = rng.standard_normal((1, 2))
    outer = rng.standard_normal((2, 1))
    carry = Layer(np.vstack([inner, np.eye(2)]), np.zeros(3), np.array([0.0, 1.0, 1.0]), np.ones(3))
    add = Layer(np.hstack([outer, np.eye(2)]), np.zeros(2), np.ones(2), np.ones(2))
    x = rng.standard_normal((5, 2))
    block = x + np.maximum(x @ inner.T, 0) @ outer.T
    np.testing.assert_allclose(preactivations([carry, add], x)[-1], block)
    assert carry.kinked.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: relu_layers([]), "at least one"),
        (lambda: relu_layers([np.ones((2, 1)), np.ones((1, 3))]), "must read the 2 units"),
        (
            lambda: relu_layers([np.ones((2, 1))], [np.ones(3)]),
            "one for each of the layer's 2 units",
        ),
        (lambda: relu_layers([np.full((2, 1), np.nan)]), "finite"),
        (lambda: relu_layers([np.ones(2)]), "shape"),
    ],
)
def test_what_is_no_network_is_refused(build, words):
    with pytest.raises(UserError, match=words):
        build()
