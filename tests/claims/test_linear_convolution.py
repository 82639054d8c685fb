"""The optimality conditions in the Fourier domain, against the program and against filters written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.implicit_bias.linear_convolution.claim import LAYERS, _residuals, _slack
from steepest.programs import fourier_margin, hard_margin, kkt_residuals


def data(seed, n=5, d=8):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), np.where(rng.random(n) < 0.5, -1.0, 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_solutions_are_stationary_in_their_own_norm_only(seed):
    x, y = data(seed)
    spectral = fourier_margin(x, y).direction
    plain = hard_margin(x, y).direction
    transform = np.fft.rfft(spectral)
    spectral = np.fft.irfft(
        np.where(np.abs(transform) > 1e-7, transform, 0), 8
    )  # what the solver left off the support
    batch = jnp.stack([jnp.asarray(x)] * 2), jnp.stack([jnp.asarray(y)] * 2)
    found = _residuals(np.stack([spectral, plain]), *batch)  # (directions, layers)
    own = LAYERS.tolist().index(2), LAYERS.tolist().index(1)
    assert found[0, own[0]] < 1e-4 < 0.05 < found[0, own[1]]
    assert found[1, own[1]] < 1e-6 < 0.05 < found[1, own[0]]


def test_one_layer_is_the_plain_problem():
    x, y = data(7)
    beta = np.random.default_rng(1).normal(size=8)
    beta = hard_margin(x, y).direction + 0.1 * beta / np.linalg.norm(beta)
    found = _residuals(beta[None], jnp.asarray(x)[None], jnp.asarray(y)[None])
    assert found[0, 0] == pytest.approx(
        kkt_residuals(lambda w: y * (x @ w), beta, 1).largest, rel=1e-8
    )


def test_lost_flows_have_no_residual():
    x, y = data(3)
    assert np.isnan(
        _residuals(np.full((1, 8), np.nan), jnp.asarray(x)[None], jnp.asarray(y)[None])
    ).all()


def test_slack_is_the_largest_dual_coefficient_off_the_support():
    """One wave: the solution is that wave, and its dual vanishes at every other frequency."""
    wave = np.cos(2 * np.pi * np.arange(8) / 8)[None]
    assert _slack(fourier_margin(wave, [1]), wave, np.array([1.0])) == pytest.approx(0, abs=1e-9)
    leaning = wave + 0.4 * np.cos(2 * np.pi * np.arange(8) * 2 / 8)[None]
    assert _slack(fourier_margin(leaning, [1]), leaning, np.array([1.0])) == pytest.approx(
        0.4, abs=1e-6
    )


def test_the_claim_draws_sets_with_slack():
    from steepest.claims.implicit_bias.linear_convolution.claim import LinearConvolution

    claim = LinearConvolution(seeds=3, slack=0.5)
    setting = claim.setting(jax.random.key(0))
    slacks = [
        _slack(*each) for each in zip(setting.programs, setting.x[:3], setting.y[:3], strict=True)
    ]
    assert max(slacks) <= 0.5
    assert all(hypothesis.holds for hypothesis in claim.hypotheses(setting))
