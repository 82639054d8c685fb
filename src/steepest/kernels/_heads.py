"""Gram matrices of networks with attention over √d, averaged over draws of their heads."""

import numpy as np
from jaxtyping import Bool, Float

from steepest.core.errors import UserError
from steepest.kernels._arguments import check_key, check_limit_given
from steepest.kernels._gram import checked_inputs
from steepest.kernels.finite._sampled import SampledGram
from steepest.kernels.wide import over_heads
from steepest.nn.layers import WideLimit
from steepest.nn.layers._beside import NOTHING, Beside
from steepest.nn.layers._nodes import AttendAtRandom
from steepest.nn.networks import Limit
from steepest.nn.types import Key


def gram_over_heads(
    limit: Limit | WideLimit,
    x: Float[np.ndarray, "n ..."],
    key: Key,
    *,
    heads: int = 64,
    count: int = 16,
    mask: Bool[np.ndarray, "n ..."] | None = None,
    graphs: Float[np.ndarray, "..."] | None = None,
) -> SampledGram:
    """Estimate NNGP and NTK of a network with untied attention over √d, with standard errors.

    Channels are infinitely many and keys infinitely wide, but weights of attention remain another draw in each head.
    Each of ``count`` draws has so many heads in every layer of attention, and the result is the mean over draws. As
    long as what follows is linear in the kernel (pooling, ``dense``, sums) that is the mean over heads itself. Behind
    activations and in further attention it is off by a term of order 1/heads.

    All inputs are read at once, as they share their heads: for a second set put both into one array. Memory grows with
    (n P)² for n inputs of P positions, time with heads n² P³.

    Args:
        limit: of ``network(...)`` with ``attention(..., scale="1/sqrt(d)", tied=False)``.
        x: inputs, as for ``gram``.
        key: random key of the draws.
        heads: in each layer of attention, of each draw.
        count: how many draws.
        mask: which positions exist, as for ``gram``.
        graphs: those beside the inputs, as for ``gram``.

    Returns:
        kernels of shape ``(n, n)`` in float64, with the standard errors of their entries over draws.

    Raises:
        UserError: as ``gram``; a limit without such attention; fewer than two draws, or no heads.

    Source: Hron et al. 2020, for the law of the logits.

    >>> import jax
    >>> from steepest.nn.layers import attention, dense, global_pool, network
    >>> heads = attention(8, heads=4, key=8, scale="1/sqrt(d)", tied=False)
    >>> net = network(heads, global_pool(), dense(1), shape=(3, 2), parameterized="ntk")
    >>> gram_over_heads(net.limit(), np.ones((2, 3, 2)), jax.random.key(0)).nngp.round(6).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    check_limit_given(limit)
    for name, number, least in (("heads", heads, 1), ("count", count, 2)):
        if int(number) != number or number < least:
            raise UserError(
                f"gram_over_heads needs a whole number of {name} from {least} on, got {number}"
            )
    if isinstance(limit, Limit) or not any(
        isinstance(node, AttendAtRandom) for node in limit.nodes
    ):
        raise UserError(
            "this limit has no attention over √d, so that its kernels need no draws; take gram"
        )
    check_key(key)
    x, _, besides = checked_inputs(limit, x, None, (Beside(mask, graphs), NOTHING))
    draws = over_heads(limit, x, key, heads, count, besides[0])
    mean = draws.mean(0)
    error = draws.std(0, ddof=1) / np.sqrt(count)
    return SampledGram(mean[0], mean[1], error[0], error[1])
