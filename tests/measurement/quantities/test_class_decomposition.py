"""The three levels of the Gauss–Newton matrix: dense oracles, both array libraries, any model."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from steepest.core.errors import UserError
from steepest.measurement.adapters import subject
from steepest.measurement.quantities import (
    level_forms,
    level_maps,
    level_products,
    own_cotangents,
    three_levels,
)
from tests.extras import need
from tests.measurement.adapters import models


def example(seed=0, n=23, classes=4, widths=(5, 6)):
    """A tiny tanh network: flat weights, forward, inputs, labels."""
    rng = np.random.default_rng(seed)
    x = jnp.array(rng.normal(size=(n, widths[0])))
    y = jnp.array(np.r_[:classes, rng.integers(0, classes, n - classes)])
    tree = {
        "a": jnp.array(rng.normal(size=widths)),
        "b": jnp.array(rng.normal(size=(widths[1], classes))),
    }
    flat, unflatten = ravel_pytree(tree)
    forward = lambda w: jnp.tanh(x @ unflatten(w)["a"]) @ unflatten(w)["b"]
    return flat, forward, y


def oracle(flat, forward, y, means):
    """Every part as it is written, example by example, with p × p matrices."""
    J = np.asarray(jax.jacobian(forward)(flat))
    p = np.asarray(jax.nn.softmax(forward(flat)))
    y = np.asarray(y)
    n, C = p.shape
    g = np.array(
        [[J[i].T @ (p[i] - np.eye(C)[k]) for k in range(C)] for i in range(n)]
    )  # (n, C, p)
    w = p / n
    if means == "plain":
        g = np.sqrt(p)[..., None] * g
        w = np.full((n, C), 1 / n)
    parts = {name: np.zeros((len(flat),) * 2) for name in ("classes", "cross", "within", "own")}
    for c in range(C):
        inside = np.flatnonzero(y == c)
        others = [k for k in range(C) if k != c]
        pair_weight = {k: w[inside, k].sum() for k in range(C)}
        pair_mean = {k: (w[inside, k] @ g[inside, k]) / pair_weight[k] for k in range(C)}
        weight = sum(pair_weight[k] for k in others)
        mean = sum(pair_weight[k] * pair_mean[k] for k in others) / weight
        parts["classes"] += weight * np.outer(mean, mean)
        for k in others:
            parts["cross"] += pair_weight[k] * np.outer(pair_mean[k] - mean, pair_mean[k] - mean)
            for i in inside:
                parts["within"] += w[i, k] * np.outer(
                    g[i, k] - pair_mean[k], g[i, k] - pair_mean[k]
                )
        for i in inside:
            parts["own"] += w[i, c] * np.outer(g[i, c], g[i, c])
    blocks = [J[i].T @ (np.diag(p[i]) - np.outer(p[i], p[i])) @ J[i] for i in range(n)]
    return parts, np.mean(blocks, axis=0)


def derivatives(flat, forward):
    """``jvp`` and ``vjp`` at these weights."""
    return lambda v: jax.jvp(forward, (flat,), (v,))[1], lambda u: jax.vjp(forward, flat)[1](u)[0]


@pytest.mark.parametrize("means", ["weighted", "plain"])
@pytest.mark.parametrize("seed", [0, 1])
def test_parts_are_those_of_the_definition_and_add_up(seed, means):
    """Each part equals its definition, and class + cross + within + own = G, to 1e-12."""
    flat, forward, y = example(seed)
    (jvp, vjp) = derivatives(flat, forward)
    outputs = forward(flat)
    found = jax.jit(lambda f: three_levels(vjp, f, y, means))(outputs)
    dense, whole = oracle(flat, forward, y, means)
    parts = level_products(found, jvp, vjp, outputs, y)
    eye = jnp.eye(len(flat))
    for name, matrix in dense.items():
        assert np.abs(np.asarray(jax.vmap(getattr(parts, name))(eye)) - matrix).max() < 1e-12, name
    assert np.abs(sum(dense.values()) - whole).max() < 1e-12
    assert np.abs(np.asarray(jax.vmap(parts.all)(eye)) - whole).max() < 1e-12


@pytest.mark.parametrize("means", ["weighted", "plain"])
def test_forms_are_the_other_way_to_the_parts(means):
    """vᵀ A v from J v alone equals the dense quadratic form, for the within part too."""
    flat, forward, y = example(4)
    v = jnp.array(np.random.default_rng(0).normal(size=len(flat)))
    found = level_forms(derivatives(flat, forward)[0](v), forward(flat), y, means)
    for name, matrix in oracle(flat, forward, y, means)[0].items():
        assert np.isclose(found[name], v @ matrix @ v, rtol=1e-12), name


@pytest.mark.parametrize("means", ["weighted", "plain"])
def test_a_linear_softmax_model_has_its_hessian(means):
    """There G is the whole Hessian of the risk."""
    rng = np.random.default_rng(2)
    x = jnp.array(rng.normal(size=(17, 4)))
    y = jnp.array(rng.integers(0, 3, 17))
    flat = jnp.array(rng.normal(size=12))
    forward = lambda w: x @ w.reshape(4, 3)
    risk = lambda w: -jnp.take_along_axis(jax.nn.log_softmax(forward(w)), y[:, None], 1).mean()
    jvp, vjp = derivatives(flat, forward)
    parts = level_products(three_levels(vjp, forward(flat), y, means), jvp, vjp, forward(flat), y)
    eye = jnp.eye(12)
    hessian = jax.hessian(risk)(flat)
    low_rank = sum(
        jax.vmap(each)(eye) for each in (parts.classes, parts.cross, parts.own, parts.within)
    )
    assert np.abs(low_rank - hessian).max() < 1e-12


def test_a_wrong_mean_does_not_add_up():
    """The within part computed from the definition, beside class means of the other convention, misses G."""
    flat, forward, y = example()
    weighted, whole = oracle(flat, forward, y, "weighted")
    other = three_levels(derivatives(flat, forward)[1], forward(flat), y, "plain")
    classes = np.asarray(other.classes.T @ other.classes)
    missing = classes + weighted["cross"] + weighted["within"] + weighted["own"] - whole
    assert np.abs(missing).max() > 1e-3


def test_ranks_and_weights():
    """Rank C of the class part, C(C − 2) of the cross part; the weights add up to one."""
    flat, forward, y = example(3, n=40, classes=4)
    found = three_levels(derivatives(flat, forward)[1], forward(flat), y)
    assert np.linalg.matrix_rank(found.classes) == 4
    assert np.linalg.matrix_rank(found.cross) == 4 * 2
    assert np.isclose(found.weights.sum(), 1.0)


def test_numpy_subjects_and_jax_agree():
    """``Subject.vjp`` in NumPy gives what JAX gives; so do torch modules where there is torch."""
    x, y = models.data(30)
    network, params = models.of_jax()
    ours = subject((network, params), models.cross_entropy, (x, y))
    outputs, labels = ours.outputs()
    found = three_levels(ours.vjp, outputs, labels)
    assert isinstance(found.classes, np.ndarray)
    flat, unflatten = ravel_pytree(params)
    forward = lambda w: network.apply(unflatten(w), x)
    expected = three_levels(
        derivatives(jnp.asarray(flat), forward)[1], forward(flat), jnp.asarray(y)
    )
    for a, b in zip(found, expected, strict=True):
        assert np.abs(a - b).max() < 1e-12
    v = np.random.default_rng(0).standard_normal(ours.size)
    parts = level_products(found, ours.jvp, ours.vjp, outputs, labels)
    assert np.abs(parts.all(v) - ours.products(v, "gauss-newton")).max() < 1e-12


def test_torch_modules_agree():
    torch = need("torch")
    x, y = models.data(30)
    ours = subject(models.of_jax(), models.cross_entropy, (x, y))
    theirs = subject(
        models.of_torch(), torch.nn.CrossEntropyLoss(), (torch.as_tensor(x), torch.as_tensor(y))
    )
    a, b = (three_levels(each.vjp, each.outputs()[0], y) for each in (ours, theirs))
    assert np.allclose(models.in_torch_order(a.classes[1]), b.classes[1], atol=1e-12)


def test_the_own_factor():
    flat, forward, y = example(5)
    J = np.asarray(jax.jacobian(forward)(flat))
    own = np.asarray(own_cotangents(forward(flat), y))
    rows = np.einsum("ncp,nc->np", J, own)
    assert np.abs(rows.T @ rows - oracle(flat, forward, y, "plain")[0]["own"]).max() < 1e-12


def test_a_class_without_examples_weighs_nothing():
    flat, forward, y = example(6)
    found = three_levels(derivatives(flat, forward)[1], forward(flat), jnp.where(y == 3, 2, y))
    assert np.isfinite(found.classes).all() and np.abs(found.classes[3]).max() == 0.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"means": "median"}, "weighted"),
        ({"labels": np.zeros((4, 2), int)}, "argmax"),
        ({"labels": np.zeros(4)}, "whole class numbers"),
        ({"outputs": np.zeros((4, 1))}, "C ≥ 2"),
    ],
)
def test_bad_input_is_one_sentence(change, words):
    given = {
        "vjp": lambda u: u.sum(0),
        "outputs": np.zeros((4, 2)),
        "labels": np.zeros(4, int),
        **change,
    }
    with pytest.raises(UserError, match=words):
        three_levels(**given)


def test_maps_are_the_parts_without_their_factors():
    """``Jᵀ B J`` is the dense part of the definition, for classes and for groups with an empty one."""
    flat, forward, y = example()
    jacobian = np.asarray(jax.jacobian(forward)(flat))
    outputs = np.asarray(forward(flat))
    for groups in (np.asarray(y), np.minimum(np.asarray(y), 2)):
        maps = level_maps(outputs, groups)
        columns = np.moveaxis(jacobian, 2, 0)
        dense = {
            name: np.einsum("ica,bic->ab", jacobian, [getattr(maps, name)(c) for c in columns])
            for name in maps._fields
        }
        forms = level_forms(columns[0], outputs, groups)
        for name, form in forms.items():
            assert dense[name][0, 0] == pytest.approx(float(form), abs=1e-14)
        if len(np.unique(groups)) == 4:
            parts, whole = oracle(flat, forward, groups, "weighted")
            for name, part in {**parts, "all": whole}.items():
                np.testing.assert_allclose(dense[name], part, atol=1e-14)
        np.testing.assert_allclose(sum(dense[name] for name in forms), dense["all"], atol=1e-14)
