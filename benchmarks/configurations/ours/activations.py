"""Our activations, and masks."""

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.configurations import inputs as given
from benchmarks.configurations.ours.networks import flattened, kernels, limit_of, pooled
from steepest.kernels import nngp
from steepest.nn import layers
from steepest.nn.activations import Activation, polynomial

nn: Any = layers  # names that are not built yet are looked for when a configuration runs
conv, dense, identity, serial = nn.conv, nn.dense, nn.identity, nn.serial
X = given.VECTORS
WEIGHTS = {"c_w": 1.69, "c_b": 0.04}
SIGN = Activation("sign", jnp.sign, jnp.zeros_like, kinks=(0.0,))
HERMITE = polynomial(*(c / 24**0.5 for c in (3.0, 0.0, -6.0, 0.0, 1.0)))
"""The fourth Hermite polynomial of second moment one, ``(x⁴ − 6x² + 3)/√4!``."""


def between(activation):
    """Put an activation between matrices, twice."""
    return kernels(dense(1, **WEIGHTS), activation, dense(1, **WEIGHTS), activation, dense(1), x=X)


def once(activation):
    return kernels(dense(1, **WEIGHTS), activation, dense(1), x=X)


def covariances(activation):
    limit = limit_of(dense(1, **WEIGHTS), activation, dense(1), x=X)
    return {"nngp": nngp(limit, X)}


def in_images(activation):
    """Put an activation where covariances of different positions count."""
    return pooled(conv(1, c_w=1.69), activation, dense(1, c_w=1.69), activation, x=given.IMAGES)


def two_slopes():
    """Return −x/2 below zero and 3x/2 above."""
    return Activation("two slopes", lambda x: jnp.where(x > 0, 1.5 * x, -0.5 * x), kinks=(0.0,))


def wave(function):
    return lambda x: 1.5 * function(0.7 * x + 0.3)


def rbf(x):
    return 2**0.5 * jnp.sin((2 * 0.6) ** 0.5 * x + jnp.pi / 4)


def shifted_erf(x):
    return 1.5 * jax.scipy.special.erf(0.7 * x) + 0.3


def sigmoid_like(x):
    return 0.5 * jax.scipy.special.erf(x / 2.4020563531719796) + 0.5


def gabor(x):
    return jnp.exp(-(x**2)) * jnp.sin(x)


def bell(x):
    return 1.2 * jnp.exp(-0.4 * x**2)


def growth(x):
    return 0.5 * jnp.exp(0.4 * x)


ACTIVATIONS = {
    "activation/relu": lambda: between("relu"),
    "activation/relu, stabilized": lambda: between("relu"),
    "activation/leaky relu": lambda: between("leaky_relu(0.2)"),
    "activation/two slopes": lambda: between(two_slopes()),
    "activation/abs": lambda: between("abs"),
    "activation/erf": lambda: between("erf"),
    "activation/erf, scaled and shifted": lambda: between(shifted_erf),
    "activation/sigmoid by erf": lambda: between(sigmoid_like),
    "activation/gelu": lambda: between("gelu"),
    "activation/sin": lambda: between("sin"),
    "activation/sin, scaled and shifted": lambda: between(wave(jnp.sin)),
    "activation/cos": lambda: between("cos"),
    "activation/cos, scaled and shifted": lambda: between(wave(jnp.cos)),
    "activation/gabor": lambda: between(gabor),
    "activation/squared exponential": lambda: between(rbf),
    "activation/gaussian": lambda: between(bell),
    "activation/exp": lambda: once(growth),
    "activation/Hermite polynomial": lambda: once(serial(nn.layer_norm(), HERMITE)),
    "activation/Hermite polynomial, other variances": lambda: once(HERMITE),
    "activation/monomial": lambda: once("polynomial(0,0,0,1)"),
    "activation/rectified monomial": lambda: once("relu_power(2)"),
    "activation/step, NNGP": lambda: covariances("step"),
    "activation/polynomial": lambda: once(polynomial(0.5, 1.0, -0.3, 0.2)),
    "activation/sign, NNGP": lambda: covariances(SIGN),
    "activation/sign, tangent kernel": lambda: once(SIGN),
    "activation/own function and covariance": lambda: between("erf"),
    "activation/normalized exponential": lambda: normalized_exponential(),
    "activation/tanh by quadrature": lambda: between("tanh"),
    "activation/softplus by quadrature": lambda: between("softplus"),
    "activation/hard tanh by quadrature": lambda: between("hard_tanh"),
    "activation/elu by quadrature": lambda: between("elu"),
    "activation/erf between positions": lambda: in_images("erf"),
    "activation/gelu between positions": lambda: in_images("gelu"),
    "activation/two slopes between positions": lambda: in_images(two_slopes()),
    "activation/sin between positions": lambda: in_images("sin"),
    "activation/rectified monomial between positions": lambda: in_images("relu_power(2)"),
    "activation/elu between positions": lambda: in_images("elu"),
}


def normalized_exponential():
    """Put a layer that has kernels only between matrices."""
    layer = nn.exp_normalized(0.8)
    return kernels(dense(1, **WEIGHTS), layer, dense(1, **WEIGHTS), layer, dense(1), x=X)


IMAGES = {"x": given.IMAGES, "mask": given.IMAGE_MASK}
LINES = {"x": given.LINES, "mask": given.LINE_MASK}


def masked(*layers, given=IMAGES):
    """Put layers behind weights of inputs some of whose positions do not exist, before the mean."""
    return pooled(dense(1), "relu", *layers, dense(1), "relu", **given)


MASKS = {
    "mask/dense": lambda: masked(dense(1)),
    "mask/biases": lambda: masked(dense(1, c_b=0.25)),
    "mask/convolution, zero padding": lambda: masked(conv(1), given=LINES),
    "mask/convolution, no padding": lambda: masked(conv(1, 2, padding="none"), given=LINES),
    "mask/convolution, stride": lambda: masked(conv(1, stride=2), given=LINES),
    "mask/convolution, holes in images": lambda: masked(conv(1)),
    "mask/flatten": lambda: flattened(conv(1), "relu", conv(1), **IMAGES),
    "mask/mean over windows": lambda: masked(nn.pool(2)),
    "mask/sum over windows": lambda: masked(nn.sum_pool(2, 2)),
    "mask/mean over windows, edges left out": lambda: masked(
        nn.pool(3, 1, padding="zero", count_edges=False)
    ),
    "mask/global mean": lambda: pooled(conv(1), "relu", **IMAGES),
    "mask/global sum": lambda: kernels(conv(1), "relu", nn.global_sum_pool(), dense(1), **IMAGES),
    "mask/channel normalization": lambda: masked(dense(1), nn.layer_norm()),
    "mask/normalization over positions": lambda: masked(dense(1), nn.layer_norm(space="all")),
    "mask/attention": lambda: masked(nn.attention(1, heads=1, key=1), given=LINES),
    "mask/residual sum": lambda: masked(dense(1), nn.add(identity, serial("relu", conv(1)))),
    "mask/channels side by side": lambda: masked(
        dense(1), nn.concatenate(conv(1), serial("relu", conv(1)))
    ),
    "mask/resize": lambda: masked(nn.resize((6, 6))),
    "mask/graph": lambda: masked(nn.aggregate(given.GRAPH), given=LINES),
    "mask/dropout": lambda: masked(nn.dropout(0.3)),
}
CONFIGURATIONS = {**ACTIVATIONS, **MASKS}
