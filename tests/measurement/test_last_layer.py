"""The last layer of a classifier: found by what it gives, whatever it is called and however it is written."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement import collapse_of, last_layer
from steepest.measurement.adapters import subject
from steepest.measurement.quantities import collapse
from steepest.nn.networks import mlp
from tests.measurement.adapters import models


def attached(apply, params, features=None):
    x, _ = models.data(30)
    data = x, np.arange(30) % 3
    return subject((apply, params), models.cross_entropy, data, features=features, check=False)


def hidden(params, x):
    return jnp.tanh(x @ params["z_hidden"])


def plain(params, x):
    """Matrices that multiply from the right, and a last layer whose name comes first."""
    return 3 * hidden(params, x) @ params["a_head"] + params["b"]


def parameters(q=5):
    rng = np.random.default_rng(0)
    return {
        "a_head": rng.normal(size=(q, 3)),
        "b": rng.normal(size=3),
        "m_other": rng.normal(size=(3, q)),
        "z_hidden": rng.normal(size=(4, q)),
    }


@pytest.mark.parametrize("q", [3, 5])
def test_it_is_found_among_others_and_turned(q):
    params = parameters(q)
    found = attached(plain, params, hidden)
    layer = last_layer(found, found.outputs()[0])
    np.testing.assert_allclose(layer.matrix, 3 * params["a_head"].T, atol=1e-12)
    np.testing.assert_allclose(layer.bias, params["b"], atol=1e-12)


def test_a_network_of_ours_has_its_multiplier():
    net = mlp((4, 6, 3), "tanh", parameterized="ntk", c_b=0.3)
    with jax.enable_x64(True):
        params = net.init(jax.random.key(0))
        found = attached(net, params)
        outputs, y = found.outputs()
        layer = last_layer(found, outputs)
        np.testing.assert_allclose(
            layer.features @ layer.matrix.T + layer.bias, outputs, atol=1e-12
        )
        expected = collapse(jnp.array(layer.features), jnp.array(y), params[-1]["w"])
    assert collapse_of(layer, y).duality == pytest.approx(float(expected.duality), rel=1e-9)


def test_outputs_that_no_layer_gives_are_refused():
    after = lambda params, x: jax.nn.log_softmax(plain(params, x))
    found = attached(after, parameters(), hidden)
    with pytest.raises(UserError, match="no matrix of weights"):
        last_layer(found, found.outputs()[0])
