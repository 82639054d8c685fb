"""Norms and complexity: all paths one by one, formulas in NumPy, and what rescaling leaves alone."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement._context import Context
from steepest.measurement._weights import measure_norms
from steepest.measurement.adapters import subject
from steepest.nn.networks import mlp
from steepest.programs import path_norm
from tests.extras import need
from tests.measurement.adapters import models


def measured(model, loss, data, since=None):
    """The quantities by name."""
    found = subject(model, loss, data, check=False)
    before = None if since is None else found.flatten(since)
    with jax.enable_x64(True):
        return {
            each.name: each
            for each in measure_norms(Context(found, np.random.default_rng(0), since=before))
        }


def test_path_norms_are_sums_over_all_paths():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((4, 3))
    b = rng.standard_normal((2, 4))
    c = rng.standard_normal((3, 2))
    paths = [
        c[m, k] * b[k, j] * a[j, i]
        for i, j, k, m in product(range(3), range(4), range(2), range(3))
    ]
    with jax.enable_x64(True):
        weights = [jnp.asarray(each) for each in (a, b, c)]
        assert float(path_norm(weights)) == pytest.approx(np.abs(paths).sum(), rel=1e-12)
        assert float(path_norm(weights, 2)) == pytest.approx(np.linalg.norm(paths), rel=1e-12)


@pytest.mark.parametrize(
    ("weights", "order", "sentence"),
    [
        ([jnp.ones((2, 3))], 3, "order 1 or 2"),
        ([], 1, "matrices"),
        ([jnp.ones(3)], 1, "matrices"),
        ([jnp.ones((2, 3)), jnp.ones((2, 3))], 1, "fit together"),
    ],
)
def test_path_norms_refuse_what_is_no_chain(weights, order, sentence):
    with pytest.raises(UserError, match=sentence):
        path_norm(weights, order)


def relu_network():
    network = mlp((4, 6, 5, 3), "relu", bias=False)
    with jax.enable_x64(True):
        return network, jax.tree.map(np.asarray, network.init(jax.random.key(2)))


def spectral(weights, start):
    """Bartlett, Foster and Telgarsky 2017, (1.2)."""
    norms = [np.linalg.norm(w, 2) for w in weights]
    moved = [np.linalg.norm(w - s, axis=1).sum() for w, s in zip(weights, start, strict=True)]
    return (
        np.prod(norms) * sum((m / n) ** (2 / 3) for m, n in zip(moved, norms, strict=True)) ** 1.5
    )


@pytest.mark.parametrize("since", [False, True])
def test_complexity_of_a_chain(since):
    (network, params) = relu_network()
    (x, y) = models.data()
    before = jax.tree.map(lambda leaf: leaf + 0.1, params)
    found = measured((network, params), models.cross_entropy, (x, y), before if since else None)
    weights = [layer["w"] for layer in params]
    start = [layer["w"] if since else 0 * layer["w"] for layer in before]
    groups = [np.linalg.norm(w, axis=1).sum() for w in weights]
    assert found["largest (2,1) norm"].value == pytest.approx(max(groups), rel=1e-12)
    assert list(found["largest (2,1) norm"].parts.values()) == pytest.approx(groups, rel=1e-12)
    complexity = found["spectral complexity"]
    assert complexity.value == pytest.approx(spectral(weights, start), rel=1e-10)
    assert ("the checkpoint" if since else "zero") in complexity.interpretation
    assert dict(complexity.assumes)["no biases"] and [
        holds for _, holds in complexity.assumes[1:]
    ] == [
        True,
        None if since else True,
    ]
    h = x
    for w in weights[:-1]:
        h = np.maximum(h @ w.T, 0)
    f = h @ weights[-1].T
    margins = [f[i, y[i]] - max(np.delete(f[i], y[i])) for i in range(len(x))]
    expected = np.median(margins) / (complexity.value * np.linalg.norm(x) / len(x))
    assert found["median normalized margin"].value == pytest.approx(expected, rel=1e-10)
    moved = [np.linalg.norm(0.1 * np.ones(w.shape)) for w in weights]
    if since:
        assert list(found["distance from the checkpoint"].parts.values()) == pytest.approx(
            moved, rel=1e-10
        )
        assert found["distance from the checkpoint"].value == pytest.approx(
            np.linalg.norm(moved), rel=1e-10
        )
    else:
        assert "distance from the checkpoint" not in found


def test_rescaled_neurons_have_the_same_path_norms():
    network, params = relu_network()
    factor = np.random.default_rng(0).uniform(0.1, 9, 6)
    first, second, third = (layer["w"] for layer in params)
    rescaled = ({"w": factor[:, None] * first}, {"w": second / factor}, {"w": third})
    one, two = (
        measured((network, each), models.cross_entropy, models.data())
        for each in (params, rescaled)
    )
    for name in ("ℓ1 path norm", "ℓ2 path norm"):
        assert one[name].value == pytest.approx(two[name].value, rel=1e-10)
        assert one[name].assumes[0][1] is True
    assert (
        abs(one["product of spectral norms"].value / two["product of spectral norms"].value - 1)
        > 0.1
    )


def test_assumptions_that_fail_are_said():
    found = measured(models.of_jax(), models.cross_entropy, models.data())
    assert [holds for _, holds in found["spectral complexity"].assumes] == [False, True, True]
    assert found["ℓ1 path norm"].assumes[0][1] is False
    network = mlp(models.WIDTHS, "sigmoid")
    found = measured((network, models.of_jax()[1]), models.cross_entropy, models.data())
    assert (
        dict(found["spectral complexity"].assumes)["activations are 1-Lipschitz and vanish at 0"]
        is False
    )


def test_at_the_checkpoint_itself_no_margin_can_be_normalized():
    network, params = relu_network()
    found = measured((network, params), models.cross_entropy, models.data(), params)
    assert found["spectral complexity"].value == found["distance from the checkpoint"].value == 0
    assert "median normalized margin" not in found


def test_layers_of_one_unit_and_convolutions_have_norms_of_their_matrices():
    torch = need("torch")
    nn = torch.nn
    torch.manual_seed(0)
    layers = (nn.Conv1d(1, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(16, 1), nn.ReLU())
    model = nn.Sequential(*layers, nn.Linear(1, 1))
    x, y = torch.randn(8, 1, 10), torch.randn(8, 1)
    norms = measured(model, nn.functional.mse_loss, (x, y))["product of spectral norms"]
    weights = {name: w.detach().numpy() for name, w in model.named_parameters() if w.ndim > 1}
    right = {name: np.linalg.norm(w.reshape(len(w), -1), 2) for name, w in weights.items()}
    assert norms.parts == pytest.approx(right, rel=1e-6)
    assert norms.value == pytest.approx(np.prod(list(right.values())), rel=1e-6)


def test_other_models_and_losses_have_the_other_norms():
    squared = lambda outputs, targets: ((outputs - targets) ** 2).mean()
    x, _ = models.data()
    plain = measured((lambda w, x: x @ w["a"], {"a": np.ones((4, 2))}), squared, (x, x[:, :2]))
    assert "ℓ1 path norm" not in plain
    assert plain["largest (2,1) norm"].value == pytest.approx(4 * 2**0.5)
    network, params = relu_network()
    regression = measured((network, params), squared, (x, x[:, :3]))
    assert "ℓ1 path norm" in regression and "spectral complexity" not in regression
    counts = lambda params, batch: squared(network.apply(params, batch["x"]), 0.0)
    of_params = measured((network, params), counts, [{"x": x}])
    assert "ℓ1 path norm" not in of_params
