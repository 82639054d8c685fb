"""Levels of the kernel by explicit parities, signals by automatic differentiation, and elimination over two numbers."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.descent.statistical_query_hardness.experiment import signals, solve_mod_2
from steepest.claims.descent.statistical_query_hardness.theory import (
    bump_correlations,
    kernel,
    krawtchouk,
    levels,
)
from steepest.nn.data import hypercube


def parities(n):
    """All of them on all points, by the number of their bits."""
    x = hypercube(n)
    return {
        k: [x[:, list(chosen)].prod(1) for chosen in itertools.combinations(range(n), k)]
        for k in range(n + 1)
    }


def test_krawtchouk_polynomials_are_sums_of_parities():
    n = 5
    bits = (hypercube(n) < 0).sum(1)
    for k, every in parities(n).items():
        total = np.sum(every, axis=0)
        for h in range(n + 1):
            assert set(total[bits == h]) == {krawtchouk(n)[k, h]}


@pytest.mark.parametrize("biases", [0.0, 1.0])
def test_the_kernel_is_the_mean_of_gradients_of_random_neurons(biases):
    """Sampled with half a million neurons: within five standard errors at each distance."""
    n = 4
    rng = np.random.default_rng(0)
    draws = 500_000
    w = rng.normal(size=(draws, n)) * np.sqrt(2 / n)
    b = np.sqrt(biases) * rng.normal(size=draws)
    x = np.ones(n)
    for h in range(n + 1):
        other = np.where(np.arange(n) < h, -1.0, 1.0)
        near = w @ x + b
        far = w @ other + b
        both = (near > 0) & (far > 0)
        terms = np.maximum(near, 0) * np.maximum(far, 0) + both * (1 + x @ other)
        error = terms.std() / np.sqrt(draws)
        assert abs(terms.mean() - kernel(n, biases)[h]) < 5 * error + 1e-12


def test_levels_are_the_kernels_forms_in_parities():
    n = 4
    x = hypercube(n)
    distance = ((x[:, None] != x).sum(-1)).astype(int)
    gram = kernel(n)[distance]
    expected = [
        np.mean([chi @ gram @ chi / len(x) ** 2 for chi in every]) for every in parities(n).values()
    ]
    np.testing.assert_allclose(levels(n, kernel(n)), expected, rtol=1e-10)


@pytest.mark.parametrize("ones", [0.5, 0.7])
def test_signals_are_those_of_automatic_differentiation(ones):
    """One gradient at a time, one parity at a time."""
    n = 4
    key = jax.random.key(0)
    with jax.enable_x64(True):
        (row,) = signals(key, n, 3, 1, ones)
        (seed,) = jax.random.split(key, 1)
        for_w, for_b, for_v = jax.random.split(seed, 3)
        params = (
            jnp.sqrt(2 / n) * jax.random.normal(for_w, (3, n)),
            jax.random.normal(for_b, (3,)),
            jax.random.rademacher(for_v, (3,), float),
        )
        output = lambda params, x: jnp.maximum(params[0] @ x + params[1], 0) @ params[2] / 3**0.5
        x = hypercube(n)
        gradient = np.array(
            [
                np.concatenate([np.ravel(part) for part in jax.grad(output)(params, point)])
                for point in x
            ]
        )
    weight = np.where(x > 0, ones, 1 - ones).prod(1)
    expected = [
        np.mean([(((weight * chi) @ gradient) ** 2).sum() for chi in every])
        for every in parities(n).values()
    ]
    assert row == pytest.approx(expected)


def test_correlations_of_bumps_against_integrals():
    """With three bits each and none shared the two cosines are independent."""
    correlations = bump_correlations(3, 0.7)
    alone = np.exp(-(0.7**2) * 3 / 2)
    assert correlations[0] == pytest.approx(alone**2)
    x = np.linspace(-12, 12, 4001)
    normal = np.exp(-(x**2) / 6) / np.sqrt(6 * np.pi)  # of the sum of three
    assert correlations[3] == pytest.approx(np.trapezoid(np.cos(0.7 * x) ** 2 * normal, x))


def test_elimination():
    matrix = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1]])
    inside = np.array([1, 0, 1])
    assert solve_mod_2(matrix, matrix @ inside % 2).tolist() == inside.tolist()
    assert solve_mod_2(np.array([[1, 1], [1, 1]]), np.array([1, 1])) is None
