"""Losses against closed forms and high precision, and labels that are refused."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.nn import losses

MARGINS = [-800.0, -30.0, -1.0, 0.0, 1.0, 29.999, 30.001, 100.0, 690.0, 5000.0, 1e8]


def log_softplus(u):
    """log log(1 + e^-u) in 60 digits; far out the series -u - e^-u / 2."""
    if u > 500:
        return -u
    with mpmath.workdps(400):
        return float(mpmath.log(mpmath.log1p(mpmath.exp(-mpmath.mpf(u)))))


@pytest.mark.parametrize("u", MARGINS)
def test_log_logistic_is_exact_on_both_sides_of_underflow(u):
    """log ℓ(u) agrees with high precision wherever ℓ(u) does and does not underflow."""
    found = float(losses.log_loss(losses.logistic, jnp.array(u)))
    assert found == pytest.approx(log_softplus(u), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("u", MARGINS)
def test_log_logistic_is_differentiable_twice(u):
    """d/du log ℓ = -σ(-u)/ℓ(u), which tends to -1; the second derivative tends to 0 and is never NaN."""
    log = lambda v: losses.log_loss(losses.logistic, v)
    slope = jax.grad(log)(u)
    bend = jax.grad(jax.grad(log))(u)
    expected = -float(jax.nn.sigmoid(-u) / jax.nn.softplus(-u)) if u < 690 else -1.0
    assert float(slope) == pytest.approx(expected, rel=1e-12)
    assert np.isfinite(bend)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(-50, 50), min_size=4, max_size=4),
    st.sampled_from([losses.logistic, losses.exponential]),
)
def test_log_mean_loss_is_the_log_of_the_mean(margins, loss):
    """log_mean_loss = log(mean(loss)) where the latter can be computed."""
    u = jnp.array(margins)
    assert float(losses.log_mean_loss(loss, u)) == pytest.approx(
        float(jnp.log(loss(u).mean())), rel=1e-11, abs=1e-11
    )


def test_log_mean_loss_shifts_with_the_margins():
    """Far out log R(u + c) = log R(u) - c, and its gradient is minus a probability vector."""
    u = jnp.array([1000.0, 1001.0, 1010.0])
    for loss in (losses.logistic, losses.exponential):
        shifted = losses.log_mean_loss(loss, u + 5000) - losses.log_mean_loss(loss, u)
        assert float(shifted) == pytest.approx(-5000, abs=1e-9)
        slope = jax.grad(lambda v, loss=loss: losses.log_mean_loss(loss, v))(u)
        assert np.allclose(slope, -jax.nn.softmax(-u), rtol=1e-12)


def test_log_mean_loss_in_float32_keeps_its_type():
    """float32 margins give float32 logarithms that are right far out."""
    found = losses.log_mean_loss(losses.logistic, jnp.full(3, 400.0, dtype=jnp.float32))
    assert found.dtype == jnp.float32
    assert float(found) == pytest.approx(-400.0, rel=1e-6)


def test_cross_entropy_of_two_classes_is_the_logistic_loss():
    """log(1 + e^-(f_y - f_j)), from class numbers and from one-hot rows."""
    logits = jnp.array([[1.0, -2.0], [0.5, 3.0]])
    numbers = jnp.array([1, 1])
    expected = losses.logistic(jnp.array([-3.0, 2.5]))
    assert np.allclose(losses.cross_entropy(logits, numbers), expected, atol=1e-12)
    assert np.allclose(losses.cross_entropy(logits, jnp.eye(2)[numbers]), expected, atol=1e-12)


def test_squared_sums_over_outputs_and_refuses_to_broadcast():
    """½‖f - y‖² per example; (n,) against (n, 1) is an error, not an (n, n) mean."""
    assert np.allclose(losses.squared(jnp.ones((3, 4)), jnp.zeros((3, 4))), 2.0)
    assert np.allclose(losses.squared(jnp.ones(3), jnp.zeros(3)), 0.5)
    with pytest.raises(UserError, match="shape"):
        losses.squared(jnp.ones(3), jnp.ones((3, 1)))


def test_risks_are_means_over_examples(key):
    """margin_risk and its logarithm agree; mean_risk is the mean of the losses."""
    x = jax.random.normal(key, (7, 3))
    y = jnp.sign(x[:, 0])
    w = jnp.array([0.3, -0.2, 0.1])
    linear = lambda v, z: z @ v
    risk = losses.margin_risk(losses.logistic, linear, x, y)(w)
    assert float(risk) == pytest.approx(float(jnp.log1p(jnp.exp(-y * (x @ w))).mean()), rel=1e-12)
    log_risk = losses.log_margin_risk(losses.logistic, linear, x, y)(w)
    assert float(log_risk) == pytest.approx(float(jnp.log(risk)), rel=1e-12)
    squares = losses.mean_risk(losses.squared, linear, x, y)(w)
    assert float(squares) == pytest.approx(float(0.5 * ((x @ w - y) ** 2).mean()), rel=1e-12)


@pytest.mark.parametrize("labels", [[0, 1], [1.0, 0.5], [[1.0], [-1.0]], [1.0, float("nan")]])
def test_labels_that_are_not_signs_are_refused_in_one_sentence(labels):
    with pytest.raises(UserError, match=r"^labels: expected[^\n]*got[^\n]*$"):
        losses.check_labels(labels)


def test_labels_pass_under_vmap():
    """Values cannot be seen under vmap: only shapes are checked."""
    assert jax.vmap(losses.check_labels)(jnp.array([[1.0, -1.0]])).shape == (1, 2)


def test_unknown_log_loss_and_mismatched_classes_are_refused():
    with pytest.raises(UserError, match="exponential or logistic"):
        losses.log_loss(jnp.square, jnp.ones(2))
    with pytest.raises(UserError, match="one-hot"):
        losses.cross_entropy(jnp.ones((3, 2)), jnp.array([1.0, 0.0, 1.0]))
