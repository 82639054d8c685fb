"""Path-SGD against a sum over all paths, against automatic differentiation, and its invariance."""

from itertools import pairwise, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.core.errors import UserError
from steepest.dynamics import descend, path_sgd
from steepest.nn.losses import mean_risk, squared
from steepest.nn.networks import mlp
from steepest.programs import path_norm

SHAPES = [(3, 2), (3, 4, 2), (2, 3, 4, 2)]


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def chain(widths, seed=0):
    return mlp(widths, bias=False).init(jax.random.key(seed))


def factors(params: Any) -> list:
    """κ, from the update of a gradient of ones with step one."""
    ones = jax.tree.map(jnp.ones_like, params)
    return [-1 / layer["w"] for layer in path_sgd(1.0).update(ones, optax.EmptyState(), params)[0]]


def rescaled(params, factors):
    """Every hidden neuron's incoming weights times its factor, its outgoing ones divided."""
    ends = [jnp.ones(params[0]["w"].shape[1]), *factors, jnp.ones(params[-1]["w"].shape[0])]
    return tuple(
        {"w": p["w"] * b[:, None] / a} for p, (a, b) in zip(params, pairwise(ends), strict=True)
    )


@pytest.mark.parametrize("widths", SHAPES)
def test_factors_are_sums_over_paths(widths):
    params = chain(widths)
    weights = [np.asarray(layer["w"]) for layer in params]
    expected = [np.zeros_like(w) for w in weights]
    for path in product(*(range(width) for width in widths)):
        edges = [w[j, i] for w, (i, j) in zip(weights, pairwise(path), strict=True)]
        for k, (i, j) in enumerate(pairwise(path)):
            expected[k][j, i] += np.prod([e**2 for m, e in enumerate(edges) if m != k])
    for found, wanted in zip(factors(params), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("widths", SHAPES)
def test_factors_are_derivatives_of_the_squared_path_norm(widths):
    params = chain(widths, 1)
    slopes = jax.grad(lambda p: path_norm([layer["w"] for layer in p], 2) ** 2)(params)
    for found, slope, layer in zip(factors(params), slopes, params, strict=True):
        np.testing.assert_allclose(found, slope["w"] / (2 * layer["w"]), rtol=1e-10)


def outputs_along(activation, rule, rescale):
    """Outputs along thirty steps from a start, and from the same function with its weights unbalanced."""
    net = mlp((3, 6, 5, 2), activation, c_w=2.0, bias=False)
    for_start, for_x, for_y, for_factors = jax.random.split(jax.random.key(2), 4)
    x = jax.random.normal(for_x, (8, 3))
    y = jax.random.normal(for_y, (8, 2))
    start = net.init(for_start)
    if rescale:
        draws = jax.random.uniform(for_factors, (11,), minval=-2.0, maxval=2.0)
        start = rescaled(start, jnp.split(jnp.exp(draws), [6]))
    risk = mean_risk(squared, net.apply, x, y)
    return descend(risk, start, rule, 30, observe={"f": lambda p: net.apply(p, x)}).observed["f"]


def test_functions_do_not_depend_on_the_balance():
    plain, moved = (outputs_along("relu", path_sgd(0.05), rescale) for rescale in (False, True))
    np.testing.assert_allclose(moved, plain, rtol=1e-9, atol=1e-11)
    assert np.abs(plain[-1] - plain[0]).max() > 0.1


def test_powers_of_two_change_no_bit():
    params = chain((3, 4, 2))
    moved = rescaled(params, [2.0 ** jnp.arange(-2, 2)])
    gradient = lambda p: jax.grad(
        lambda q: (mlp((3, 4, 2), bias=False).apply(q, jnp.eye(3)) ** 2).sum()
    )(p)
    step: Any = lambda p: optax.apply_updates(
        p, path_sgd(0.1).update(gradient(p), optax.EmptyState(), p)[0]
    )
    for one, other in zip(
        rescaled(step(params), [2.0 ** jnp.arange(-2, 2)]), step(moved), strict=True
    ):
        np.testing.assert_array_equal(one["w"], other["w"])


@pytest.mark.parametrize(
    ("activation", "rule"), [("relu", optax.sgd(0.05)), ("tanh", path_sgd(0.05))]
)
def test_other_rules_and_other_activations_do_depend_on_it(activation, rule):
    plain, moved = (outputs_along(activation, rule, rescale) for rescale in (False, True))
    assert np.abs(plain - moved).max() > 0.05


def test_a_single_layer_is_gradient_descent():
    net = mlp((3, 2), bias=False)
    x = jnp.eye(3)
    y = jnp.ones((3, 2))
    risk = mean_risk(squared, net.apply, x, y)
    start = net.init(jax.random.key(0))
    one, other = (descend(risk, start, rule, 20).risk for rule in (path_sgd(0.3), optax.sgd(0.3)))
    np.testing.assert_allclose(one, other, rtol=1e-12)


def test_dead_edges_stay_and_nothing_is_nan():
    """A neuron without outgoing weights: κ = 0 on the way into it."""
    params = chain((3, 4, 2))
    params[1]["w"] = params[1]["w"].at[:, 0].set(0.0)
    net = mlp((3, 4, 2), bias=False)
    path = descend(
        mean_risk(squared, net.apply, jnp.eye(3), jnp.ones((3, 2))), params, path_sgd(0.01), 1
    )
    np.testing.assert_array_equal(path.params[0]["w"][0], params[0]["w"][0])
    assert all(np.isfinite(layer["w"]).all() for layer in path.params)


def test_works_under_vmap():
    net = mlp((3, 4, 1), bias=False)
    x = jnp.eye(3)
    y = jnp.ones(3)
    risk = mean_risk(squared, net.apply, x, y)
    start = net.init(jax.random.key(0))
    run = lambda lr: descend(risk, start, path_sgd(lr), 5).risk
    np.testing.assert_allclose(jax.vmap(run)(jnp.array([0.01, 0.1]))[1], run(0.1), rtol=1e-12)


@pytest.mark.parametrize(
    "params",
    [
        None,
        {"w": jnp.ones((2, 2))},
        (),
        ({"w": jnp.ones((2, 2)), "b": jnp.ones(2)},),
        ({"w": jnp.ones((2, 3))}, {"w": jnp.ones((2, 3))}),
        ({"w": jnp.ones(3)},),
    ],
)
def test_other_parameters_are_refused_in_one_sentence(params):
    with pytest.raises(UserError, match="chain without biases"):
        path_sgd(0.1).init(params)
