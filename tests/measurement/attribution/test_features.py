"""Gradient features beside dense Jacobians, for functions of JAX and modules of torch, and what is refused."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from steepest.core.errors import UserError
from steepest.measurement import attribute, gradient_features
from steepest.measurement.attribution import _features
from tests.measurement import state

INPUTS = 5
CLASSES = 3


def examples(count=12):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(count, INPUTS))
    return x.astype(np.float32), rng.integers(0, CLASSES, count)


def module(outputs=CLASSES, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(INPUTS, 7), nn.Tanh(), nn.Linear(7, outputs)).double()


def in_jax(of):
    """The same network as a function of JAX."""
    with jax.enable_x64(True):
        params = [jnp.asarray(weight.detach().numpy()) for weight in of.parameters()]

    def apply(params, x):
        first, b, last, c = params
        return jnp.tanh(x @ first.T + b) @ last.T + c

    return apply, params


def jacobian(of, x, y):
    """Gradients of log p/(1 − p), one backward pass for each example."""
    rows = []
    for inputs, target in zip(torch.tensor(x).double(), y, strict=True):
        p = functional.softmax(of(inputs), -1)[target]
        slopes = torch.autograd.grad(torch.log(p / (1 - p)), list(of.parameters()))
        rows.append(torch.cat([slope.flatten() for slope in slopes]).numpy())
    return np.array(rows)


@pytest.mark.parametrize("dimension", [None, 66, 1000])
@pytest.mark.parametrize("form", [lambda of: of, in_jax], ids=["torch", "jax"])
def test_exact_features_are_the_rows_of_the_dense_jacobian(form, dimension):
    x, y = examples()
    gradients = gradient_features(form(module()), (x, y), dimension=dimension)
    assert (gradients.dimension, gradients.parameters) == (None, 66)
    np.testing.assert_allclose(
        gradients.features[0], jacobian(module(), x, y), rtol=1e-7, atol=1e-10
    )


def test_values_residuals_and_curvatures_are_those_of_probabilities():
    x, y = examples()
    gradients = gradient_features(module(), (x, y))
    p = functional.softmax(module()(torch.tensor(x).double()), -1).detach().numpy()
    p = p[np.arange(len(y)), y]
    np.testing.assert_allclose(gradients.values[0], np.log(p / (1 - p)), rtol=1e-9)
    np.testing.assert_allclose(gradients.residuals[0], 1 - p, rtol=1e-9)
    np.testing.assert_allclose(gradients.curvatures[0], p * (1 - p), rtol=1e-9)


def test_products_of_projected_features_are_right_over_seeds_within_the_error_that_is_said():
    """Of torch: features of JAX are the same, as the next test says."""
    x, y = examples(6)
    rows = jacobian(module(), x, y)
    exact = rows @ rows.T
    kernels = []
    errors = []
    for seed in range(60):
        gradients = gradient_features(module(), (x, y), dimension=24, seed=seed)
        kernel, error = gradients.kernel()
        kernels.append(kernel[0])
        errors.append(error[0])
    spread = np.std(kernels, 0, ddof=1)
    assert (np.abs(np.mean(kernels, 0) - exact) < 4 * spread / np.sqrt(60)).all()
    assert (spread < 1.4 * np.mean(errors, 0)).all()  # the error that is said is a bound


def test_jax_and_torch_have_the_same_features():
    x, y = examples()
    first = gradient_features(module(), (x, y), dimension=20, seed=3)
    second = gradient_features(in_jax(module()), (x, y), dimension=20, seed=3)
    np.testing.assert_allclose(first.features, second.features, atol=1e-9)


@pytest.mark.parametrize("form", [lambda of: of, in_jax], ids=["torch", "jax"])
def test_batches_of_any_size_give_the_same(form, monkeypatch):
    x, y = examples()
    expected = gradient_features(form(module()), (x, y), dimension=20).features
    batches = [(x[:5], y[:5]), (x[5:], y[5:])]
    for data, options in (((x, y), {"micro_batch": 5}), (batches, {})):
        features = gradient_features(form(module()), data, dimension=20, **options).features
        np.testing.assert_allclose(features, expected, atol=1e-10)
    monkeypatch.setattr(_features, "GRADIENTS", 3 * 66 * 8)  # room for three gradients at once
    features = gradient_features(form(module()), (x, y), dimension=20).features
    np.testing.assert_allclose(features, expected, atol=1e-10)


def test_a_projection_that_no_memory_could_hold():
    large = nn.Sequential(nn.Linear(2000, 1000), nn.ReLU(), nn.Linear(1000, 2))
    x = torch.randn(3, 2000, generator=torch.Generator().manual_seed(0))
    gradients = gradient_features(large, (x, torch.tensor([0, 1, 1])), dimension=8192)
    # a dense matrix of random signs would have 8192 · 2 003 002 entries, 66 GB
    assert gradients.features.shape == (1, 3, 8192)


class Branching(nn.Module):
    """Takes a branch on a value, which cannot be mapped over examples."""

    def __init__(self):
        super().__init__()
        self.inner = module()

    def forward(self, x):
        return self.inner(x) if float(x.sum()) < 1e9 else self.inner(-x)


def test_what_cannot_be_mapped_is_differentiated_one_by_one():
    x, y = examples()
    gradients = gradient_features(Branching(), (x, y), dimension=None)
    np.testing.assert_allclose(
        gradients.features[0], jacobian(module(), x, y), rtol=1e-7, atol=1e-10
    )


def training_module():
    torch.manual_seed(0)
    parts = (nn.Linear(INPUTS, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.3), nn.Linear(6, 3))
    made = nn.Sequential(*parts)
    made.train()
    made(torch.randn(40, INPUTS)).sum().backward()
    return made


@pytest.mark.parametrize("dimension", [None, 20])
def test_a_module_in_training_is_read_in_evaluation_mode_and_left_as_it_is(dimension):
    model = training_module()
    x, y = examples()
    x = torch.tensor(x)
    y = torch.tensor(y)
    held = [model, x, y, torch.default_generator]
    before = state.of(held)
    gradients = gradient_features(model, (x, y), dimension=dimension)
    attribute(gradients, gradients)
    assert state.of(held) == before
    expected = gradient_features(copy.deepcopy(model).eval(), (x, y), dimension=dimension)
    np.testing.assert_array_equal(gradients.features, expected.features)


def test_checkpoints_have_their_own_weights_and_running_statistics():
    models = [training_module() for _ in range(2)]
    for model in models:
        model(torch.randn(50, INPUTS))
    with torch.no_grad():
        models[1][0].weight.mul_(1.5)
    x, y = examples()
    alone = [gradient_features(model, (x, y), dimension=None).features[0] for model in models]
    for checkpoints in (models, [model.state_dict() for model in models]):
        gradients = gradient_features(models[0], (x, y), dimension=None, checkpoints=checkpoints)
        np.testing.assert_allclose(gradients.features, np.stack(alone), atol=1e-6)
    apply, first = in_jax(module())
    _, second = in_jax(module(seed=1))
    gradients = gradient_features(
        (apply, first), (x, y), dimension=None, checkpoints=[first, second]
    )
    alone = gradient_features((apply, second), (x, y), dimension=None)
    np.testing.assert_allclose(gradients.features[1], alone.features[0], atol=1e-12)


@pytest.mark.parametrize("form", [lambda of: of, in_jax], ids=["torch", "jax"])
def test_each_checkpoint_has_a_projection_of_its_own_that_both_sets_of_examples_share(form):
    x, y = examples()
    model = form(module())
    same = [module().state_dict()] * 2 if isinstance(model, nn.Module) else [model[1]] * 2
    gradients = gradient_features(model, (x, y), dimension=20, checkpoints=same)
    again = gradient_features(model, (x[:3], y[:3]), dimension=20, checkpoints=same)
    assert np.abs(gradients.features[0] - gradients.features[1]).max() > 0.1
    np.testing.assert_allclose(gradients.features[:, :3], again.features, atol=1e-9)
    of_one_checkpoint = gradient_features(model, (x, y), dimension=20)
    np.testing.assert_allclose(gradients.features[0], of_one_checkpoint.features[0], atol=1e-9)


def test_one_logit_is_a_margin_of_two_classes():
    x, y = examples()
    y = y % 2
    model = module(outputs=1)
    logits = model(torch.tensor(x).double())[:, 0].detach().numpy()
    gradients = gradient_features(model, (x, y))
    np.testing.assert_allclose(gradients.values[0], np.where(y == 1, logits, -logits))


def test_a_regression_has_its_output_and_residual():
    x, _ = examples()
    model = module(outputs=1)
    y = x[:, 0]
    gradients = gradient_features(model, (x, y), model_output="value")
    outputs = model(torch.tensor(x).double())[:, 0].detach().numpy()
    np.testing.assert_allclose(gradients.values[0], outputs)
    np.testing.assert_allclose(gradients.residuals[0], y - outputs)
    assert (gradients.curvatures == 1).all()


@pytest.mark.parametrize("form", [lambda of: of, in_jax], ids=["torch", "jax"])
def test_an_output_of_the_readers_own(form):
    x, y = examples()
    second = lambda outputs, targets: outputs[:, 1]
    options = {"model_output": second, "loss": "squared", "dimension": None}
    gradients = gradient_features(form(module()), (x, y), **options)
    expected = module()(torch.tensor(x).double())[:, 1].detach().numpy()
    np.testing.assert_allclose(gradients.values[0], expected, rtol=1e-9)
    np.testing.assert_allclose(gradients.residuals[0], y - expected, rtol=1e-9)


class Interacting(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = module()

    def forward(self, x):
        return self.inner(x - x.mean(0))


class Noisy(Interacting):
    def forward(self, x):
        return self.inner(x) + torch.rand(1)


def loader(shuffle):
    x, y = examples()
    data = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y))
    return torch.utils.data.DataLoader(data, batch_size=4, shuffle=shuffle)


def test_a_loader_in_order_is_taken():
    x, y = examples()
    gradients = gradient_features(module(), loader(False), dimension=20)
    expected = gradient_features(module(), (x, y), dimension=20)
    np.testing.assert_allclose(gradients.features, expected.features, atol=1e-9)


def first_output(outputs, targets):
    return outputs[:, 0]


def sum_of_outputs(outputs, targets):
    return outputs.sum()


def all_outputs(outputs, targets):
    return outputs


X, Y = examples()
REFUSED = {
    "an unknown output": lambda: gradient_features(module(), (X, Y), model_output="logit"),
    "an unknown loss": lambda: gradient_features(module(), (X, Y), loss="hinge"),
    "an own output without its loss": lambda: gradient_features(
        module(), (X, Y), model_output=first_output
    ),
    "an own output of another shape": lambda: gradient_features(
        module(), (X, Y), model_output=sum_of_outputs, loss="squared"
    ),
    "the same in JAX": lambda: gradient_features(
        in_jax(module()), (X, Y), model_output=all_outputs, loss="squared"
    ),
    "classes that are no whole numbers": lambda: gradient_features(module(), (X, X[:, 0])),
    "classes from 1": lambda: gradient_features(module(), (X, Y + 1)),
    "a value of several outputs": lambda: gradient_features(
        module(), (X, X[:, 0]), model_output="value"
    ),
    "several targets": lambda: gradient_features(module(1), (X, X), model_output="value"),
    "no dimension": lambda: gradient_features(module(), (X, Y), dimension=0),
    "a dimension in words": lambda: gradient_features(module(), (X, Y), dimension="all"),
    "a negative seed": lambda: gradient_features(module(), (X, Y), seed=-1),
    "no checkpoints": lambda: gradient_features(module(), (X, Y), checkpoints=[]),
    "a single state dict": lambda: gradient_features(
        module(), (X, Y), checkpoints=module().state_dict()
    ),
    "weights of another model": lambda: gradient_features(
        module(), (X, Y), checkpoints=[module(2).state_dict()]
    ),
    "a checkpoint that is none": lambda: gradient_features(module(), (X, Y), checkpoints=[3]),
    "the same for JAX": lambda: gradient_features(in_jax(module()), (X, Y), checkpoints=[3]),
    "examples that interact": lambda: gradient_features(Interacting(), (X, Y)),
    "random outputs": lambda: gradient_features(Noisy(), (X, Y)),
    "a loader that shuffles": lambda: gradient_features(module(), loader(True)),
    "inputs that are not finite": lambda: gradient_features(module(), (X * np.nan, Y)),
    "no model": lambda: gradient_features("model", (X, Y)),
    "no data": lambda: gradient_features(module(), None),
    "another projection": lambda: attribute(
        gradient_features(module(), (X, Y), dimension=8),
        gradient_features(module(), (X, Y), dimension=9),
    ),
    "another seed": lambda: attribute(
        gradient_features(module(), (X, Y), dimension=8),
        gradient_features(module(), (X, Y), dimension=8, seed=1),
    ),
    "no features": lambda: attribute(np.ones((3, 2)), np.ones((3, 2))),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_wrong_calls_are_refused_in_a_sentence(call):
    with pytest.raises(UserError) as refused:
        call()
    assert "\n" not in str(refused.value)
