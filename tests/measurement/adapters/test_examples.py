"""The examples to measure: small ones against dense derivatives of everything at once, and what training reaches."""

import importlib.util
import io
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from steepest.measurement.adapters import normalizing_layers, subject
from tests.extras import need

FOLDER = Path(__file__).parents[3] / "examples" / "measure"
SMALL = {
    "mlp_torch": lambda file: file.mlp(width=4),
    "resnet_torch": lambda file: file.resnet(width=1),
    "gpt_torch": lambda file: file.Gpt(width=4, heads=2, depth=1),
    "lstm_torch": lambda file: file.Reader(width=4),
}
CLASSIFIERS = {
    "mlp_torch": ("4.weight", "4.bias"),
    "resnet_torch": ("8.weight", "8.bias"),
    "gpt_torch": (
        "embed.weight",
        None,
    ),  # tied: the embedding's is the name by which torch knows it
    "lstm_torch": ("read.weight", "read.bias"),
}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Threads of torch wait for each other by spinning, which costs a factor of ten where tests run side by side."""
    try:
        import torch
    except ImportError:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def load(name):
    """The example as a module; importing it prints nothing, though the Zen of Python prints itself."""
    if name.endswith("_torch"):
        need("torch")
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    file = importlib.util.module_from_spec(spec)
    with redirect_stdout(io.StringIO()) as said:
        spec.loader.exec_module(file)
    assert said.getvalue() == ""
    return file


@cache
def built(name):
    """What ``build`` returns; it leaves the random numbers of torch alone."""
    if not name.endswith("_torch"):
        return load(name).build()
    torch = need("torch")
    state = torch.get_rng_state()
    model, loss, data = load(name).build()
    assert torch.equal(torch.get_rng_state(), state)
    # batch normalization is measured as it was trained
    assert any(each.training for each in model.modules()) == (name == "resnet_torch")
    return model, loss, data


def attached(name, **options):
    """The subject of what ``build`` returns, with the statistics of batches where there are such."""
    model, loss, data = built(name)
    return subject(model, loss, data, normalizing=normalizing_layers(model), **options)


def agree(found, expected, within=1e-8):
    """Relative error of the whole array."""
    assert np.shape(found) == np.shape(expected)
    assert np.linalg.norm(expected) > 0
    assert np.linalg.norm(np.asarray(found) - np.asarray(expected)) <= within * np.linalg.norm(
        expected
    )


def small_torch(name):
    """A tiny model in float64 with statistics that are not those of the start, its loss, and eight examples."""
    file = load(name)
    torch = need("torch")
    loss = file.next_character if name == "gpt_torch" else torch.nn.functional.cross_entropy
    x, y = file.data(8)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = SMALL[name](file).double()
    x = x.double() if x.is_floating_point() else x
    with torch.no_grad():
        model(x)  # batch normalization in training mode takes its statistics here
    return model.eval(), loss, (x, y)


def dense_torch(model, loss, x, y):
    """Gradient and Hessian in the order of ``named_parameters``."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    named = dict(model.named_parameters())
    flat = torch.nn.utils.parameters_to_vector(named.values()).detach().requires_grad_()

    def risk(w):
        parts = w.split([each.numel() for each in named.values()])
        weights = {
            name: part.view_as(each)
            for (name, each), part in zip(named.items(), parts, strict=True)
        }
        return loss(torch.func.functional_call(model, weights, (x,)), y)

    with sdpa_kernel(SDPBackend.MATH):
        (gradient,) = torch.autograd.grad(risk(flat), flat)
        return gradient.numpy(), torch.autograd.functional.hessian(risk, flat).numpy()


@pytest.mark.parametrize("name", SMALL)
def test_small_modules_have_their_dense_derivatives(name):
    model, loss, (x, y) = small_torch(name)
    found = subject(model, loss, (x, y), micro_batch=5, check=False)
    gradient, hessian = dense_torch(model, loss, x, y)
    agree(found.gradient(), gradient)
    agree(found.products(np.eye(found.size)), hessian)


@pytest.mark.parametrize("name", SMALL)
def test_features_times_classifier_are_the_outputs(name):
    model, loss, data = small_torch(name)
    found = subject(model, loss, data, micro_batch=5, check=False)
    assert found.classifier == CLASSIFIERS[name]
    matrix, bias = found.classifier
    agree(
        found.features() @ found.weight(matrix).T + (found.weight(bias) if bias else 0.0),
        found.outputs()[0],
    )


def test_a_linear_layer_inside_is_no_classifier():
    """Tied by hand, the GPT has no linear layer last: the last that is reached is one of a block."""
    torch = need("torch")

    class ByHand(load("gpt_torch").Gpt):
        def forward(self, tokens):
            x = self.embed(tokens) + self.place.weight[: tokens.shape[1]]
            return self.norm(self.blocks(x)) @ self.embed.weight.T

    with torch.random.fork_rng(devices=[]):
        model = ByHand(width=4, heads=2, depth=1).eval()
    file = load("gpt_torch")
    assert subject(model, file.next_character, file.data(8), check=False).classifier is None


def test_a_small_equinox_module_has_its_dense_derivatives():
    file = load("mlp_equinox")
    with jax.enable_x64(True):
        (apply, params) = file.pair(file.mlp(width=4))
        (x, y) = file.data(8)
        flat, back = ravel_pytree(params)
        risk = lambda w: file.cross_entropy(apply(back(w), x), y)
        gradient = jax.jit(jax.grad(risk))(flat)
        hessian = jax.jit(jax.hessian(risk))(flat)

    def hidden(params, x):
        for layer in params.layers[:-1]:
            x = jax.nn.relu(x @ layer.weight.T + layer.bias)
        return x

    found = subject((apply, params), file.cross_entropy, (x, y), micro_batch=5, features=hidden)
    assert found.dtype == np.float64
    agree(found.gradient(), gradient)
    agree(found.products(np.eye(found.size)), hessian)
    assert found.classifier == ("layers.2.weight", "layers.2.bias")
    matrix = found.weight("layers.2.weight")
    bias = found.weight("layers.2.bias")
    agree(found.features() @ matrix.T + bias, found.outputs()[0])


@pytest.mark.parametrize("name", ["mlp_torch", "resnet_torch", "lstm_torch", "mlp_equinox"])
def test_training_learns_the_digits(name):
    outputs, targets = attached(name, check=False).outputs()
    # a batch that is not full has other statistics and is left out
    assert outputs.shape == (1792 if name == "resnet_torch" else 1797, 10)
    assert (outputs.argmax(1) == targets).mean() >= 0.95


def test_training_learns_the_zen_by_heart():
    """From log(vocabulary) ≈ 3.8 nats a character to below 0.4."""
    found = subject(*built("gpt_torch"), check=False)
    assert found.outputs()[0].shape == (100, 32, len(load("gpt_torch").VOCABULARY))
    assert found.risk() < 0.4


@pytest.mark.parametrize("name", [*SMALL, "mlp_equinox"])
def test_trained_models_pass_the_check(name):
    attached(name)
