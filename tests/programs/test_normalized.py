"""Normalized margins: attained by the program's separator, unchanged by scaling."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.programs import hard_margin, linear_margin, network_margins

X = jnp.array([[2.0, 1.0], [-1.0, 0.5], [-3.0, -1.0]])
Y = jnp.array([1.0, -1.0, -1.0])


@pytest.mark.parametrize(("norm", "order"), [("l1", 1), ("l2", 2), ("linf", jnp.inf)])
def test_the_program_attains_the_largest_margin(norm, order):
    found = hard_margin(X, Y, norm=norm)
    assert float(linear_margin(jnp.asarray(found.direction), X, Y, order)) == pytest.approx(
        found.margin, rel=1e-9
    )
    for turn in (0.1, -0.1):
        nearby = jnp.asarray(found.direction) + turn * jnp.array([0.3, 1.0])
        assert float(linear_margin(nearby, X, Y, order)) <= found.margin * (1 + 1e-9)


@settings(max_examples=30, deadline=None)
@given(st.floats(1e-3, 1e3), st.sampled_from([1, 2, jnp.inf]))
def test_scaling_the_weights_changes_nothing(factor, order):
    w = jnp.array([1.0, 0.3])
    assert float(linear_margin(factor * w, X, Y, order)) == pytest.approx(
        float(linear_margin(w, X, Y, order))
    )


def test_network_margins_match_a_loop():
    """f_y minus the best other logit, from class numbers and one-hot rows; ties give zero."""
    logits = np.random.default_rng(0).normal(size=(6, 4))
    logits[5] = 1.0
    labels = np.array([0, 3, 1, 2, 0, 2])
    expected = [row[k] - np.delete(row, k).max() for row, k in zip(logits, labels, strict=True)]
    assert np.allclose(network_margins(jnp.array(logits), jnp.array(labels)), expected)
    assert np.allclose(network_margins(jnp.array(logits), jnp.eye(4)[labels]), expected)


def test_one_output_has_no_other_class():
    with pytest.raises(UserError, match="two outputs"):
        network_margins(jnp.ones((3, 1)), jnp.zeros(3, dtype=int))
