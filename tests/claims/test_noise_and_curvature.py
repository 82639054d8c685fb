"""The comparison of two matrices, on matrices that are known."""

import jax
import numpy as np

from steepest.claims.noise.noise_and_curvature.claim import ALIKE, APART, NoiseAndCurvature
from steepest.claims.noise.noise_and_curvature.experiment import along, compare
from steepest.nn.losses import squared


def test_matrices_give_the_gradients_of_the_examples():
    claim = NoiseAndCurvature(width=3, inputs=4, examples=100)
    setting = claim.setting(jax.random.key(0))
    params = claim.net.init(jax.random.key(1))
    hessian, jacobian, residuals = claim.matrices(setting, params)
    flat, unravel = jax.flatten_util.ravel_pytree(params)
    one = lambda flat: squared(claim.net.apply(unravel(flat), setting.x[7:8]), setting.y[7:8])[0]
    assert np.allclose(residuals[7] @ jacobian[7], jax.grad(one)(flat))
    assert hessian.shape == (claim.parameters, claim.parameters) == (flat.size, flat.size)


def test_directions_of_the_output_layer():
    """Along a sum all outputs move alike, along a difference only two, against each other."""
    claim = NoiseAndCurvature(width=3, inputs=4, examples=100)
    setting = claim.setting(jax.random.key(0))
    params = claim.net.init(jax.random.key(1))
    _, jacobian, _ = claim.matrices(setting, params)
    sums = along(params, ALIKE)
    assert np.allclose(sums.T @ sums, np.eye(4))
    moved = np.asarray(jacobian) @ sums
    assert np.allclose(moved, moved[:, :1])
    apart = np.asarray(jacobian) @ along(params, APART)
    assert np.allclose(apart[:, 0], -apart[:, 1])
    assert np.allclose(apart[:, 2:], 0)


def test_white_residuals_have_a_multiple_of_the_hessian():
    """With H = JᵀJ and white residuals independent of J all shares are one; without their sum a direction is silent."""
    rng = np.random.default_rng(0)
    classes = 3
    features = rng.normal(size=(4000, 2))
    jacobian = np.einsum("ab,nf->nabf", np.eye(classes), features).reshape(4000, classes, -1)
    hessian = np.einsum("nkp,nkq->pq", jacobian, jacobian) / 4000
    sums = np.kron(np.full((classes, 1), classes**-0.5), np.eye(2))
    differences = np.kron(np.array([[0.5**0.5], [-(0.5**0.5)], [0]]), np.eye(2))
    residuals = rng.normal(size=(4000, classes))
    white = compare(hessian, jacobian, residuals, sums, differences, rng)
    assert abs(white["trace"] - 1) < 0.05
    assert white["cosine"] > 0.99
    assert abs(white["silent"] - 1) < 0.1
    balanced = residuals - residuals.mean(1, keepdims=True)
    silent = compare(hessian, jacobian, balanced, sums, differences, rng)
    assert abs(silent["silent"]) < 1e-12
    assert (
        abs(silent["contrast"] - 1.5) < 0.1
    )  # the mean square is 2/3 of what the difference keeps
    assert silent["cosine"] < 0.95
