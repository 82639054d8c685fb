"""Tangent kernels of modules of torch against the same networks in JAX, and against backward passes of torch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import empirical_nngp, empirical_ntk, empirical_ntk_diagonal
from tests.extras import need

torch = need("torch")
X = np.random.default_rng(0).normal(size=(5, 3))
OTHER = np.random.default_rng(1).normal(size=(4, 3))
Z = np.random.default_rng(2).normal(size=(3, 2, 5, 5))


@pytest.fixture
def module():
    torch.manual_seed(0)
    layers = torch.nn.Linear(3, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2)
    return torch.nn.Sequential(*layers).double()


def in_jax(params, x):
    hidden = jnp.tanh(x @ params["0.weight"].T + params["0.bias"])
    return hidden @ params["2.weight"].T + params["2.bias"]


@pytest.mark.parametrize("outputs", ["trace", "each", "all"])
@pytest.mark.parametrize("other", [None, OTHER], ids=["alone", "two sets"])
def test_it_is_the_kernel_of_the_same_network_in_jax(module, outputs, other):
    params = {name: weight.detach().numpy() for name, weight in module.named_parameters()}
    expected = empirical_ntk(in_jax, params, X, other, outputs=outputs)
    kernel = empirical_ntk(module, None, X, other, outputs=outputs)
    np.testing.assert_allclose(kernel, expected, rtol=1e-10)
    moved = {name: weight + 0.1 for name, weight in module.named_parameters()}
    in_numpy = {name: weight.detach().numpy() for name, weight in moved.items()}
    np.testing.assert_allclose(
        empirical_ntk(module, moved, torch.tensor(X), other, outputs=outputs),
        empirical_ntk(in_jax, in_numpy, X, other, outputs=outputs),
        rtol=1e-10,
    )


def test_a_convolutional_module_in_blocks(monkeypatch):
    """One backward pass an example, with batch normalization by running statistics and frozen weights."""
    torch.manual_seed(0)
    layers = (torch.nn.Conv2d(2, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU())
    module = (
        torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(36, 1)).double().eval()
    )
    module[4].bias.requires_grad_(False)
    rows = []
    for example in torch.tensor(Z):
        module.zero_grad()
        module(example[None]).sum().backward()
        gradients = [w.grad for w in module.parameters() if w.requires_grad]
        rows.append(torch.cat([g.ravel() for g in gradients]).numpy())
    monkeypatch.setattr("steepest.kernels.finite._torch.MEMORY", 1)
    expected = np.array(rows) @ np.array(rows).T
    np.testing.assert_allclose(empirical_ntk(module, None, Z), expected, rtol=1e-10)


class TwoOutputs(torch.nn.Module):
    """Returns a tuple."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.linear(x), self.linear(2 * x)


def test_tensors_by_name_stand_in_for_those_of_the_module():
    """The kernel of a linear module behind a fixed first layer, by hand; a state dict needs no gradients."""
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)).double()
    state = {name: 2 * tensor for name, tensor in module.state_dict().items()}
    first, bias, second, _ = (tensor.numpy() for tensor in state.values())
    hidden = X @ first.T + bias
    of_second = 1 + hidden @ hidden.T
    of_first = (second @ second.T) * (1 + X @ X.T)
    np.testing.assert_allclose(empirical_ntk(module, state, X), of_first + of_second, rtol=1e-10)
    state["1.weight"].requires_grad_()
    np.testing.assert_allclose(empirical_ntk(module, state, X), hidden @ hidden.T, rtol=1e-10)
    np.testing.assert_allclose(
        empirical_ntk(module, {"0.weight": state["0.weight"], "0.bias": state["0.bias"]}, X),
        of_second + of_first / 4,
        rtol=1e-10,
    )


@pytest.mark.parametrize(
    ("build", "params", "x"),
    [
        (TwoOutputs, None, X),
        (torch.nn.Tanh, None, X),
        (lambda: torch.nn.Linear(3, 1), {"scale": torch.ones(3)}, X),
        (lambda: torch.nn.Linear(3, 1), jnp.ones(3), X),
        (lambda: torch.nn.Linear(3, 1), None, X[:0]),
    ],
    ids=["two outputs", "no parameters", "other names", "no names", "no inputs"],
)
def test_wrong_calls_are_refused(build, params, x):
    with pytest.raises(UserError):
        empirical_ntk(build(), params, x, outputs="trace")


@pytest.mark.parametrize("function", [empirical_ntk_diagonal, empirical_nngp])
def test_functions_of_jax_alone_refuse_modules(function, module):
    with pytest.raises(UserError):
        function(module, None, X, outputs="each")


def test_what_has_no_jacobian_of_each_example_is_refused(module):
    training = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).double()
    with pytest.raises(UserError):
        empirical_ntk(training, None, X, outputs="trace")
    with pytest.raises(UserError):
        empirical_ntk(module, None, X)  # two outputs
    with pytest.raises(UserError):
        empirical_ntk(module, None, X, mask=np.ones((5, 3), bool), outputs="trace")
    assert jax.config.jax_enable_x64
