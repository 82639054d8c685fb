"""Networks expanded in their parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from steepest.core.errors import UserError
from steepest.kernels import empirical_ntk, linearize, quadratize, taylor_expand
from steepest.nn.networks import mlp
from tests.oracles import dense_hessian

X = np.random.default_rng(0).normal(size=(5, 3))
NET = mlp((3, 6, 1), "tanh", parameterized="ntk", c_b=0.3)


def moved(params, distance):
    """Parameters at this distance in one fixed direction."""
    flat, unflatten = ravel_pytree(params)
    direction = np.random.default_rng(1).normal(size=flat.shape)
    return unflatten(flat + distance * direction / np.linalg.norm(direction))


@pytest.mark.parametrize(("expand", "order"), [(linearize, 2), (quadratize, 3)])
def test_the_error_is_of_the_next_order(expand, order, key):
    start = NET.init(key)
    distances = np.geomspace(0.01, 0.1, 6)
    model = jax.jit(expand(NET, start))
    there = [moved(start, distance) for distance in distances]
    errors = [np.linalg.norm(model(p, X) - NET.apply(p, X)) for p in there]
    assert np.polyfit(np.log(distances), np.log(errors), 1)[0] == pytest.approx(order, abs=0.15)
    np.testing.assert_allclose(model(start, X), NET.apply(start, X), rtol=1e-12)


def test_against_dense_derivatives(key):
    start = NET.init(key)
    there = moved(start, 0.7)
    one = lambda p: NET.apply(p, X[0])
    step = np.asarray(ravel_pytree(there)[0] - ravel_pytree(start)[0])
    first = float(one(start)) + np.asarray(ravel_pytree(jax.grad(one)(start))[0]) @ step
    assert float(linearize(NET, start)(there, X[0])) == pytest.approx(first, rel=1e-10)
    second = first + step @ dense_hessian(one, start) @ step / 2
    assert float(quadratize(NET.apply, start)(there, X[0])) == pytest.approx(second, rel=1e-10)


@pytest.mark.parametrize("order", range(6))
def test_a_polynomial_is_its_expansion_and_less_is_cut(order):
    """(1 + δ)⁴ of two numbers, whose terms are binomial."""
    fourth = lambda w, x: (w["a"] * w["b"][0]) ** 2 * x
    center = {"a": jnp.array(1.0), "b": jnp.array([1.0])}
    moved_to = {"a": jnp.array(1.5), "b": jnp.array([1.5])}
    terms = [1.0, 4 * 0.5, 6 * 0.5**2, 4 * 0.5**3, 0.5**4, 0.0]
    value = taylor_expand(fourth, center, order)(moved_to, jnp.array(2.0))
    assert float(value) == pytest.approx(2 * sum(terms[: order + 1]), rel=1e-12)


def test_an_order_is_a_whole_number():
    with pytest.raises(UserError, match="order"):
        taylor_expand(NET, {"w": jnp.ones(2)}, -1)


def test_the_kernel_of_the_linear_model_does_not_move(key):
    start = NET.init(key)
    linear = linearize(NET, start)
    for distance in (0.0, 3.0):
        there = moved(start, distance)
        np.testing.assert_allclose(
            empirical_ntk(linear, there, X), empirical_ntk(NET, start, X), rtol=1e-10
        )
    there = moved(start, 3.0)
    assert (
        np.abs(empirical_ntk(quadratize(NET, start), there, X) - empirical_ntk(NET, start, X)).max()
        > 0.01
    )


def test_descent_on_the_linear_model_is_a_linear_recursion(key):
    """Residuals of the mean squared loss are multiplied by 1 − ηΘ/n each step."""
    start = NET.init(key)
    y = jnp.asarray(X[:, 0])
    lr = 0.3
    linear = linearize(NET, start)
    risk = lambda p: 0.5 * jnp.mean((linear(p, X) - y) ** 2)
    params = start
    slope = jax.jit(jax.grad(risk))
    for _ in range(5):
        params = jax.tree.map(lambda a, g: a - lr * g, params, slope(params))
    once = np.eye(5) - lr * np.asarray(empirical_ntk(NET, start, X)) / 5
    expected = np.linalg.matrix_power(once, 5) @ (NET.apply(start, X) - y)
    np.testing.assert_allclose(linear(params, X) - y, expected, rtol=1e-10)
