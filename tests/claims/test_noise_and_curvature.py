"""The comparison of two matrices, on matrices that are known."""

import jax
import numpy as np

from steepest.claims.noise.noise_and_curvature.claim import ALIKE, APART, NoiseAndCurvature
from steepest.claims.noise.noise_and_curvature.experiment import along, compare, compare_labels
from steepest.nn.losses import squared


def test_matrices_give_the_gradients_of_the_examples():
    claim = NoiseAndCurvature(width=3, inputs=4, examples=100)
    setting = claim.setting(jax.random.key(0))
    params = claim.net.init(jax.random.key(1))
    hessian, jacobian, residuals = jax.jit(claim.matrices)(setting, params)
    flat, unravel = jax.flatten_util.ravel_pytree(params)
    one = lambda flat: squared(claim.net.apply(unravel(flat), setting.x[7:8]), setting.y[7:8])[0]
    assert np.allclose(residuals[7] @ jacobian[7], jax.grad(one)(flat))
    risk = lambda flat: squared(claim.net.apply(unravel(flat), setting.x), setting.y).mean()
    assert np.allclose(hessian, jax.jit(jax.hessian(risk))(flat), atol=1e-6)
    assert hessian.shape == (claim.parameters, claim.parameters) == (flat.size, flat.size)


def test_directions_of_the_output_layer():
    """Along a sum all outputs move alike, along a difference only two, against each other."""
    claim = NoiseAndCurvature(width=3, inputs=4, examples=100)
    setting = claim.setting(jax.random.key(0))
    params = claim.net.init(jax.random.key(1))
    _, jacobian, _ = jax.jit(claim.matrices)(setting, params)
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


def test_residuals_that_know_the_jacobian_have_another_trace():
    """Outputs that move 2, 1 and 1 times as much: along the first it is 3 · 4/(4 + 1 + 1), and white ones have one."""
    rng = np.random.default_rng(2)
    features = rng.normal(size=(4000, 2))
    jacobian = np.einsum("ab,nf->nabf", np.diag([2.0, 1, 1]), features).reshape(4000, 3, -1)
    hessian = np.einsum("nkp,nkq->pq", jacobian, jacobian) / 4000
    sums = np.kron(np.full((3, 1), 3**-0.5), np.eye(2))
    residuals = rng.normal(size=(4000, 3))
    compared = compare(hessian, jacobian, residuals, sums, sums, rng)
    assert abs(compared["aligned"] - 2) < 0.1
    assert abs(compared["trace"] - 1) < 0.05


def test_bartlett_s_identity_by_all_labels():
    """Gradients and Hessians of every label by automatic differentiation, weighted as the network draws them."""
    claim = NoiseAndCurvature(width=3, inputs=4, examples=60)
    setting = claim.setting(jax.random.key(0))
    params = claim.net.init(jax.random.key(1))
    flat, unravel = jax.flatten_util.ravel_pytree(params)
    frame = np.linalg.qr(np.random.default_rng(0).standard_normal((flat.size, 5)))[0]
    hessian, jacobian, chances = jax.jit(claim.likelihood)(setting, params, frame, 4.0)
    assert np.allclose(chances.sum(1), 1) and chances.max() > 0.2

    def losses(flat):
        return -jax.nn.log_softmax(4 * claim.net.apply(unravel(flat), setting.x))

    mean = lambda flat: (np.asarray(chances) * losses(flat)).sum() / 60
    curvature = frame.T @ np.asarray(jax.jit(jax.hessian(mean))(flat)) @ frame
    gradients = np.asarray(jax.jit(jax.jacrev(losses))(flat)) @ frame  # of every label
    moment = np.einsum("nk,nkp,nkq->pq", chances, gradients, gradients) / 60
    assert np.allclose(moment, hessian, atol=1e-5)
    assert np.allclose(curvature, hessian, atol=1e-5)
    for label in range(10):
        at_label = (np.asarray(chances) - np.eye(10)[label])[:, None] @ np.asarray(jacobian)
        assert np.allclose(gradients[:, label], at_label[:, 0], atol=1e-5)


def test_labels_of_the_model_come_near_the_hessian_and_others_do_not():
    """A linear model whose Hessian is known; one label of each kind is missed by far."""
    rng = np.random.default_rng(1)
    features = rng.standard_normal((3000, 4))
    jacobian = np.einsum("kc,nd->nkcd", np.eye(3), features).reshape(3000, 3, 12)
    logits = 2 * features @ rng.standard_normal((4, 3))
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    spread = np.einsum("nk,kl->nkl", chances, np.eye(3)) - chances[:, :, None] * chances[:, None]
    hessian = np.einsum("nkp,nkl,nlq->pq", jacobian, spread, jacobian) / 3000
    best = np.eye(3)[chances.argmax(1)]
    compared = compare_labels(hessian, jacobian, chances, best, (1, 10, 100), rng)
    slope = np.polyfit(np.log([1, 10, 100]), np.log(compared["gap"]), 1)[0]
    assert abs(slope + 1) < 0.2
    assert abs(compared["ratio"] - 1) < 0.01
    assert compared["gap"][-1] < 1e-3 < compared["even_gap"][-1]
    assert abs(compared["data_ratio"] - 1) > 0.1
