"""Networks of exponentials: their kernel by quadrature, networks by explicit matrices, and shares by plain sums."""

import itertools

import numpy as np
import pytest

from steepest.claims.signals._three_inputs import frequencies, matrix_of, three_images
from steepest.claims.signals.limit_without_moments.claim import exponential_kernel
from steepest.claims.signals.limit_without_moments.experiment import (
    C_W,
    draw_wide,
    largest_shares,
    of_variance,
)

INPUTS = three_images()


def test_the_kernel_of_exponentials_by_quadrature():
    """E exp(z_a + z_b) by 40 × 40 nodes, layer by layer."""
    inputs = of_variance(INPUTS, 0.8)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    kernel = C_W * inputs @ inputs.T / 64
    assert kernel.diagonal().max() == pytest.approx(0.8)
    for _ in range(2):
        after = np.empty((3, 3))
        for a, b in itertools.product(range(3), repeat=2):
            if a == b:
                z = np.sqrt(kernel[a, a]) * nodes
                after[a, a] = C_W * weights @ np.exp(z) ** 2
                continue
            root = np.linalg.cholesky(kernel[np.ix_([a, b], [a, b])])
            first = root[0, 0] * nodes[:, None]
            second = root[1, 0] * nodes[:, None] + root[1, 1] * nodes
            after[a, b] = C_W * weights @ (np.exp(first) * np.exp(second)) @ weights
        kernel = after
    deep = matrix_of(exponential_kernel(inputs, 2))
    np.testing.assert_allclose(deep, kernel, rtol=1e-6)
    bare = C_W * np.exp(C_W * inputs @ inputs.T / 64)
    shallow = matrix_of(exponential_kernel(inputs, 1, bare=True))
    np.testing.assert_allclose(shallow, bare)


def test_wide_draws_are_those_of_explicit_networks():
    """With neurons |z|, and outputs by explicit matrices: 4000 networks of 5 neurons a layer."""
    rng = np.random.default_rng(4)
    inputs = of_variance(INPUTS, 0.8)
    u = frequencies(C_W**2 * np.ones(6))
    cosine, _ = draw_wide(lambda z: np.log(np.abs(z)), inputs, u, (10, 400, 5), rng)
    scale = np.sqrt(C_W / 5)
    z = np.sqrt(C_W / 64) * inputs @ rng.standard_normal((4000, 64, 5))
    z = scale * np.abs(z) @ rng.standard_normal((4000, 5, 5))
    z = scale * np.abs(z) @ rng.standard_normal((4000, 5, 1))
    cosines = np.cos(z[..., 0] @ u.T)
    errors = np.hypot(cosines.std(0) / 4000**0.5, cosine.std(0) / 10**0.5)
    assert (np.abs(cosines.mean(0) - cosine.mean(0)) < 4 * errors).all()
    assert cosine.mean() < 0.9


def test_shares_are_those_of_sums():
    """At a small variance nothing overflows: five networks by plain sums, and one alone."""
    deep, shallow = largest_shares(0.2, (3,), 4, 1, np.random.default_rng(0))
    np.testing.assert_allclose([deep, shallow], 1.0)
    deep, shallow = largest_shares(0.2, (3,), 1, 5, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    first = C_W * np.exp(0.2**0.5 * rng.standard_normal((5, 3))) ** 2
    variance = first.mean(1)
    second = C_W * (np.exp(variance[:, None] ** 0.5 * rng.standard_normal((5, 3))) ** 2).mean(1)
    assert shallow[0, 0] == pytest.approx(variance.max() / variance.sum())
    assert deep[0, 0] == pytest.approx(second.max() / second.sum())
