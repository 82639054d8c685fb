"""The telescope: against plain loops, on a risk that is not convex, and for the flow as the limit of small steps."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.core.errors import UserError
from steepest.dynamics import descend, telescope


def risk(params):
    return jnp.sin(params["a"]).sum() + (params["a"] @ params["b"]) ** 2


START = {"a": jnp.array([0.3, -1.0]), "b": jnp.array([1.0, 0.5])}
REFERENCE = {"a": jnp.array([2.0, 1.0]), "b": jnp.array([-1.0, 0.0])}


def sums(lr, steps):
    path = descend(risk, START, optax.sgd(lr), steps, observe={"params": lambda params: params})
    return jax.jit(lambda points: telescope(risk, points, REFERENCE))(path.observed["params"])


def test_the_identity_holds_for_every_prefix_of_a_path_that_is_not_convex():
    lr = 0.1
    total = sums(lr, 20)
    defect = total.left + 2 * lr * total.inner - lr**2 * total.squares
    assert np.abs(defect).max() < 1e-13
    assert np.abs(lr**2 * total.squares[-1] / total.left[-1]) > 1e-3  # the last term is seen


def test_sums_are_those_of_a_plain_loop():
    lr = 0.2
    total = sums(lr, 3)
    params = START
    inner = 0.0
    squares = 0.0
    slope = jax.jit(jax.grad(risk))
    for i in range(3):
        now = slope(params)
        inner += sum(float(now[k] @ (params[k] - REFERENCE[k])) for k in params)
        squares += sum(float(now[k] @ now[k]) for k in params)
        params = {k: params[k] - lr * now[k] for k in params}
        assert total.inner[i] == pytest.approx(inner, rel=1e-12)
        assert total.squares[i] == pytest.approx(squares, rel=1e-12)


def test_the_last_term_vanishes_with_the_step_size_at_one_time():
    shares = [float(lr**2 * sums(lr, int(0.4 / lr)).squares[-1]) for lr in (0.1, 0.01)]
    assert shares[0] / shares[1] == pytest.approx(10, rel=0.2)


def test_bad_input_is_one_sentence():
    points = jax.tree.map(lambda leaf: leaf[None], START)
    with pytest.raises(UserError, match="at least the points before and after"):
        telescope(risk, points, REFERENCE)
    with pytest.raises(UserError, match="at least the points before and after"):
        telescope(lambda w: w**2, 1.0, 1.0)
    with pytest.raises(UserError, match="shapes of one point"):
        telescope(risk, points, points)
