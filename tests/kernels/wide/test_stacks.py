"""Positions of branches side by side: blocks of pairs, kernels of a peer, and finite networks."""

import jax
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import gram, gram_positions, sampled_gram
from steepest.nn.layers import (
    add,
    concatenate,
    conv,
    dense,
    global_pool,
    identity,
    network,
    positional_embedding,
    serial,
)
from tests.kernels.wide import peer

SHAPE = (4, 3, 2)
OPTIONS = {"parameterized": "ntk", "c_w": 1.4, "c_b": 0.1}
BRANCHES = (conv(4), serial(conv(4), "erf", conv(4, (2, 1), padding="none")))


def holes(n):
    """Masks in which some positions are missing, of the last input none."""
    mask = np.random.default_rng(1).random((n, *SHAPE[:-1])) > 0.3
    mask[:2, :2, 0] = True  # windows without padding need whole positions
    mask[-1] = True
    return mask


def before(branch):
    return network(conv(4), "erf", branch, shape=SHAPE, **OPTIONS)


@pytest.mark.parametrize("whole", [False, True])
def test_blocks_are_those_of_the_branches(whole):
    x = peer.inputs(SHAPE, 3)
    given = {} if whole else {"mask": holes(3)}
    both = gram_positions(before(concatenate(*BRANCHES, space=-2)).limit(), x, **given)
    assert both.nngp.shape == (3, 3, 7, 3, 7, 3)
    for branch, block in zip(BRANCHES, (slice(0, 4), slice(4, 7)), strict=True):
        alone = gram_positions(before(branch).limit(), x, **given)
        inside = (slice(None), slice(None), block, slice(None), block)
        np.testing.assert_allclose(both.nngp[inside], alone.nngp, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(both.ntk[inside], alone.ntk, rtol=1e-12, atol=1e-15)
    assert not both.nngp[:, :, :4, :, 4:].any()
    assert not both.ntk[:, :, 4:, :, :4].any()


def test_kernels_are_those_of_the_peer():
    shape = (6, 5, 2)
    options = {"shape": shape, "parameterized": "ntk", "c_w": peer.C_W, "bias": False}
    stack = concatenate(conv(4), conv(4, 1), space=0)
    layers = (conv(4), "erf", stack, "erf", conv(4), "erf", global_pool(), dense(1))
    peer.agree("stack", gram(network(*layers, **options).limit(), peer.inputs(shape)))


def test_finite_networks_have_these_kernels_in_the_mean():
    branches = (conv(60), identity)
    layers = (conv(60), concatenate(*branches, space=0), "relu", conv(60), "relu", global_pool())
    net = network(*layers, dense(4), shape=SHAPE, **OPTIONS)
    x = peer.inputs(SHAPE)
    mask = holes(3)[:2]
    drawn = sampled_gram(net, x, jax.random.key(0), mask=mask, count=60)
    limit = gram(net.limit(), x, mask=mask)
    for mean, deviation, exact in (
        (drawn.nngp, drawn.nngp_error, limit.nngp),
        (drawn.ntk, drawn.ntk_error, limit.ntk),
    ):
        size = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
        assert (np.abs(mean - exact) <= 4 * deviation + 0.03 * size).all(), (mean, exact)


def test_embeddings_reach_a_branch():
    """What branches share before is no bar: weights behind it are their own. Embeddings count at equal positions."""
    stack = concatenate(serial(positional_embedding(0.3), conv(4)), conv(4), space=1)
    both = gram_positions(before(serial(conv(4), stack)).limit(), peer.inputs(SHAPE, 2))
    assert both.nngp.shape == (2, 2, 4, 6, 4, 6)
    more = both.nngp[0, 1, :, :3, :, :3] - both.nngp[0, 1, :, 3:, :, 3:]
    more = more.reshape(12, 12)
    # of nine taps at each position so many are inside of 4 × 3 positions
    inside = np.outer([2, 3, 3, 2], [2, 3, 2]).ravel()
    np.testing.assert_allclose(more, np.diag(1.4 * 0.3 * inside / 9), atol=1e-12)


def test_what_is_refused():
    with pytest.raises(UserError):
        before(concatenate(conv(4), conv(4), space=2))
    with pytest.raises(UserError):
        before(concatenate(conv(4), conv(5), space=0))
    with pytest.raises(UserError, match="sampled_gram"):
        before(concatenate("relu", conv(4), space=0)).limit()
    with pytest.raises(UserError, match="sampled_gram"):
        before(serial(conv(4), concatenate(identity, identity, space=0))).limit()
    residual = add(identity, conv(4))  # it passes on what the other branch is
    with pytest.raises(UserError, match="sampled_gram"):
        before(serial(conv(4), concatenate(residual, identity, space=0))).limit()
