"""Derivatives at kinks: against difference quotients, against cells enumerated by hand, and at points without kinks."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.landscapes import clarke, directional_gradient, one_sided_relu
from steepest.landscapes._clarke import Clarke

RNG = np.random.default_rng(0)
DEEP = [RNG.integers(-3, 4, (4, 2)).astype(float), RNG.integers(-2, 3, (3, 4)).astype(float)]


def deep(x, relu):
    """A network of two hidden layers without biases: all of its kinks meet at zero."""
    return relu(jnp.asarray(DEEP[1]) @ relu(jnp.asarray(DEEP[0]) @ x)).sum() + jnp.sin(x[0])


def test_directional_derivatives_are_difference_quotients():
    at = jax.jit(lambda u: jax.jvp(lambda x: deep(x, one_sided_relu), (jnp.zeros(2),), (u,))[1])
    for u in RNG.normal(size=(5, 2)):
        step = 1e-7
        quotient = (deep(jnp.asarray(step * u), jax.nn.relu) - 0) / step
        assert float(at(jnp.asarray(u))) == pytest.approx(float(quotient), abs=1e-6)


def test_the_gradient_on_a_side_is_the_gradient_a_little_to_that_side():
    side = jax.jit(lambda u: directional_gradient(deep, jnp.zeros(2), u))
    beyond = jax.jit(jax.grad(lambda x: deep(x, jax.nn.relu)))
    for u in RNG.normal(size=(5, 2)):
        assert np.allclose(side(jnp.asarray(u)), beyond(jnp.asarray(1e-9 * u)), atol=1e-12)


def test_independent_kinks_have_all_cells():
    """At a point on k hyperplanes the hull has 2^k vertices: base + Σ s_j v_j w_j with s in {0, 1}."""
    w = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0], [2.0, 0.0, 1.0]])
    v = np.array([1.0, -2.0, 3.0])
    net = lambda x, relu: jnp.asarray(v) @ relu(jnp.asarray(w) @ x)
    hull = clarke(net, np.zeros(3), jax.random.key(0))
    cells = [(np.array(s) * v) @ w for s in itertools.product((0, 1), repeat=3)]
    assert {tuple(row) for row in hull.vertices} == {tuple(row) for row in np.array(cells)}
    assert hull.contains(np.mean(cells, axis=0))


def test_without_a_kink_there_is_one_gradient():
    x = np.array([0.3, -1.7])
    hull = clarke(deep, x, jax.random.key(1))
    assert len(hull.vertices) == 1
    assert np.allclose(hull.vertices[0], jax.grad(deep)(jnp.asarray(x), jax.nn.relu))


def test_distances_to_a_triangle():
    triangle = Clarke(np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]))
    assert triangle.distance([0.5, 0.5]) == pytest.approx(0, abs=1e-12)
    assert triangle.distance([-1.0, 1.0]) == pytest.approx(1)
    assert triangle.distance([2.0, 2.0]) == pytest.approx(
        1
    )  # nearest in the largest coordinate: (1, 1)


def test_bad_input_is_one_sentence():
    with pytest.raises(UserError, match="x must be"):
        clarke(deep, np.zeros((2, 2)), jax.random.key(0))
    with pytest.raises(UserError, match="at least one direction"):
        clarke(deep, np.zeros(2), jax.random.key(0), directions=0)
    with pytest.raises(UserError, match=r"shape \(2,\)"):
        clarke(deep, np.ones(2), jax.random.key(0)).distance(np.zeros(3))
    with pytest.raises(UserError, match="no finite gradient"):
        clarke(lambda x, relu: jnp.log(x).sum(), np.zeros(2), jax.random.key(0))
