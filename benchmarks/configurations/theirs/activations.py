"""Activations of the peer, and masks."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from neural_tangents import stax

from benchmarks.configurations import inputs as given
from benchmarks.configurations.theirs.networks import dense, filled, flattened, kernels, pooled

X = given.VECTORS


def between(layer):
    """Put an activation between matrices, twice."""
    return kernels(stax.Dense(1, 1.3, 0.2), layer, stax.Dense(1, 1.3, 0.2), layer, dense(), x=X)


def once(layer):
    return kernels(stax.Dense(1, 1.3, 0.2), layer, dense(), x=X)


def covariances(layer):
    return {"nngp": once(layer)["nngp"]}


def in_images(layer):
    """Put an activation where covariances of different positions count."""
    first = stax.Conv(1, (3, 3), padding="SAME", W_std=1.3)
    return pooled(first, layer, stax.Dense(1, 1.3), layer, x=given.IMAGES)


def erf_covariance(covariance, one, two):
    return jnp.arcsin(2 * covariance / jnp.sqrt((1 + 2 * one) * (1 + 2 * two))) * 2 / jnp.pi


def softplus(x):
    return jnp.logaddexp(x, 0.0)


def hard_tanh(x):
    return jnp.clip(x, -1.0, 1.0)


def elu(x):
    return jnp.where(x > 0, x, jnp.expm1(x))


ACTIVATIONS = {
    "activation/relu": lambda: between(stax.Relu()),
    "activation/relu, stabilized": lambda: between(stax.Relu(do_stabilize=True)),
    "activation/leaky relu": lambda: between(stax.LeakyRelu(0.2)),
    "activation/two slopes": lambda: between(stax.ABRelu(-0.5, 1.5)),
    "activation/abs": lambda: between(stax.Abs()),
    "activation/erf": lambda: between(stax.Erf()),
    "activation/erf, scaled and shifted": lambda: between(stax.Erf(1.5, 0.7, 0.3)),
    "activation/sigmoid by erf": lambda: between(stax.Sigmoid_like()),
    "activation/gelu": lambda: between(stax.Gelu()),
    "activation/sin": lambda: between(stax.Sin()),
    "activation/sin, scaled and shifted": lambda: between(stax.Sin(1.5, 0.7, 0.3)),
    "activation/cos": lambda: between(stax.Cos()),
    "activation/cos, scaled and shifted": lambda: between(stax.Cos(1.5, 0.7, 0.3)),
    "activation/gabor": lambda: between(stax.Gabor()),
    "activation/squared exponential": lambda: between(stax.Rbf(0.6)),
    "activation/gaussian": lambda: between(stax.Gaussian(1.2, -0.4)),
    "activation/exp": lambda: once(stax.Exp(0.5, 0.4)),
    "activation/Hermite polynomial": lambda: once(stax.serial(stax.LayerNorm(), stax.Hermite(4))),
    "activation/Hermite polynomial, other variances": lambda: once(stax.Hermite(4)),
    "activation/monomial": lambda: once(stax.Monomial(3)),
    "activation/rectified monomial": lambda: once(stax.RectifiedMonomial(2)),
    "activation/step, NNGP": lambda: covariances(stax.RectifiedMonomial(0)),
    "activation/polynomial": lambda: once(stax.Polynomial((0.5, 1.0, -0.3, 0.2))),
    "activation/sign, NNGP": lambda: covariances(stax.Sign()),
    "activation/sign, tangent kernel": lambda: once(stax.Sign()),
    "activation/own function and covariance": lambda: between(
        stax.Elementwise(erf, erf_covariance)
    ),
    "activation/normalized exponential": lambda: between(stax.ExpNormalized(0.8)),
    "activation/tanh by quadrature": lambda: between(stax.ElementwiseNumerical(jnp.tanh, deg=60)),
    "activation/softplus by quadrature": lambda: between(
        stax.ElementwiseNumerical(softplus, deg=60)
    ),
    "activation/hard tanh by quadrature": lambda: between(
        stax.ElementwiseNumerical(hard_tanh, deg=200)
    ),
    "activation/elu by quadrature": lambda: between(stax.ElementwiseNumerical(elu, deg=200)),
    "activation/erf between positions": lambda: in_images(stax.Erf()),
    "activation/gelu between positions": lambda: in_images(stax.Gelu()),
    "activation/two slopes between positions": lambda: in_images(stax.ABRelu(-0.5, 1.5)),
    "activation/sin between positions": lambda: in_images(stax.Sin()),
    "activation/rectified monomial between positions": lambda: in_images(stax.RectifiedMonomial(2)),
    "activation/elu between positions": lambda: in_images(stax.ElementwiseNumerical(elu, deg=100)),
}

IMAGES = filled(given.IMAGES, given.IMAGE_MASK)
LINES = filled(given.LINES, given.LINE_MASK)


def conv(shape=(3, 3), padding="SAME", strides=None):
    return stax.Conv(1, shape, strides, padding)


def masked(layer, *, given=IMAGES):
    """Put a layer behind weights of inputs some of whose positions do not exist, before the mean."""
    return pooled(stax.Dense(1), stax.Relu(), layer, stax.Dense(1), stax.Relu(), **given)


MASKS = {
    "mask/dense": lambda: masked(stax.Dense(1)),
    "mask/biases": lambda: masked(stax.Dense(1, 1.0, 0.5)),
    "mask/convolution, zero padding": lambda: masked(conv((3,)), given=LINES),
    "mask/convolution, no padding": lambda: masked(conv((2,), "VALID"), given=LINES),
    "mask/convolution, stride": lambda: masked(conv((3,), "SAME", (2,)), given=LINES),
    "mask/convolution, holes in images": lambda: masked(conv()),
    "mask/flatten": lambda: flattened(conv(), stax.Relu(), conv(), **IMAGES),
    "mask/mean over windows": lambda: masked(stax.AvgPool((2, 2), (2, 2))),
    "mask/sum over windows": lambda: masked(stax.SumPool((2, 2), (2, 2))),
    "mask/mean over windows, edges left out": lambda: masked(
        stax.AvgPool((3, 3), (1, 1), "SAME", normalize_edges=True)
    ),
    "mask/global mean": lambda: pooled(conv(), stax.Relu(), **IMAGES),
    "mask/global sum": lambda: kernels(
        conv(), stax.Relu(), stax.GlobalSumPool(), dense(), **IMAGES
    ),
    "mask/channel normalization": lambda: masked(stax.serial(stax.Dense(1), stax.LayerNorm())),
    "mask/normalization over positions": lambda: masked(
        stax.serial(stax.Dense(1), stax.LayerNorm(axis=(1, 2, 3)))
    ),
    "mask/attention": lambda: masked(stax.GlobalSelfAttention(1, 1, 1, 1), given=LINES),
    "mask/residual sum": lambda: masked(
        stax.serial(
            stax.Dense(1),
            stax.FanOut(2),
            stax.parallel(stax.Identity(), stax.serial(stax.Relu(), conv())),
            stax.FanInSum(),
        )
    ),
    "mask/channels side by side": lambda: masked(
        stax.serial(
            stax.Dense(1),
            stax.FanOut(2),
            stax.parallel(conv(), stax.serial(stax.Relu(), conv())),
            stax.FanInConcat(-1),
        )
    ),
    "mask/resize": lambda: masked(stax.ImageResize((-1, 6, 6, -1), "linear")),
    "mask/graph": lambda: pooled(
        stax.Dense(1),
        stax.Relu(),
        stax.Aggregate(aggregate_axis=1),
        stax.Dense(1),
        stax.Relu(),
        pattern=(np.repeat(given.GRAPH.T[None], 3, 0),) * 2,
        **LINES,
    ),
    "mask/dropout": lambda: masked(stax.Dropout(0.7)),
}
CONFIGURATIONS = {**ACTIVATIONS, **MASKS}
