"""Kernels of random finite networks, averaged over draws: what is left where no limit is known."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from steepest.core.errors import UserError
from steepest.kernels._arguments import check_key
from steepest.kernels.finite._blocks import Inputs
from steepest.kernels.finite._empirical import kernel_of, read_by
from steepest.nn.layers._beside import Beside
from steepest.nn.types import Key, Network


class SampledGram(NamedTuple):
    """Kernels of finite networks, averaged over independent draws of their parameters.

    Attributes:
        nngp: mean over draws of the product of two outputs, averaged over the outputs, shape ``(n, m)``.
        ntk: mean over draws of the tangent kernel, averaged over the outputs, shape ``(n, m)``.
        nngp_error: standard errors of the entries of ``nngp``.
        ntk_error: standard errors of the entries of ``ntk``.
    """

    nngp: Float[np.ndarray, "n m"]
    ntk: Float[np.ndarray, "n m"]
    nngp_error: Float[np.ndarray, "n m"]
    ntk_error: Float[np.ndarray, "n m"]


def sampled_gram(
    network: Network,
    x: Float[Array, "n ..."],
    key: Key,
    other: Float[Array, "m ..."] | None = None,
    *,
    mask: Bool[Array, "n ..."] | None = None,
    other_mask: Bool[Array, "m ..."] | None = None,
    graphs: Float[Array, "..."] | None = None,
    other_graphs: Float[Array, "..."] | None = None,
    count: int = 100,
) -> SampledGram:
    """Estimate NNGP and NTK of random networks of this width, with standard errors.

    It needs no limit, so that any ``Network`` will do; of one that has a limit the mean is off from it by a term of
    order 1/width, which ``gram`` is without. One network is in memory at a time.

    Args:
        network: with any number of outputs.
        x: inputs.
        key: random key of the draws.
        other: a second set, by default x again.
        mask: of a ``network(...)`` of layers: which positions exist, as for ``gram``.
        other_mask: that of the second set.
        graphs: of a ``network(...)`` with ``aggregate()`` without a matrix, as for ``gram``.
        other_graphs: graphs beside the second set.
        count: how many networks are drawn.

    Raises:
        UserError: fewer than two draws, which give no error; a mask that is none of these positions, or of a network
            without positions.

    >>> from steepest.nn.networks import mlp
    >>> net = mlp((2, 50, 1), "relu", parameterized="ntk", c_w=2.0, bias=False)
    >>> drawn = sampled_gram(net, jnp.array([[1.0, 1.0], [1.0, -1.0]]), jax.random.key(0), count=400)
    >>> exact = 2.0  # K(x, x) of the limit: two layers that keep the norm, times C_W |x|²/d
    >>> bool(abs(drawn.nngp[0, 0] - exact) < 4 * drawn.nngp_error[0, 0])
    True
    """
    check_key(key)
    if not isinstance(network, Network):
        raise UserError(f"expected a network, as of mlp(...), got {type(network).__name__}")
    if count < 2:
        raise UserError(f"a standard error needs at least two networks, got count={count}")
    besides = (Beside(mask, graphs), Beside(other_mask, other_graphs))
    first, second = read_by(network, x, other, besides)
    moments = _moments(network, first, second, jax.random.split(key, count))
    means, squares = (np.asarray(values, float) for values in moments)
    # variance Σ (d − mean)²/(count − 1) of one draw, over count for the mean
    errors = np.sqrt(squares / (count - 1) / count)
    return SampledGram(means[0], means[1], errors[0], errors[1])


@partial(jax.jit, static_argnums=0)
def _moments(network: Network, x: Inputs, other: Inputs | None, keys: Array) -> tuple[Array, Array]:
    """Return the mean of both kernels over draws, and the sum of squares about it; one draw at a time (Welford)."""

    def kernels(key: Key) -> Array:
        params = network.init(key)
        outputs = lambda inputs: network.apply(params, *inputs).reshape(len(inputs[0]), -1)
        y = outputs(x)
        z = y if other is None else outputs(other)
        theta = kernel_of(network, params, x, other, outputs="trace")
        return jnp.stack([y @ z.T, theta]) / y.shape[1]

    def step(state: tuple[Array, Array], numbered: tuple[Array, Array]):
        mean, squares = state
        number, key = numbered
        drawn = kernels(key)
        # Welford: the sums of (d − old mean)(d − new mean) are Σ (d − mean)², without cancellation
        moved = mean + (drawn - mean) / number
        return (moved, squares + (drawn - mean) * (drawn - moved)), None

    shape = jax.eval_shape(kernels, keys[0])
    zeros = jnp.zeros(shape.shape, shape.dtype)
    numbers = jnp.arange(1, len(keys) + 1)
    return jax.lax.scan(step, (zeros, zeros), (numbers, keys))[0]
