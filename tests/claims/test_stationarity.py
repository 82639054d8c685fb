"""Conditions of ℓ_{2/L}: pulls made of the law, the network's own filters by autodiff, and losses of two tails."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

from steepest.claims.implicit_bias._stationarity import kkt_residual, slope_on_support
from steepest.claims.implicit_bias._tails import log_loss, multipliers, off_margin
from steepest.nn.networks import convolved
from steepest.programs import kkt_from_gradients

ORDERS = xarray.DataArray([1.0, 2 / 3, 1 / 2], dims="depth")
DIMS = ("depth", "draw", "unknown")


@pytest.mark.parametrize("phase", [1.0, np.exp(1j * np.array([0.3, -2.0, 1.0]))])
def test_pulls_of_the_law_have_no_residual_and_its_exponent(phase):
    """Those of another order have one; of complex coordinates the pull has the sign of the conjugate's conjugate."""
    size = np.array([[0.2, 1.0, 3.0]] * 3)[:, None]
    pull = 7.0 * size ** (ORDERS.values[:, None, None] - 1)
    arrays = [xarray.DataArray(values * phase, dims=DIMS) for values in (size, pull)]
    off = xarray.zeros_like(arrays[0].isel(unknown=0).real)
    of_the_law = kkt_residual(ORDERS, *arrays, off, "unknown")
    np.testing.assert_allclose(of_the_law, 0.0, atol=1e-7)
    assert (kkt_residual(ORDERS, *arrays, off + 0.3, "unknown") == 0.3).all()
    assert (kkt_residual(ORDERS[::-1], *arrays, off, "unknown")[[0, 2]] > 0.1).all()
    slope = slope_on_support(*arrays, "unknown")
    np.testing.assert_allclose(slope[:, 0], ORDERS - 1, atol=1e-12)
    alone = arrays[0].where([True, False, False], 1e-9)
    assert slope_on_support(alone, arrays[1], "unknown").isnull().all()


def test_a_pull_of_another_phase_is_not_stationary():
    weights = xarray.DataArray(np.ones((3, 1, 2)) * [1.0, 1j], dims=DIMS)
    pull = xarray.DataArray(np.ones((3, 1, 2)) * [1.0, 1.0], dims=DIMS)
    off = xarray.zeros_like(weights.isel(unknown=0).real)
    np.testing.assert_allclose(
        kkt_residual(ORDERS, weights, pull, off, "unknown"), np.sqrt(3) / 2, atol=1e-12
    )


@pytest.mark.parametrize("layers", [2, 3])
def test_the_residual_is_that_of_filters_of_equal_moduli(layers):
    """Filters are written out, and their gradients taken by autodiff."""
    rng = np.random.default_rng(layers)
    x = rng.normal(size=(5, 8))
    y = np.where(rng.random(5) < 0.5, -1.0, 1.0)
    beta = np.linalg.lstsq(x, y)[0] + 0.01 * rng.normal(size=8)
    transform = np.fft.rfft(beta, norm="ortho")
    even = np.abs(transform) ** (1 / layers)
    spectra = [even * np.exp(1j * np.angle(transform)), *[even] * (layers - 1)]
    filters = np.concatenate([np.fft.irfft(s, 8, norm="ortho") for s in spectra])
    with jax.enable_x64(True):
        margins = lambda w: y * (x @ convolved(jnp.reshape(w, (layers, -1))))
        u = margins(filters)
        slopes = jax.jacrev(margins)(jnp.asarray(filters))
    np.testing.assert_allclose(u, y * (x @ beta), atol=1e-10)
    direct = kkt_from_gradients(filters, np.asarray(u), np.asarray(slopes), layers)
    q = np.asarray(direct.multipliers)
    pull = np.fft.fft((q * y) @ x, norm="ortho")
    as_array = lambda values: xarray.DataArray(values[None], dims=("draw", "unknown"))
    residual = kkt_residual(
        xarray.DataArray(2 / layers),
        as_array(np.fft.fft(beta, norm="ortho")),
        as_array(pull),
        xarray.DataArray([0.0], dims="draw"),
        "unknown",
    )
    assert residual.item() == pytest.approx(direct.stationarity, rel=1e-5)


def test_losses_are_their_logarithms():
    u = np.array([0.5, 3.0, 40.0])
    assert float(log_loss(u, False)) == pytest.approx(np.log(np.exp(-u).sum()))
    assert float(log_loss(u, True)) == pytest.approx(np.log((1 / (1 + u)).sum()))
    slope = jax.grad(log_loss)(np.array([-1.5, 3.0]), False)
    assert np.isfinite(slope).all()


def test_multipliers_and_the_weight_off_the_margin():
    u = np.array([1.0, 3.0])
    q = multipliers(u, False)
    np.testing.assert_allclose(q, np.exp(-u) / np.exp(-u).sum(), rtol=1e-6)
    np.testing.assert_allclose(multipliers(u, True), np.array([0.8, 0.2]), rtol=1e-6)
    assert float(off_margin(u, np.array([0.8, 0.2]))) == pytest.approx(0.4)
