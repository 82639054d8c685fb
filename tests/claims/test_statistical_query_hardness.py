"""The signals by automatic differentiation and explicit parities, and elimination over two numbers."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.descent.statistical_query_hardness.claim import (
    StatisticalQueryHardness,
    _solve_mod_2,
)
from steepest.nn.data import hypercube


@pytest.mark.parametrize("ones", [0.5, 0.7])
def test_signals_are_those_of_automatic_differentiation(ones):
    n = 4
    claim = StatisticalQueryHardness(n=(2, n), neurons=3)
    setting = claim.setting(jax.random.key(0))
    weights = (setting.w[1], setting.b[1], setting.v[1])
    mean, levels = claim.signals(*weights, ones)
    x = hypercube(n)
    output = lambda w, b, v, x: jnp.maximum(x @ w.T + b, 0) @ v
    slopes = jax.vmap(jax.grad(output, (0, 1, 2)), (None, None, None, 0))(*weights, x)
    gradient = np.hstack([np.asarray(slope).reshape(len(x), -1) for slope in slopes])
    weight = np.where(x > 0, ones, 1 - ones).prod(1)
    energy = weight @ (gradient**2).sum(1)
    by_size = {k: [] for k in range(n + 1)}
    for size in range(n + 1):
        for chosen in itertools.combinations(range(n), size):
            signal = (weight * x[:, list(chosen)].prod(1)) @ gradient
            by_size[size].append((signal**2).sum() / energy)
    assert levels == pytest.approx([np.mean(by_size[k]) for k in range(n + 1)])
    assert mean == pytest.approx(
        np.mean([value for values in by_size.values() for value in values])
    )
    if ones == 0.5:
        assert mean == pytest.approx(2.0**-n)


def test_correlations_of_bumps_against_many_samples_of_another_kind():
    """With three bits each and none shared the two cosines are independent."""
    claim = StatisticalQueryHardness(n=(4, 6))
    predicted = claim.predict(claim.setting(jax.random.key(0)))["bump"]
    alone = np.exp(-(0.7**2) * 3 / 2)
    assert predicted[0] == pytest.approx(alone**2)
    x = np.linspace(-12, 12, 4001)
    normal = np.exp(-(x**2) / 6) / np.sqrt(6 * np.pi)  # of the sum of three
    assert predicted[3] == pytest.approx(np.trapezoid(np.cos(0.7 * x) ** 2 * normal, x))


def test_elimination():
    matrix = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1]])
    inside = np.array([1, 0, 1])
    assert _solve_mod_2(matrix, matrix @ inside % 2).tolist() == inside.tolist()
    assert _solve_mod_2(np.array([[1, 1], [1, 1]]), np.array([1, 1])) is None
