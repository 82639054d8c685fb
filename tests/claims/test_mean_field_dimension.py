"""The noise of labels by a sampled kernel and in closed form, slopes and starts by hand, and refused fields."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.features.mean_field_dimension.claim import noise_of_labels
from steepest.claims.features.mean_field_dimension.experiment import (
    examples_for,
    on_sphere,
    paired_start,
    slope_of_square,
)
from steepest.core.errors import UserError
from steepest.engine.run import ready

RNG = np.random.default_rng(0)


def test_slopes_by_hand_are_those_of_automatic_differentiation():
    w = RNG.normal(size=(3, 6, 4))
    x = RNG.normal(size=(3, 4))
    y = RNG.normal(size=3)
    square = lambda w, x, y: 6 * 0.5 * (jnp.tanh(w @ x).mean() - y) ** 2
    with jax.enable_x64(True):
        expected = jax.vmap(jax.grad(square))(w, x, y)
    np.testing.assert_allclose(slope_of_square(w, x, y), expected, rtol=1e-9, atol=1e-12)


def mean_products_of_slopes():
    """Return cosines u of two inputs, and E σ'(z)σ'(z') of tanh where z and z' correlate by u, by 40 × 40 nodes."""
    nodes, mass = np.polynomial.hermite_e.hermegauss(40)
    mass = mass / mass.sum()
    u = np.linspace(-1, 1, 201)
    correlated = u[:, None, None] * nodes[:, None] + np.sqrt(1 - u**2)[:, None, None] * nodes
    slope = lambda z: 1 / np.cosh(z) ** 2
    return u, np.einsum("i,j,i,uij->u", mass, mass, slope(nodes), slope(correlated))


@pytest.mark.parametrize("dimension", [3, 9])
def test_noise_of_labels_is_that_of_a_sampled_kernel(dimension):
    """tr K(1 − e^(−2Kt)) by eigenvalues of the kernel at 2000 examples, its means over neurons by 40 × 40 nodes."""
    x = on_sphere(RNG, (2000,), dimension).astype(float)
    u, slopes = mean_products_of_slopes()
    products = x @ x.T
    kernel = products * np.interp(products / dimension, u, slopes)
    values = np.linalg.eigvalsh(kernel / len(x))
    expected = [0.18 * (values * -np.expm1(-2 * values * t)).sum() for t in (0.5, 2.0)]
    # the largest eigenvalues of a sample are off by √(1/2000) each, their mean by the share of D in the sample
    np.testing.assert_allclose(
        noise_of_labels([dimension], (0.5, 2.0), 0.6)[0], expected, rtol=0.02
    )


def test_early_and_late_noise_in_closed_form():
    """Early it is τ² t · E K(x, x')², late τ²/2 · E K(x, x) = τ²/2 · D E σ'² but for degrees that are slow."""
    x = on_sphere(RNG, (400_000, 2), 5).astype(float)
    product = (x[:, 0] * x[:, 1]).sum(-1)
    u, slopes = mean_products_of_slopes()
    square = ((product * np.interp(product / 5, u, slopes)) ** 2).mean()
    early, late = noise_of_labels([5], (1e-4, 1e7), 1.0)[0]
    assert early == pytest.approx(1e-4 * square, rel=0.01)
    assert late == pytest.approx(2.5 * slopes[-1], rel=2e-3)


def test_paired_starts_put_out_nothing_and_examples_are_on_the_sphere():
    w = paired_start(RNG, 2, 6, 5)
    x = on_sphere(RNG, (2,), 5)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 5**0.5, rtol=1e-6)
    np.testing.assert_allclose(np.tanh((w @ x[:, :, None])[..., 0]).sum(1), 0, atol=1e-6)
    assert examples_for(8, 2.0) == 80


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"times": (1.0, 1.0)}, "times must increase"),
        ({"dimensions": (2, 4)}, "must be three or more"),
        ({"neurons": (5, 8)}, "even"),
    ],
)
def test_refused(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ready("mean-field-dimension", changes=fields)
