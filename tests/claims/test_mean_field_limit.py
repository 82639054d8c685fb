"""The limit of tanh networks by quadrature, descent against autodiff, and fields that make no experiment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.features.mean_field_limit.experiment import (
    NODES,
    TANH_STEP,
    descend_tanh,
    tanh_limit,
    wishart,
)
from steepest.core.errors import UserError
from steepest.engine.run import execute, ready

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))
Y = 0.5 * np.tanh(2 * X[:, 0])


def test_descent_is_that_of_autodiff():
    N = 5
    w = RNG.normal(size=(N, 3))
    risk = lambda w: 0.5 * jnp.mean((jnp.tanh(w @ X.T).mean(0) - Y) ** 2)
    after = w
    for _ in range(3):
        after = after - TANH_STEP * N * np.asarray(jax.grad(risk)(jnp.asarray(after)))
    net = descend_tanh(w, np.full(N, 1 / N), X, Y, 3)
    np.testing.assert_allclose(net.outputs, np.tanh(after @ X.T).mean(0), rtol=1e-10)
    assert net.movement == pytest.approx(np.sqrt(((after - w) ** 2).sum(1).mean()), rel=1e-10)


def test_quadrature_has_converged():
    rough, fine = (tanh_limit(X, Y, 100, nodes) for nodes in (NODES, 40))
    # networks of 512 neurons are about 0.01 off
    np.testing.assert_allclose(rough.outputs, fine.outputs, atol=1e-3)
    assert rough.movement == pytest.approx(fine.movement, rel=1e-3)


def test_the_limit_is_where_wide_networks_are():
    N = 4000
    outputs = descend_tanh(RNG.normal(size=(N, 3)), np.full(N, 1 / N), X, Y, 30).outputs
    np.testing.assert_allclose(outputs, tanh_limit(X, Y, 30).outputs, atol=4 / np.sqrt(N))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"diagonal": [1.0] * 7}, "--diagonal takes at most 6 numbers"),
        ({"horizon": 1e3}, "more than 1000000 steps"),
        ({"rates": [0.0]}, "rates must be at least"),
    ],
)
def test_refused(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ready("mean-field-limit", changes=fields)


@pytest.mark.parametrize("fields", [{"widths": (3, 5, 9)}, {"rates": (0.1, 0.05, 0.02)}])
def test_out_of_range(fields):
    tiny = load("mean-field-limit").tiny
    asked = ready("mean-field-limit", "tiny", changes={**tiny, **fields})
    assert execute(asked).verdict == "out-of-range"


def test_starts_of_the_diagram_have_the_moments_of_sums_over_neurons():
    """E W = N I, var W_ij = N (1 + δ_ij), E W₁₁W₂₂ = N², and the mean determinant: z ≤ 4."""
    N = 12
    drawn = jax.vmap(lambda key: wishart(key, N, 3))(jax.random.split(jax.random.key(0), 4000))
    drawn = np.asarray(drawn)
    z = lambda values, mean: (values.mean(0) - mean) / (values.std(0) / np.sqrt(len(values)))
    assert np.abs(z(drawn, N * np.eye(3))).max() < 4
    assert np.abs(z((drawn - N * np.eye(3)) ** 2, N * (1 + np.eye(3)))).max() < 4
    assert abs(z(drawn[:, 0, 0] * drawn[:, 1, 1], N**2)) < 4
    # det W is a product of independent χ² of N, N − 1 and N − 2 degrees
    assert abs(z(np.linalg.det(drawn), N * (N - 1) * (N - 2))) < 4
