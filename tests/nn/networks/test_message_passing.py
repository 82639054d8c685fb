"""Message passing: against loops over nodes and neighbours, and its invariance."""

import jax
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.nn.networks import GraphInput, message_passing

RNG = np.random.default_rng(0)
EDGES = np.triu(RNG.random((5, 5)) < 0.5, 1)
EDGES[:, 4] = False  # one node on its own
ADJACENCY = (EDGES | EDGES.T).astype(float)
FEATURES = RNG.standard_normal((5, 3))
AGGREGATE = {"sum": np.sum, "mean": np.mean, "max": np.max}


@pytest.mark.parametrize("aggregate", AGGREGATE)
@pytest.mark.parametrize("readout", [None, "sum"])
def test_agrees_with_loops(aggregate, readout):
    net = message_passing(3, 4, 2, aggregate, readout)
    params = net.init(jax.random.key(0))
    states = FEATURES
    for k, layer in enumerate(params):
        gathered = []
        for row in ADJACENCY:
            near = states[row > 0]
            gathered.append(AGGREGATE[aggregate](near, axis=0) if len(near) else 0 * states[0])
        states = np.tanh(states @ layer.own.T + np.array(gathered) @ layer.beside.T + layer.bias)
        whole = AGGREGATE[readout or aggregate](states, axis=0)
        ours = net.apply(params, GraphInput(ADJACENCY, FEATURES))[k]
        np.testing.assert_allclose(ours, whole, rtol=1e-5, atol=1e-6)


def test_the_order_of_nodes_does_not_matter_and_graphs_go_together():
    net = message_passing(3, 4, 2)
    params = net.init(jax.random.key(1))
    order = RNG.permutation(5)
    both = GraphInput(
        np.stack([ADJACENCY, ADJACENCY[order][:, order]]), np.stack([FEATURES, FEATURES[order]])
    )
    first, second = net.apply(params, both)
    np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-6)


def test_weights_have_the_variance_that_is_said():
    layers = message_passing(3, 200, 2).init(jax.random.key(2))
    assert [layer.own.shape for layer in layers] == [(200, 3), (200, 200)]
    assert float(layers[0].own.var()) == pytest.approx(1 / 3, rel=0.2)
    assert float(layers[1].beside.var()) == pytest.approx(1 / 200, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"aggregate": "median"}, "aggregate must be"),
        ({"readout": "last"}, "readout must be"),
        ({"width": 0}, "width must be"),
    ],
)
def test_refused(arguments, words):
    with pytest.raises(UserError, match=words):
        message_passing(**{"dimension": 2, "width": 3, "depth": 1, **arguments})
