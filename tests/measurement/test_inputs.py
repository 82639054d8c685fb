"""Distances from the decision boundary: closed forms of linear models, and search in the plane of others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement import _inputs, measure
from steepest.measurement._context import Context
from steepest.measurement._examples import first_examples
from steepest.measurement._inputs import (
    _attack,
    _Boundary,
    _slide,
    distances,
    measure_input_margins,
)
from steepest.measurement.adapters import subject
from steepest.nn.networks import mlp
from tests.extras import need
from tests.measurement.adapters import models


def linear(params, x):
    return x @ params["w"].T + params["b"]


def context_of(model, x, y, **options):
    found = subject(model, models.cross_entropy, (x, y), check=False, **options)
    return Context(found, np.random.default_rng(0))


def linear_context(classes=4, n=30, d=5, seed=0):
    """A linear classifier that is mostly right, with the exact distances: |f_y − f_j| / ‖w_y − w_j‖."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((classes, d))
    b = rng.standard_normal(classes)
    x = rng.standard_normal((n, d))
    f = x @ w.T + b
    y = np.where(np.arange(n) % 5 == 0, 0, f.argmax(1))
    exact = np.empty(n)
    for i in range(n):
        rivals = [j for j in range(classes) if j != y[i]]
        gaps = np.array([f[i, y[i]] - f[i, j] for j in rivals])
        exact[i] = min(gaps / np.linalg.norm(w[y[i]] - w[rivals], axis=1)) if min(gaps) > 0 else 0.0
    return context_of((linear, {"w": w, "b": b}), x, y), exact


def test_a_linear_classifier_has_its_exact_distances():
    context, exact = linear_context()
    found = distances(context.subject, *first_examples(context))
    np.testing.assert_allclose(found.linearized, exact, rtol=1e-12)
    np.testing.assert_allclose(found.reached, exact, rtol=1e-7)
    assert (found.reached >= exact).all() and 0 < (exact == 0).sum() < 10
    assert found.lower is None
    linearized, upper, lower = measure_input_margins(context)
    assert linearized.value == pytest.approx(np.median(exact), rel=1e-12)
    assert linearized.interval[0] <= linearized.value <= linearized.interval[1]
    assert f"{(exact == 0).sum()} of 30 are misclassified" in upper.interpretation
    assert np.isnan(lower.value) and "chains" in lower.interpretation


def test_the_lower_bound_is_exact_for_two_opposite_rows():
    """‖w_1 − w_2‖ = 2 ‖w‖ = √2 ‖W‖₂ when w_2 = −w_1."""
    network = mlp((4, 2), bias=False)
    w = np.array([0.3, -1.0, 2.0, 0.1])
    x = models.data(20)[0]
    y = np.arange(20) % 2
    context = context_of((network, ({"w": np.stack([w, -w])},)), x, y)
    found = distances(context.subject, *first_examples(context))
    exact = np.maximum((1 - 2 * y) * (x @ w) / np.linalg.norm(w), 0)
    assert 3 < (exact > 0).sum() < 17
    assert found.lower is not None
    np.testing.assert_allclose(found.lower, exact, rtol=1e-12)
    np.testing.assert_allclose(found.reached, exact, rtol=1e-7)


@pytest.mark.parametrize(
    ("activation", "dtype"), [("relu", np.float32), ("gelu", np.float64), ("sigmoid", np.float64)]
)
def test_bounds_contain_the_radius_that_search_finds(activation, dtype):
    network = mlp((2, 12, 12, 3), activation, c_w=30.0 if activation == "sigmoid" else 4.0, c_b=0.5)
    x = np.random.default_rng(1).standard_normal((16, 2)).astype(dtype)
    with jax.enable_x64(True):
        params = jax.tree.map(np.array, network.init(jax.random.key(3)))
        params[-1]["b"] -= np.asarray(network.apply(params, x)).mean(0)  # all classes occur
        params = jax.tree.map(lambda leaf: leaf.astype(dtype).astype(float), params)
        outputs = jax.jit(lambda x: network.apply(params, x))
        y = np.array(outputs(x.astype(float)).argmax(1))
        y[0] = (y[0] + 1) % 3
        radii = np.linspace(0, 3, 301)
        angles = np.linspace(0, 2 * np.pi, 181)
        disc = np.stack([np.outer(radii, np.cos(angles)), np.outer(radii, np.sin(angles))], -1)
        other = np.stack(
            [
                np.asarray(outputs(each + disc).argmax(-1) != label).any(1)
                for each, label in zip(x, y, strict=True)
            ]
        )
    nearest = np.where(other.any(1), radii[other.argmax(1)], np.inf)
    context = context_of((network, jax.tree.map(lambda leaf: leaf.astype(dtype), params)), x, y)
    found = distances(context.subject, *first_examples(context))
    assert found.lower is not None and (found.lower <= found.reached).all()
    assert found.lower[0] == found.reached[0] == found.linearized[0] == nearest[0] == 0
    assert (found.lower <= nearest).all() and (found.lower[1:] > 0).all()
    assert (
        nearest <= 1.02 * found.reached + 0.01
    ).all()  # the grid misses the nearest point by no more
    assert np.isfinite(found.reached).sum() >= 14
    assert np.median(found.reached[1:] / nearest[1:]) < 1.2


def test_what_cannot_be_flipped_has_no_upper_bound():
    x, y = models.data(12)
    constant = {"w": np.zeros((3, 4)), "b": np.array([1.0, 0.0, 0.0])}
    context = context_of((linear, constant), x, 0 * y)
    found = distances(context.subject, x, 0 * y)
    assert np.isinf(found.reached).all() and np.isinf(found.linearized).all()
    linearized, upper, _ = measure_input_margins(context)
    assert (
        np.isnan(linearized.value)
        and np.isnan(upper.value)
        and "12 of 12 could not be flipped" in upper.interpretation
    )
    network = mlp((4, 3))
    as_chain = context_of((network, ({"w": np.zeros((3, 4)), "b": constant["b"]},)), x, 0 * y)
    assert np.isinf(distances(as_chain.subject, x, 0 * y).lower).all()


def test_fewer_rivals_are_a_bound_and_said(monkeypatch):
    context, exact = linear_context(classes=6)
    monkeypatch.setattr(_inputs, "RIVALS", 2)
    found = distances(context.subject, *first_examples(context))
    assert (found.reached >= exact * (1 - 1e-12)).all() and (
        found.linearized >= exact * (1 - 1e-12)
    ).all()
    assert "2 nearest rivals" in measure_input_margins(context)[0].interpretation
    monkeypatch.setattr(_inputs, "EXAMPLES", 7)
    assert (
        "a random sample of 7 of the 30 examples"
        in measure_input_margins(context)[0].interpretation
    )


def test_images_keep_their_shape():
    torch = need("torch")
    nn = torch.nn
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(8, 3)
        ).eval()
        x = torch.randn(9, 1, 4, 4)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    found = subject(
        model, nn.CrossEntropyLoss(), (x, model(x).argmax(1)), micro_batch=4, check=False
    )
    linearized, upper, lower = measure_input_margins(Context(found, np.random.default_rng(0)))
    assert 0 < upper.value < np.inf and linearized.value > 0 and np.isnan(lower.value)
    assert all(torch.equal(before[name], each) for name, each in model.state_dict().items())
    assert all(each.grad is None for each in model.parameters())


def test_what_has_no_margins_is_refused():
    x, y = models.data()
    network = mlp((4, 3), bias=False)
    params = ({"w": np.ones((3, 4))},)
    with pytest.raises(UserError, match="need real inputs"):
        measure_input_margins(context_of((network, params), np.ones((11, 4), int), y))
    with pytest.raises(UserError, match="two classes"):
        measure_input_margins(context_of((lambda w, x: x @ w, np.ones((4, 1))), x, 0 * y))
    with pytest.raises(UserError, match="class numbers"):
        measure_input_margins(context_of(((lambda w, x: x @ w), np.ones(4)), x, x[:, 0]))


def test_data_in_another_order_in_every_pass_have_the_same_distances():
    x, y = models.data()
    order = np.random.default_rng(0)

    class Loader:
        def __iter__(self):
            rows = order.permutation(len(x))
            return iter([(x[rows], y[rows])])

    found = subject(models.of_jax(), models.cross_entropy, Loader(), check=False)
    ordered = subject(models.of_jax(), models.cross_entropy, (x, y))
    shuffled, exact = (measure(each, what=["input-margins"]) for each in (found, ordered))
    name = "linearized input margin"
    assert shuffled[name].value == pytest.approx(exact[name].value, rel=1e-9)


def cubes(params, x):
    """Two outputs ±½ (Σ relu(⟨μ_i, x⟩)³ over class one − the same over class zero), on orthonormal centres."""
    value = jnp.maximum(x @ params, 0) ** 3 @ jnp.array([1.0, 1.0, -1.0, -1.0])
    return jnp.stack([-value, value], axis=-1) / 2


def test_an_attack_is_not_fooled_by_gradients_that_vanish():
    """At a centre the network sees nothing of the other centres: the boundary is half of the way to them, 1/√2."""
    centres = jnp.eye(4)
    labels = np.array([1, 1, 0, 0])
    attached = subject((cubes, centres), models.cross_entropy, (np.eye(4), labels))
    boundary = _Boundary.of(attached, np.eye(4), labels)
    assert np.all(_attack(boundary) > 0.99)  # a step along its own centre, to zero, if any
    assert np.allclose(_slide(boundary), 0.5**0.5, rtol=1e-4)
    reading = measure(attached, what=["input-margins"])["robust radius, at most"]
    assert np.isclose(reading.value, 0.5**0.5, rtol=1e-4)


def test_the_second_attack_finds_the_plane_of_a_linear_model():
    """Slid along the boundary, it comes to the foot of the perpendicular."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=5)
    linear = lambda params, x: jnp.stack([-x @ params, x @ params], axis=-1)
    x = rng.normal(size=(40, 5))
    labels = (x @ w > 0).astype(int)
    attached = subject((linear, jnp.asarray(w)), models.cross_entropy, (x, labels))
    exact = np.abs(x @ w) / np.linalg.norm(w)
    found_radii = _slide(_Boundary.of(attached, x, labels))
    assert np.all(found_radii > exact * (1 - 1e-9))
    assert np.median(found_radii / exact) < 1.03


def test_examples_of_one_output_have_no_second_attack():
    constant = lambda params, x: jnp.stack([0 * x[:, 0], 1 + 0 * x[:, 0] + params[0]], axis=-1)
    x = np.ones((3, 2))
    attached = subject((constant, jnp.zeros(1)), models.cross_entropy, (x, np.array([1, 1, 1])))
    assert np.all(np.isinf(_slide(_Boundary.of(attached, x, np.array([1, 1, 1])))))
