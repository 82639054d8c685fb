"""Unconstrained features: the closed-form minimum against a convex program, against descent, and by optimality."""

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.dynamics import descend
from steepest.measurement.quantities import collapse
from steepest.nn.losses import cross_entropy, squared
from steepest.nn.networks._unconstrained import (
    unconstrained,
    unconstrained_minimum,
    unconstrained_risk,
)

LOSSES = {"cross-entropy": cross_entropy, "squared": squared}
CASES = [
    (3, 2, 0.02, 0.05),
    (4, 3, 0.01, 0.01),
    (2, 4, 0.05, 0.002),
    (3, 2, 0.3, 0.5),
]  # in the last all vanishes
DECAYS = st.floats(1e-4, 1e-1)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("classes", "each", "decay_w", "decay_h"), CASES)
def test_equals_the_nuclear_norm_program(loss, classes, each, decay_w, decay_h):
    """min_Z mean ℓ(Z) + √(λ_W λ_H) ‖Z‖_*, which knows nothing of symmetry."""
    y = np.repeat(np.eye(classes), each, axis=1)  # (C, N)
    z = cp.Variable(y.shape)
    if loss == "squared":
        fit = cp.sum_squares(z - y) / 2
    else:
        fit = cp.sum(cp.hstack([cp.log_sum_exp(z[:, i]) for i in range(y.shape[1])])) - cp.sum(
            cp.multiply(y, z)
        )
    program = cp.Problem(cp.Minimize(fit / y.shape[1] + np.sqrt(decay_w * decay_h) * cp.normNuc(z)))
    program.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    found = unconstrained_minimum(classes, each, decay_w, decay_h, loss)
    assert np.isclose(found.loss, program.value, rtol=1e-7)
    assert np.allclose(np.repeat(found.logits, each, axis=1), z.value, atol=2e-4)
    assert np.allclose(
        found.singular_values, np.linalg.svd(z.value, compute_uv=False)[:classes], atol=5e-4
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_descent_from_random_starts_ends_there(loss, key):
    """No spurious minima (Zhu et al. 2021): every start reaches the same value, norms and angles."""
    classes = 3
    each = 4
    decay_w = 0.02
    decay_h = 0.005
    net = unconstrained(classes, 6, classes * each)
    y = jnp.repeat(jnp.arange(classes), each)
    risk = unconstrained_risk(net, LOSSES[loss], jax.nn.one_hot(y, classes), decay_w, decay_h)

    def run(key):
        rule = optax.sgd(1.0, momentum=0.95, nesterov=True)
        return descend(risk, net.init(key), rule, 4000, record=4000).params

    ends = jax.jit(jax.vmap(run))(jax.random.split(key, 4))
    theory = unconstrained_minimum(classes, each, decay_w, decay_h, loss)
    assert np.allclose(jax.vmap(risk)(ends), theory.loss, rtol=1e-12)
    assert np.allclose(jnp.linalg.norm(ends["w"], axis=(1, 2)), theory.classifier_norm, rtol=1e-7)
    assert np.allclose(jnp.linalg.norm(ends["h"], axis=(1, 2)), theory.feature_norm, rtol=1e-7)
    logits = jax.vmap(lambda p: net.apply(p, jnp.arange(len(y))))(ends)
    assert np.allclose(logits, np.repeat(theory.logits.T, each, axis=0), atol=1e-6)
    found = jax.vmap(lambda p: collapse(p["h"], y, p["w"]))(ends)
    off = ~np.eye(classes, dtype=bool)
    assert np.allclose(found.variability, 0.0, atol=1e-12)
    assert np.allclose(found.cosines[:, off], theory.cosine, atol=1e-6)
    assert np.allclose(found.raw_cosines[:, off], theory.raw_cosine, atol=1e-6)
    assert np.allclose(found.duality, theory.duality, atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 8), st.integers(1, 20), DECAYS, DECAYS, st.sampled_from(list(LOSSES)))
def test_value_norms_and_logits_belong_together(classes, each, decay_w, decay_h, loss):
    """L is the mean loss of the logits plus the two penalties, which are equal; the size is stationary."""
    found = unconstrained_minimum(classes, each, decay_w, decay_h, loss)
    penalties = decay_w / 2 * found.classifier_norm**2, decay_h / 2 * found.feature_norm**2
    assert np.isclose(*penalties, atol=1e-14)

    def value(factor):
        fit = LOSSES[loss](factor * jnp.array(found.logits.T), jnp.eye(classes)).mean()
        return float(fit) + factor * sum(penalties)

    assert np.isclose(value(1.0), found.loss, rtol=1e-12)
    assert min(value(0.99), value(1.01)) >= found.loss - 1e-13


def test_strong_decay_leaves_nothing():
    found = unconstrained_minimum(4, 1, 0.5, 0.5)
    assert (
        found.classifier_norm == 0 and np.isnan(found.cosine) and np.isclose(found.loss, np.log(4))
    )
    assert unconstrained_minimum(4, 1, 0.5, 0.5, "squared").loss == 0.5


@pytest.mark.parametrize(
    "bad", [(1, 2, 0.1, 0.1), (3, 0, 0.1, 0.1), (3, 2, 0.0, 0.1), (3, 2, 0.1, float("nan"))]
)
def test_bad_input_is_one_sentence(bad):
    with pytest.raises(UserError, match="without decay there is no minimum|decay_h must be"):
        unconstrained_minimum(*bad)
    with pytest.raises(UserError, match="loss must be"):
        unconstrained_minimum(3, 2, 0.1, 0.1, "hinge")
