"""Signals and errors by layer: brute force, closed forms of the recursion, and random networks within their error."""

import jax
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import nngp
from steepest.measurement._chain import chain, compose
from steepest.measurement._context import Context
from steepest.measurement._inputs import measure_input_margins
from steepest.measurement._regions import measure_regions
from steepest.measurement._signal_propagation import (
    limit_of,
    mean_cosine,
    measure_signal_propagation,
    predict,
)
from steepest.measurement._weights import measure_norms
from steepest.measurement.adapters import Dense, subject
from steepest.nn.networks import mlp
from tests.extras import need
from tests.measurement.adapters import models


def squared(outputs, targets):
    return ((outputs - targets) ** 2).mean()


def context_of(model, loss, data, **more):
    with jax.enable_x64(True):
        return Context(subject(model, loss, data, check=False), np.random.default_rng(0), **more)


def cosines(z):
    """Mean over pairs, one by one."""
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    return np.mean([unit[i] @ unit[j] for i in range(len(z)) for j in range(i)])


def test_what_is_measured_is_what_brute_force_gives():
    x, y = models.data()
    context = context_of(models.of_jax(), models.cross_entropy, (x, y))
    size, turn, errors = measure_signal_propagation(context)
    layers = context.subject.layers()
    back = context.subject.errors()
    for name in "012":
        assert size.parts[name] == pytest.approx((layers[name] ** 2).mean(), rel=1e-12)
        assert turn.parts[name] == pytest.approx(cosines(layers[name]), rel=1e-10)
        assert errors.parts[name] == pytest.approx((back[name] ** 2).sum(1).mean(), rel=1e-12)
    assert (size.value, turn.value) == (size.parts["2"], turn.parts["2"])
    assert errors.value == pytest.approx(errors.parts["0"] / errors.parts["2"])
    assert f"{size.value / size.compared:.2g} times" in size.interpretation
    assert all(holds is None for each in (size, turn, errors) for _, holds in each.assumes)


def test_cosines_leave_out_rows_of_zeros():
    z = np.random.default_rng(0).standard_normal((6, 2, 3))
    z[2] = 0
    assert mean_cosine(z) == pytest.approx(cosines(np.delete(z, 2, 0).reshape(5, 6)), rel=1e-12)
    assert np.isnan(mean_cosine(z[2:4]))


def of_variances(c_w, c_b, widths, activation, seed=0):
    """Layers whose weights and biases have exactly these mean squares."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(len(widths) - 1):
        w = rng.standard_normal((widths[i + 1], widths[i]))
        b = rng.standard_normal(widths[i + 1])
        w *= (c_w / widths[i] / np.mean(w**2)) ** 0.5
        b *= (c_b / np.mean(b**2)) ** 0.5
        found.append(Dense(str(i), w, b, activation))
    return found


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_prediction_is_the_kernel_of_the_wide_network(activation):
    x = np.random.default_rng(1).standard_normal((7, 3))
    limit = limit_of(of_variances(1.6, 0.2, (3, 8, 8, 2), activation))
    assert limit is not None
    found = predict(limit, x)
    network = mlp((3, 8, 8, 2), activation, c_w=1.6, c_b=0.2)
    with jax.enable_x64(True):
        kernel = np.asarray(nngp(network.limit(), x))
    size = np.sqrt(np.diag(kernel))
    rho = kernel / np.outer(size, size)
    assert found.sizes[-1] == pytest.approx(np.trace(kernel) / 7, rel=1e-9)
    assert found.cosines[-1] == pytest.approx(rho[np.triu_indices(7, 1)].mean(), rel=1e-7)
    gram = 0.2 + 1.6 * x @ x.T / 3
    assert found.sizes[0] == pytest.approx(np.trace(gram) / 7, rel=1e-12)
    size = np.sqrt(np.diag(gram))
    assert found.cosines[0] == pytest.approx(
        (gram / np.outer(size, size))[np.triu_indices(7, 1)].mean(), rel=1e-10
    )
    if activation == "relu":
        assert found.growth == pytest.approx((1.6 / 2) ** 2, rel=1e-12)


def test_random_networks_are_predicted_within_their_statistical_error():
    """48 networks: mean deviations are within z ≤ 4 of zero; the recursion of another activation is far off."""
    x = np.random.default_rng(1).standard_normal((4, 5))
    widths = (5, 120, 120, 120, 1)
    off: dict[str, list[float]] = {"relu": [], "wrong": [], "cosine": [], "growth": []}
    for seed in range(48):
        rng = np.random.default_rng([7, seed])
        shapes = list(zip(widths[1:], widths[:-1], strict=True))
        layers = [
            Dense(
                "",
                rng.standard_normal(s) * (2 / s[1]) ** 0.5,
                rng.standard_normal(s[0]) / 3,
                "relu",
            )
            for s in shapes
        ]
        z = compose(layers, x)
        found = predict(limit_of(layers), x)
        off["relu"].append((z[2] ** 2).mean() / found.sizes[2] - 1)
        off["cosine"].append(mean_cosine(z[2]) - found.cosines[2])
        wrong = predict(
            limit_of([each._replace(activation="leaky_relu(0.5)") for each in layers]), x
        )
        off["wrong"].append((z[2] ** 2).mean() / wrong.sizes[2] - 1)
        back = np.ones((4, 1))
        for above, below in zip(layers[:0:-1], z[-2::-1], strict=True):
            back = (back @ above.matrix) * (below > 0)
        off["growth"].append((back**2).sum(1).mean() / found.growth - 1)
    score = {key: np.mean(each) / (np.std(each, ddof=1) / 48**0.5) for key, each in off.items()}
    assert np.std(off["relu"]) < 0.5 and np.std(off["growth"]) < 1
    assert abs(score["relu"]) <= 4 and abs(score["cosine"]) <= 4 and abs(score["growth"]) <= 4
    assert score["wrong"] < -6


def test_effective_weights_are_what_counts():
    """In the NTK parameterization weights are of order one, and their multipliers make C_W."""
    network = mlp((3, 400, 400, 1), "relu", parameterized="ntk", c_w=2.0, bias=False)
    with jax.enable_x64(True):
        params = network.init(jax.random.key(0))
    x = np.ones((2, 3))
    context = context_of((network, params), squared, (x, np.ones(2)))
    layers = chain(context.subject)
    limit = limit_of(layers)
    assert limit is not None
    assert [each.c_w for each in limit.layers[1:]] == pytest.approx(
        [2.0, 2.0], rel=4 * (2 / 400) ** 0.5
    )
    assert limit.layers[1].c_w == pytest.approx(
        2 * (np.asarray(params[1]["w"]) ** 2).mean(), rel=1e-12
    )


def test_other_models_are_measured_without_theory():
    mixed = [Dense("", np.eye(2), None, name) for name in ("relu", "tanh", "linear")]
    assert limit_of(mixed) is None and limit_of(None) is None
    network = mlp((4, 6, 6, 3), "tanh", skip=1.0)
    params = network.init(jax.random.key(0))
    found = measure_signal_propagation(
        context_of((network, params), models.cross_entropy, models.data())
    )
    assert all(
        each.compared is None and not each.theory and np.isfinite(each.value) for each in found
    )
    torch = need("torch")
    nn = torch.nn
    model = nn.Sequential(nn.Conv1d(1, 2, 2), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(6, 3))
    x, y = models.data()
    data = torch.as_tensor(x[:, None], dtype=torch.float32), torch.as_tensor(y)
    found = measure_signal_propagation(context_of(model, nn.CrossEntropyLoss(), data))
    assert list(found[0].parts) == list(found[2].parts) == ["0", "3"] and found[0].compared is None
    assert not any(each._forward_hooks for each in model.modules())


def test_silent_networks_and_flat_losses():
    network = mlp((4, 6, 3), "tanh")
    params = jax.tree.map(lambda leaf: np.zeros(leaf.shape), network.init(jax.random.key(0)))
    size, turn, errors = measure_signal_propagation(
        context_of((network, params), models.cross_entropy, models.data())
    )
    assert size.value == size.compared == 0 and np.isnan(turn.value) and np.isnan(turn.compared)
    assert errors.value == 0 and errors.interpretation.startswith("no error reaches 0")
    flat = measure_signal_propagation(
        context_of((network, params), lambda outputs, targets: 0 * outputs.sum(), models.data())
    )
    assert np.isnan(flat[2].value)


def test_models_without_layers_are_refused():
    plain = context_of((lambda w, x: x @ w, np.ones(4)), squared, (models.data()[0], np.ones(11)))
    with pytest.raises(UserError, match="layers cannot be seen"):
        measure_signal_propagation(plain)
    torch = need("torch")

    class Bare(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(4))

        def forward(self, x):
            return x @ self.w

    x = torch.ones(5, 4)
    with pytest.raises(UserError, match="no linear or convolutional layers"):
        measure_signal_propagation(
            context_of(Bare(), torch.nn.functional.mse_loss, (x, torch.ones(5)))
        )


@pytest.mark.parametrize(
    "measure", [measure_signal_propagation, measure_input_margins, measure_norms]
)
def test_torch_and_jax_agree(measure):
    torch = need("torch")
    x, y = models.data(40)
    ours = context_of(models.of_jax(), models.cross_entropy, (x, y))
    data = torch.as_tensor(x), torch.as_tensor(y)
    theirs = context_of(models.of_torch(), torch.nn.CrossEntropyLoss(), data)
    for each in (ours, theirs):
        each.since = 0.9 * each.subject.values()
    with jax.enable_x64(True):
        pairs = list(zip(measure(ours), measure(theirs), strict=True))
    for a, b in pairs:
        assert a.name == b.name and (a.interpretation == b.interpretation or a.parts)
        assert a.value == pytest.approx(b.value, rel=1e-8, abs=1e-10, nan_ok=True), a.name
        assert (
            a.compared == pytest.approx(b.compared, rel=1e-8)
            if a.compared is not None
            else b.compared is None
        )
        if a.interval is not None:
            assert a.interval == pytest.approx(b.interval, rel=1e-8)
        assert sorted(a.parts.values()) == pytest.approx(sorted(b.parts.values()), rel=1e-8)


def test_torch_and_jax_agree_on_regions():
    torch = need("torch")
    x, y = models.data(40)
    network = mlp(models.WIDTHS, "relu")
    model = torch.nn.Sequential(
        *[
            torch.nn.ReLU() if name in "13" else each
            for name, each in models.of_torch().named_children()
        ]
    )
    ours = context_of((network, models.of_jax()[1]), models.cross_entropy, (x, y))
    theirs = context_of(
        model, torch.nn.CrossEntropyLoss(), (torch.as_tensor(x), torch.as_tensor(y))
    )
    assert measure_regions(ours) == measure_regions(theirs)
