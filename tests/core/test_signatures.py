"""Arguments against annotations: wrong ones are refused by name, right ones of every library go through unchanged."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jaxtyping import Array, Float, PRNGKeyArray

from steepest import dynamics, linalg, programs
from steepest.core import given
from steepest.core.errors import UserError
from steepest.core.fields import Count
from steepest.core.signatures import checked
from steepest.nn import data, layers, losses, networks

X = np.ones((6, 3))
Y = np.ones(6)
KEY = jax.random.key(0)


def risk(w):
    return (w**2).sum()


RIGHT = {
    linalg.sharpness: {"risk": risk, "params": jnp.ones(3), "key": KEY, "products": 2},
    linalg.hessian_product: {"risk": risk, "params": jnp.ones(3)},
    linalg.top_eigenpair: {"operator": lambda v: 2 * v, "start": jnp.ones(3), "products": 2},
    linalg.top_eigenpairs: {"operator": lambda v: 2 * v, "start": np.ones(3), "count": 1},
    programs.linear_margin: {"weights": np.ones(3), "x": X, "y": Y, "norm": 2},
    networks.mlp: {"widths": (3, 4, 1), "activation": "tanh", "c_w": 1.0},
    layers.dense: {"width": 4},
    layers.conv: {"width": 4, "window": 3},
    losses.cross_entropy: {"logits": jnp.ones((4, 3)), "labels": jnp.zeros(4, int)},
    losses.squared: {"outputs": jnp.ones(4), "targets": jnp.ones(4)},
    data.hypercube: {"n": 3},
    data.clusters: {"key": KEY, "n": 6, "d": 3, "classes": 2},
    dynamics.descend: {
        "risk": risk,
        "params": jnp.ones(3),
        "optimizer": optax.sgd(0.1),
        "steps": 2,
    },
    dynamics.flow: {"risk": risk, "params": jnp.ones(3), "times": jnp.array([0.5]), "clock": "log"},
    dynamics.schedule: {"steps": 10, "record": 2},
    dynamics.steepest_direction: {"gradient": jnp.ones(3), "p": 2.0},
    dynamics.quadratic_rates: {"eigenvalues": np.ones(3)},
    dynamics.minibatch: {"loss": lambda w, x, y: y, "x": X, "y": Y, "size": 2},
}
NEVER = [None, object(), {1, "a"}, {"a": None}]
CASES = [(function, name) for function, right in RIGHT.items() for name in right]


def case_id(value):
    return value if isinstance(value, str) else value.__name__


@pytest.mark.parametrize(("function", "name"), CASES, ids=case_id)
def test_what_no_argument_means_is_refused_by_name(function, name):
    for wrong in NEVER:
        with pytest.raises(UserError, match=rf"\b{name}\b"):
            function(**{**RIGHT[function], name: wrong})


@pytest.mark.parametrize(
    ("function", "name", "wrong"),
    [
        (linalg.sharpness, "risk", lambda: 1.0),
        (linalg.sharpness, "risk", lambda w: None),
        (linalg.sharpness, "risk", lambda w: w),
        (linalg.sharpness, "params", {}),
        (linalg.sharpness, "params", jnp.ones(3) + 1j),
        (linalg.sharpness, "params", jnp.ones(3, int)),
        (linalg.sharpness, "key", 0),
        (linalg.sharpness, "key", jax.random.split(KEY)),
        (linalg.sharpness, "products", 0),
        (linalg.sharpness, "products", 2.5),
        (linalg.top_eigenpair, "operator", lambda v: None),
        (linalg.top_eigenpair, "operator", lambda v: v[:2]),
        (linalg.top_eigenpairs, "operator", lambda v: None),
        (linalg.top_eigenpairs, "operator", lambda v: v @ np.eye(4)),
        (linalg.top_eigenpairs, "start", np.full(3, np.nan)),
        (programs.linear_margin, "y", Y[:5]),
        (programs.linear_margin, "x", X[:0]),
        (programs.linear_margin, "weights", np.ones((1, 3))),
        (programs.linear_margin, "weights", [1, [2, 3]]),
        (programs.linear_margin, "norm", 0),
        (networks.mlp, "widths", "345"),
        (networks.mlp, "widths", (3, 2.5, 1)),
        (layers.conv, "window", 0),
        (layers.dense, "width", np.nan),
        (data.clusters, "classes", 2.5),
        (dynamics.descend, "risk", lambda w: None),
        (dynamics.descend, "optimizer", (1, 2)),
        (dynamics.flow, "clock", "lgo"),
        (dynamics.flow, "risk", lambda w: w),
        (dynamics.schedule, "record", 2.5),
        (dynamics.schedule, "record", [0.5, 1.5]),
        (dynamics.steepest_direction, "p", 0.5),
        (dynamics.minibatch, "loss", lambda w: w),
    ],
)
def test_wrong_shapes_counts_and_functions_are_refused_by_name(function, name, wrong):
    with pytest.raises(UserError, match=rf"\b{name}\b"):
        function(**{**RIGHT[function], name: wrong})


def test_a_batch_larger_than_the_data_is_refused():
    with pytest.raises(UserError, match="6 examples"):
        dynamics.minibatch(**{**RIGHT[dynamics.minibatch], "size": 7})


@checked
def area(
    x: Float[Array, "n d"], y: Float[Array, " n"], count: Count = 1, by: Literal["l1", "l2"] = "l1"
):
    return x, y, count, by


def test_lengths_of_one_name_are_equal_and_the_hint_has_them():
    with pytest.raises(UserError, match=r"y must .* n = 6.*np\.ones\(6\)"):
        area(X, np.ones(5))


def test_the_nearest_word_is_the_hint():
    with pytest.raises(UserError, match="did you mean 'l2'"):
        area(X, Y, by="l22")


def test_right_arguments_are_the_same_objects_and_lists_become_arrays():
    x, y, *_ = area(X, Y)
    assert x is X and y is Y
    assert area([[1.0]], [1.0])[0].shape == (1, 1)
    assert type(area(X, Y, 3.0)[2]) is int


def test_unknown_keywords_are_pythons_own_error():
    with pytest.raises(TypeError, match="cuont"):
        area(X, Y, cuont=1)


def test_what_jax_traces_goes_through():
    margin = lambda w: programs.linear_margin(w, X, Y)
    w = jnp.arange(1.0, 4.0)
    assert jax.eval_shape(margin, w).shape == ()
    assert jax.eval_shape(jax.vmap(margin), jnp.stack([w, w])).shape == (2,)
    assert jax.eval_shape(jax.grad(margin), w).shape == (3,)
    with pytest.raises(UserError, match="weights"):
        jax.eval_shape(margin, w[None])


@pytest.mark.parametrize("key", [KEY, jax.random.PRNGKey(0)])
def test_old_and_new_keys_are_keys(key):
    @checked
    def draw(key: PRNGKeyArray):
        return key

    assert draw(key) is key and given.key("key", key) is key


def test_errors_of_the_readers_own_come_through():
    def fails(w):
        raise KeyError("of the reader")

    with pytest.raises(KeyError, match="of the reader"):
        linalg.sharpness(**{**RIGHT[linalg.sharpness], "risk": fails})
