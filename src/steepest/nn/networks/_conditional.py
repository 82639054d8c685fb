"""Random networks of finite width without weight matrices: exact sampling of pre-activations, by layers.

Given the activations of the layer before, the rows of ``z^{l+1} = b + W σ(z^l)`` with Gaussian W and b are
independent Gaussian vectors (one entry per input) whose covariance is the empirical Gram matrix. Drawing from
it costs ``width × inputs`` instead of ``width²`` per layer and has exactly the law of the network with its
weights.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.activations import Activation
from steepest.nn.types import Key


@checked
def finite_grams(
    key: Key,
    activation: Activation,
    c_w: float,
    c_b: float,
    width: int,
    depth: int,
    inputs: Float[Array, "m d"],
) -> Float[Array, "depth+1 m m"]:
    """Sample the empirical covariances of the pre-activations of m inputs, layer by layer, in one random network.

    ``G^l_{αβ} = (1/n) Σ_i z^l_{iα} z^l_{iβ}``, where the rows of ``z^{l+1}`` are independent draws of ``N(0,
    C_b + (C_W/n) Σ_i σ(z^l_{iα})σ(z^l_{iβ}))``, and of ``N(0, C_b + (C_W/d) <x_α, x_β>)`` in the first layer.
    This is the law of a network with Gaussian weights and biases, at every width. Source: ORF 543, lecture
    9/19 ("a Gaussian with a random variance"). Map over keys with ``jax.vmap`` for many networks.

    Args:
        key: random key of this network.
        activation: σ.
        c_w: weight variance times fan-in, C_W ≥ 0.
        c_b: bias variance, C_b ≥ 0.
        width: n, the same for all layers.
        depth: number of layers after the first.
        inputs: one input a row; equal or parallel inputs are allowed. Their precision is the computation's.

    Raises:
        UserError: if ``inputs`` is not a matrix, or ``width`` < 1.

    >>> import jax
    >>> from steepest.nn.activations import activation
    >>> grams = finite_grams(jax.random.key(0), activation("relu"), 2.0, 0.0, 100, 5, jax.numpy.eye(3))
    >>> grams.shape
    (6, 3, 3)
    """
    inputs = jnp.asarray(inputs)
    # whole numbers become floating, floating stays
    inputs = inputs.astype(jnp.result_type(inputs, jnp.float32))
    if inputs.ndim != 2:
        raise UserError(f"Inputs are rows of a matrix of shape (m, d), got shape {inputs.shape}.")
    if width < 1:
        raise UserError(f"A layer needs at least one neuron, got width {width}.")
    return _finite_grams(key, activation, c_w, c_b, width, depth, inputs)


@partial(jax.jit, static_argnums=(1, 4, 5))
def _finite_grams(key, activation, c_w, c_b, width, depth, inputs):
    def layer(covariance, key):
        noise = jax.random.normal(key, (inputs.shape[0], width), dtype=inputs.dtype)
        # L ε has the covariance L Lᵀ: one column a neuron, (m, width)
        z = semidefinite_root(covariance) @ noise
        features = activation(z)
        # the covariance of the next layer given this one, and G of this one
        return c_b + c_w / width * features @ features.T, z @ z.T / width

    start = c_b + c_w / inputs.shape[1] * inputs @ inputs.T
    return jax.lax.scan(layer, start, jax.random.split(key, depth + 1))[1]


@checked
def sample_grams(
    key: Key,
    networks: int,
    activation: Activation,
    c_w: float,
    c_b: float,
    width: int,
    depth: int,
    inputs: Float[Array, "m d"],
) -> Float[Array, "networks depth+1 m m"]:
    """Sample ``finite_grams`` of many independent networks, a few at a time so that memory stays small.

    >>> import jax
    >>> from steepest.nn.activations import activation
    >>> sample_grams(jax.random.key(0), 7, activation("relu"), 2.0, 0.0, 10, 3, jax.numpy.eye(2)).shape
    (7, 4, 2, 2)
    """

    def one(key: Key) -> Array:
        return finite_grams(key, activation, c_w, c_b, width, depth, inputs)

    return jax.lax.map(one, jax.random.split(key, networks), batch_size=min(16, networks))


@checked
def semidefinite_root(covariance: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """Return a lower triangular root of a covariance; unlike Cholesky's it also exists for singular matrices.

    >>> semidefinite_root(jnp.ones((2, 2))).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    if not jnp.issubdtype(covariance.dtype, jnp.floating):
        covariance = jnp.asarray(covariance, float)
    root = jnp.zeros_like(covariance)
    for j in range(covariance.shape[0]):
        # column j of the Schur complement, from the columns before it
        column = covariance[:, j] - root @ root[j]
        pivot = column[j]
        # A pivot at the level of rounding means that input j depends on those before it: it brings no new
        # noise.
        real = pivot > 8 * jnp.finfo(covariance.dtype).eps * covariance[j, j]
        column = jnp.where(real, column / jnp.sqrt(jnp.where(real, pivot, 1.0)), 0.0)
        root = root.at[j:, j].set(column[j:])
    return root


@checked
def propagate_finite(
    key: Key,
    activation: Activation,
    c_w: float,
    c_b: float,
    width: int,
    depth: int,
    inputs: Float[Array, "2 d"],
) -> Float[Array, "depth+1 3"]:
    """Sample the second moments of two inputs in one random network: the finite twin of ``kernels.propagate``.

    Row l is ``(1/n) Σ_i (z_α², z_β², z_α z_β)`` of layer l + 1; as n grows it tends to the row of
    ``propagate(activation, c_w, c_b, first_layer(inputs, c_w, c_b), depth)``. See ``finite_grams``.

    Raises:
        UserError: if ``inputs`` is not a pair of rows, or ``width`` < 1.

    >>> import jax
    >>> from steepest.nn.activations import activation
    >>> path = propagate_finite(jax.random.key(0), activation("tanh"), 1.0, 0.0, 9999, 3, 2 * jax.numpy.eye(2))
    >>> path.shape, bool(abs(path[0, 0] - 2.0) < 0.2)
    ((4, 3), True)
    """
    if jnp.shape(inputs)[:1] != (2,):
        raise UserError(
            f"Two inputs are needed, an array of shape (2, d), got shape {jnp.shape(inputs)}."
        )
    grams = finite_grams(key, activation, c_w, c_b, width, depth, inputs)
    return jnp.stack([grams[:, 0, 0], grams[:, 1, 1], grams[:, 0, 1]], axis=1)
