"""Chains of dense layers: recognized where composing them is the model, and nowhere else."""

import jax
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement._chain import (
    LIPSCHITZ,
    activation_of,
    chain,
    compose,
    lipschitz_bound,
    require_chain,
)
from steepest.measurement.adapters import Dense, subject
from steepest.nn.activations import activation
from steepest.nn.networks import mlp
from tests.extras import need

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 2, 2))


def squared(outputs, targets):
    return ((outputs - targets) ** 2).mean()


def of_torch(make, dtype="float64"):
    torch = need("torch")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = make(torch.nn).to(getattr(torch, dtype)).eval()
    return subject(
        model, torch.nn.functional.mse_loss, (torch.as_tensor(X), torch.zeros(6, 3)), check=False
    )


def around(forward):
    """A chain inside a module of the user's, with this forward pass."""

    def make(nn):
        class Around(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))

            def forward(self, x):
                return forward(self.net, x)

        return Around()

    return make


ACTIVATIONS = {
    "relu": lambda nn: nn.ReLU(inplace=True),
    "tanh": lambda nn: nn.Tanh(),
    "gelu": lambda nn: nn.GELU(),
    "silu": lambda nn: nn.SiLU(),
    "sigmoid": lambda nn: nn.Sigmoid(),
    "softplus": lambda nn: nn.Softplus(),
    "elu": lambda nn: nn.ELU(),
    "leaky_relu(0.01)": lambda nn: nn.LeakyReLU(),
    "leaky_relu(0.3)": lambda nn: nn.LeakyReLU(0.3),
    "linear": lambda nn: nn.Identity(),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_composing_a_chain_gives_the_outputs(name, dtype):
    act = ACTIVATIONS[name]
    found = of_torch(
        lambda nn: nn.Sequential(
            nn.Flatten(),
            nn.Linear(4, 7),
            nn.Dropout(),
            act(nn),
            nn.Sequential(nn.Linear(7, 3, bias=False), act(nn)),
        ),
        dtype,
    )
    layers = require_chain(found, "this test")
    assert [each.activation for each in layers] == [name, name]
    assert [each.name for each in layers] == ["1", "4.0"] and layers[1].bias is None
    outputs = activation_of(layers[-1])(compose(layers, found.inputs())[-1])
    np.testing.assert_allclose(
        outputs, found.outputs()[0], atol=1e-12 if dtype == "float64" else 1e-6
    )


@pytest.mark.parametrize(
    "options", [{}, {"parameterized": "ntk", "c_w": 1.3}, {"bias": False, "c_w": [2.0, 1.0, 0.5]}]
)
@pytest.mark.parametrize("outputs", [1, 3])
def test_networks_of_ours_are_chains_of_their_effective_matrices(options, outputs):
    network = mlp((4, 6, 5, outputs), "leaky_relu(0.2)", **options)
    x = X.reshape(6, 4)
    with jax.enable_x64(True):
        params = network.init(jax.random.key(0))
        found = subject((network, params), squared, (x, np.zeros(6)), check=False)
        expected = np.asarray(network.apply(params, x))
    layers = require_chain(found, "this test")
    assert [each.activation for each in layers] == ["leaky_relu(0.2)"] * 2 + ["linear"]
    np.testing.assert_allclose(compose(layers, x)[-1], expected.reshape(6, -1), atol=1e-13)
    moved = chain(found.at(2 * found.values()))
    assert moved is not None
    np.testing.assert_allclose(moved[0].matrix, 2 * layers[0].matrix)


def test_frozen_layers_belong_to_the_chain():
    def make(nn):
        model = nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
        model[1].weight.requires_grad_(False)
        return model

    assert [each.name for each in require_chain(of_torch(make), "this test")] == ["1", "3"]


def test_a_chain_inside_a_module_is_found_by_comparing_outputs():
    assert chain(of_torch(around(lambda net, x: net(x)))) is not None
    assert chain(of_torch(around(lambda net, x: 2 * net(x)))) is None
    assert (
        chain(of_torch(around(lambda net, x: net(x.clamp(-5, 5))))) is None
    )  # the same at all examples
    assert np.abs(X).max() < 5


def normalized(nn):
    from torch.nn.utils.parametrizations import weight_norm

    return nn.Sequential(nn.Flatten(), weight_norm(nn.Linear(4, 3)))


@pytest.mark.parametrize(
    "make",
    [
        lambda nn: nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.GELU("tanh"), nn.Linear(5, 3)),
        lambda nn: nn.Sequential(
            nn.Flatten(), nn.Linear(4, 5), nn.Softplus(beta=2), nn.Linear(5, 3)
        ),
        lambda nn: nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.ELU(0.5), nn.Linear(5, 3)),
        lambda nn: nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.LayerNorm(5), nn.Linear(5, 3)),
        lambda nn: nn.Sequential(
            nn.Flatten(), nn.Linear(4, 5), nn.Tanh(), nn.ReLU(), nn.Linear(5, 3)
        ),
        lambda nn: nn.Sequential(nn.Flatten(), nn.ReLU(), nn.Linear(4, 3)),
        lambda nn: nn.Sequential(nn.Conv1d(2, 3, 2), nn.Flatten()),
        normalized,
    ],
)
def test_other_modules_are_no_chains(make):
    found = of_torch(make)
    assert chain(found) is None
    with pytest.raises(UserError, match="need a chain of dense layers"):
        require_chain(found, "regions")


@pytest.mark.parametrize(
    "options",
    [
        {"skip": 1.0},
        {"normalize": True},
        {"parameterized": "mean-field"},
        {"activation": lambda z: z**3 / 9},
        {"activation": jax.nn.gelu},  # by an approximation, unlike the activation of this name
    ],
)
def test_other_networks_of_ours_are_no_chains(options):
    network = mlp((4, 5, 5, 2), **{"activation": "tanh", **options})
    found = subject(
        (network, network.init(jax.random.key(0))),
        squared,
        (X.reshape(6, 4), np.zeros((6, 2))),
        check=False,
    )
    assert chain(found) is None


def test_functions_of_jax_are_no_chains():
    found = subject(
        (lambda w, x: x @ w, np.ones(4)), squared, (X.reshape(6, 4), np.zeros(6)), check=False
    )
    assert chain(found) is None


@pytest.mark.parametrize("name", LIPSCHITZ)
def test_slopes_are_bounded_and_the_bounds_are_reached(name):
    with jax.enable_x64(True):
        steepest = float(np.abs(activation(name).slope(np.linspace(-40, 40, 80001))).max())
    assert steepest <= LIPSCHITZ[name] <= steepest + 1.1e-4


def test_the_lipschitz_bound_of_a_chain():
    layers = [
        Dense("", np.diag([3.0, 1.0]), None, "leaky_relu(-2.0)"),
        Dense("", np.array([[0.0, 5.0]]), None, "sigmoid"),
    ]
    assert lipschitz_bound(layers) == pytest.approx(3 * 2 * 5 / 4)
    assert lipschitz_bound([layers[0]._replace(activation="exp")]) is None


def three_layers(nn, shared):
    act = nn.ReLU()
    again = act if shared else nn.ReLU()
    linear = [nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 3)]
    return nn.Sequential(nn.Flatten(), linear[0], act, linear[1], again, linear[2])


def test_an_activation_that_stands_at_several_places_is_part_of_the_chain():
    shared, apart = (
        require_chain(of_torch(lambda nn, is_shared=is_shared: three_layers(nn, is_shared)), "this")
        for is_shared in (True, False)
    )
    for one, two in zip(shared, apart, strict=True):
        assert one.activation == two.activation
        np.testing.assert_array_equal(one.matrix, two.matrix)


def tied(nn):
    layer = nn.Linear(4, 4)
    return nn.Sequential(nn.Flatten(), layer, nn.ReLU(), layer, nn.ReLU(), nn.Linear(4, 3))


def test_a_linear_layer_that_stands_at_several_places_makes_no_chain():
    """Theory of chains takes weights of layers as independent."""
    assert chain(of_torch(tied)) is None


def test_an_activation_shared_with_a_nested_sequence_is_part_of_the_chain():
    def make(nn):
        act = nn.Tanh()
        inner = nn.Sequential(nn.Linear(4, 5), act)
        return nn.Sequential(nn.Flatten(), inner, nn.Linear(5, 5), act, nn.Linear(5, 3))

    found = require_chain(of_torch(make), "this")
    assert [layer.activation for layer in found] == ["tanh", "tanh", "linear"]
