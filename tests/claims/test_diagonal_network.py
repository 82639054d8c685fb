"""The small end of diagonal-network: vertices by enumeration, and what is left beside the support."""

import jax
import numpy as np

from steepest.claims.implicit_bias.diagonal_network.claim import DiagonalNetwork
from steepest.claims.implicit_bias.diagonal_network.experiment import predict_ends
from steepest.programs import l1_vertex

ALPHA = 1e-8


def test_the_small_end_is_the_vertex_of_least_l1_norm_and_weights_of_the_order_that_theory_leaves():
    """β_i = 2α²θ_i² sinh⟨x_i, ν⟩ off the support S, with X_Sᵀν = asinh(β_S/2α²θ_S²), as on it."""
    claim = DiagonalNetwork(alphas=(ALPHA,), n=3, dimension=7, seeds=6)
    setting = claim.setting(jax.random.key(2))
    predicted = predict_ends(setting, claim.alphas)
    excesses = []
    for x, y, shape, ends in zip(*map(np.asarray, (*setting, predicted["beta"])), strict=True):
        beta = ends[0]
        vertex, dual = l1_vertex(x, y)
        support = vertex != 0
        scale = 2 * (ALPHA * shape) ** 2
        multipliers = np.linalg.solve(x[:, support].T, np.arcsinh(beta[support] / scale[support]))
        off = scale * np.sinh(x.T @ multipliers)
        np.testing.assert_allclose(beta[~support], off[~support], rtol=1e-6)
        excess = np.abs(beta).sum() / np.abs(vertex).sum() - 1
        excesses.append(excess)
        slack = 1 - np.abs(dual[~support]).max()
        if slack > 0.2:  # there the distance is α^{2·slack} and a factor that the shape decides
            assert np.abs(beta - vertex).max() < 1e3 * ALPHA ** (2 * slack)
    assert min(excesses) > -1e-9
    assert max(excesses) < 1 / np.log(ALPHA**-2)
    assert (np.array(excesses) <= np.asarray(predicted["room"]) + 1e-9).all()


def test_weights_that_forget_a_factor_two_are_another_interpolant():
    """The scale of lemma 3 as printed, α²θ₀²/2, moves the program at α = ½ by more than flow and program differ."""
    claim = DiagonalNetwork(alphas=(0.5, 0.5 / np.sqrt(2)), n=3, dimension=7, seeds=3)
    ends = predict_ends(claim.setting(jax.random.key(0)), claim.alphas)["beta"]
    assert (np.linalg.norm(ends[:, 0] - ends[:, 1], axis=-1) > 1e-3).all()
