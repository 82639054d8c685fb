"""Attention over √d: against integrals at two positions, the derivative of softmax, and finite networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import gram, gram_over_heads, sampled_gram
from steepest.kernels.wide._heads import _through_softmax
from steepest.nn.layers import (
    add,
    attention,
    conv,
    dense,
    global_pool,
    identity,
    layer_norm,
    network,
    serial,
)

C_W = 1.4
C_B = 0.1
SHARPNESS = 1.7
OPTIONS = {"parameterized": "ntk", "c_w": C_W, "c_b": C_B}


def heads(width=8, count=8, key=8, sharpness=SHARPNESS):
    return attention(
        width, heads=count, key=key, scale="1/sqrt(d)", tied=False, sharpness=sharpness
    )


def images(n=3, shape=(4, 3), seed=0):
    return np.random.default_rng(seed).normal(size=(n, *shape))


def sigmoids(variances, covariance, change):
    """E change(δ) change(δ') of a Gaussian pair, by a product of two Gauss–Hermite rules."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = np.outer(weights, weights) / (2 * np.pi)
    first, second = np.sqrt(variances)
    rho = np.clip(covariance / (first * second), -1, 1)
    u = first * nodes[:, None]
    v = second * (rho * nodes[:, None] + np.sqrt(1 - rho**2) * nodes[None])
    return (weights * change(u) * change(v)).sum()


def at_two_positions(x, y):
    """Both kernels of ``dense``, attention, global pooling, ``dense``: softmax of two is a sigmoid of one Gaussian."""
    start = {}
    for name, (a, b) in {"xx": (x, x), "xy": (x, y), "yy": (y, y)}.items():
        product = a @ b.T / x.shape[1]
        start[name] = C_B + C_W * product, 1 + C_W * product
    k, theta = start["xy"]
    value_k = C_B + C_W * k
    value_theta = 1 + C_W * k + C_W * theta
    query_k = {name: C_W * both[0] for name, both in start.items()}
    query_theta = C_W * k + C_W * theta
    d = np.array([1, -1])
    sigmoid = lambda z: 1 / (1 + np.exp(-z))
    bump = lambda z: sigmoid(z) * (1 - sigmoid(z))
    mixed_k = np.zeros((2, 2))
    mixed_theta = np.zeros((2, 2))
    for p, q in np.ndindex(2, 2):
        # the difference of the logits of the two keys, as query p and as query q see it
        scale = lambda name, a, b: SHARPNESS**2 * query_k[name][a, b] * (d @ query_k[name] @ d)
        law = (scale("xx", p, p), scale("yy", q, q)), scale("xy", p, q)
        both = sigmoids(*law, sigmoid)
        joint = np.array([[both, 0.5 - both], [0.5 - both, both]])
        slope = sigmoids(*law, bump) * SHARPNESS**2 * (d @ value_k @ d)
        mixed_k[p, q] = (joint * value_k).sum()
        mixed_theta[p, q] = (joint * value_theta).sum() + slope * (
            query_theta[p, q] * (d @ query_k["xy"] @ d)
            + query_k["xy"][p, q] * (d @ query_theta @ d)
        )
    output_k = (C_B + C_W * mixed_k).mean()
    output_theta = (1 + C_W * mixed_k + C_W * mixed_theta).mean()
    return C_B + C_W * output_k, 1 + C_W * output_k + C_W * output_theta


def test_two_positions_by_quadrature():
    """Within four standard errors, which are below a hundredth."""
    x = images(2, (2, 3))
    net = network(dense(8), heads(), global_pool(), dense(1), shape=(2, 3), **OPTIONS)
    drawn = gram_over_heads(net.limit(), x, jax.random.key(0), heads=200, count=40)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        k, theta = at_two_positions(x[i], x[j])
        assert abs(drawn.nngp[i, j] - k) <= 4 * drawn.nngp_error[i, j]
        assert abs(drawn.ntk[i, j] - theta) <= 4 * drawn.ntk_error[i, j]
    assert (drawn.nngp_error < 0.01 * drawn.nngp.max()).all()
    assert (drawn.ntk_error < 0.01 * drawn.ntk.max()).all()


def test_the_derivative_of_softmax():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 3, 4))
    values = rng.normal(size=(2, 2, 4, 4))
    of_logits = rng.normal(size=(2, 2, 4, 4))
    with jax.enable_x64(True):
        weights = jax.nn.softmax(jnp.asarray(logits))
        ours = _through_softmax(weights, jnp.asarray(values), jnp.asarray(of_logits))
        slopes = np.asarray(jax.vmap(jax.vmap(jax.jacobian(jax.nn.softmax)))(jnp.asarray(logits)))
    by_hand = np.einsum("ipar,ijab,ijrs,jqbs->ijpq", slopes, values, of_logits, slopes)
    np.testing.assert_allclose(ours, by_hand, atol=1e-12)


ENDS = [global_pool(), dense(4)]
FINITE = {
    "attention alone": lambda of_attention: [dense(64), of_attention, *ENDS],
    "an activation behind": lambda of_attention: [conv(64), "relu", of_attention, "relu", *ENDS],
    "residual": lambda of_attention: [
        dense(64),
        add(identity, serial(layer_norm(), of_attention)),
        *ENDS,
    ],
}


@pytest.mark.parametrize("key", [16, 64])
@pytest.mark.parametrize("name", FINITE)
def test_finite_networks_have_these_kernels_in_the_mean(name, key):
    """Within four standard errors of both, some hundredths for 64 channels and 0.5/d for the width d of keys."""
    net = network(*FINITE[name](heads(64, key=key)), shape=(4, 3), **OPTIONS)
    x = images(2)
    finite = sampled_gram(net, jnp.asarray(x), jax.random.key(0), count=80)
    drawn = gram_over_heads(net.limit(), x, jax.random.key(1), heads=200, count=20)
    for mean, deviation, other, spread in (
        (finite.nngp, finite.nngp_error, drawn.nngp, drawn.nngp_error),
        (finite.ntk, finite.ntk_error, drawn.ntk, drawn.ntk_error),
    ):
        size = np.sqrt(np.outer(np.diag(other), np.diag(other)))
        allowed = 4 * np.hypot(deviation, spread) + (0.03 + 0.5 / key) * size
        assert (np.abs(mean - other) <= allowed).all(), (mean, other)


def test_blunt_heads_are_an_average_over_positions():
    """All logits are zero then, as those of untied attention over d; with the same nodes elsewhere."""
    x = images()
    exists = np.array([[1, 1, 1, 1], [1, 1, 0, 1], [0, 1, 1, 0]], bool)

    def layers(of_attention):
        block = add(identity, serial(layer_norm(), of_attention))
        return [
            conv(8),
            "tanh",
            dense(8),
            block,
            "relu",
            dense(8),
            attention(8, heads=2, key=4),
            *ENDS,
        ]

    blunt = network(*layers(heads(sharpness=1e-7)), shape=(4, 3), **OPTIONS)
    uniform = network(*layers(attention(8, heads=2, key=4, tied=False)), shape=(4, 3), **OPTIONS)
    for mask in (None, exists):
        drawn = gram_over_heads(blunt.limit(), x, jax.random.key(0), heads=2, count=2, mask=mask)
        exact = gram(uniform.limit(), x, mask=mask)
        np.testing.assert_allclose(drawn.nngp, exact.nngp, rtol=1e-6)
        np.testing.assert_allclose(drawn.ntk, exact.ntk, rtol=1e-5)


def test_a_sequence_that_is_filled_up_is_the_shorter_sequence():
    """Two estimates by other draws, within four standard errors."""
    layers = [dense(8), heads(), "relu", *ENDS]
    x = images(2, (6, 3))
    mask = np.ones((2, 6), bool)
    mask[:, 4:] = False
    options = {"heads": 50, "count": 16}
    long = network(*layers, shape=(6, 3), **OPTIONS).limit()
    short = network(*layers, shape=(4, 3), **OPTIONS).limit()
    filled = gram_over_heads(long, x, jax.random.key(0), mask=mask, **options)
    alone = gram_over_heads(short, x[:, :4], jax.random.key(1), **options)
    for k, error in ((0, 2), (1, 3)):
        allowed = 4 * np.hypot(filled[error], alone[error])
        assert (np.abs(filled[k] - alone[k]) <= allowed).all()


def test_matrices_have_no_negative_eigenvalues_and_draws_repeat():
    x = images(6)
    limit = network(dense(8), heads(), heads(), *ENDS, shape=(4, 3), **OPTIONS).limit()
    drawn = gram_over_heads(limit, x, jax.random.key(0), heads=4, count=2)
    again = gram_over_heads(limit, x, jax.random.key(0), heads=4, count=2)
    for kernel, repeated in zip(drawn[:2], again[:2], strict=True):
        np.testing.assert_array_equal(kernel, repeated)
        values = np.linalg.eigvalsh(kernel)
        assert values[0] >= -1e-12 * values[-1]


def test_what_cannot_be_drawn_gets_a_sentence():
    limit = network(dense(8), heads(), *ENDS, shape=(4, 3), **OPTIONS).limit()
    x = images()
    with pytest.raises(UserError, match=r"node 4.*mean over heads; gram_over_heads"):
        gram(limit, x)
    with pytest.raises(UserError, match="take gram"):
        gram_over_heads(network(dense(8), *ENDS, shape=(4, 3)).limit(), x, jax.random.key(0))
    with pytest.raises(UserError, match="count from 2 on, got 1"):
        gram_over_heads(limit, x, jax.random.key(0), count=1)
    with pytest.raises(UserError, match="positions of its own"):
        still = network(dense(8), heads(), shape=(4, 3), **OPTIONS).limit()
        gram_over_heads(still, x, jax.random.key(0))
