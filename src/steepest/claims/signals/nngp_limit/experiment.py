"""Random networks: the covariance of their outputs given the last hidden layer, and outputs where weights are signs."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.signals.nngp_limit.theory import ENTRIES, Case
from steepest.nn.data import digits

CHUNK = 1000
"""Networks drawn at once."""


class Setting(NamedTuple):
    """The cases, three images, and the frequencies u of the characteristic functions E cos(u·z) of each case."""

    cases: list[Case]
    inputs: kit.Values  # (3, 64)
    frequencies: kit.Values  # (cases, 13, 3)


def three_images() -> np.ndarray:
    """Return the first image of each of three digits."""
    data = digits((0, 1, 4))
    return np.asarray(data.x[jnp.argmax(data.y, axis=0)], float)


def draw_covariances(
    case: Case, inputs: np.ndarray, width: int, hidden: int, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw Σ of networks after the last hidden layer and after the one before it, ``(2, networks, 3, 3)``.

    Rows of Gaussian weights applied to known features are Gaussian, so layers are drawn without their matrices.
    """
    start = case.c_b + case.c_w * inputs @ inputs.T / inputs.shape[1]
    chunks = []
    for size in _sizes(count):
        layers = [np.broadcast_to(start, (size, 3, 3))]
        for _ in range(hidden):
            normal = rng.standard_normal((size, 3, width), np.float32)
            z = np.linalg.cholesky(layers[-1]).astype(np.float32) @ normal
            features = np.asarray(case.activation(jnp.asarray(z)))
            products = (features @ features.swapaxes(1, 2)).astype(float)
            layers.append(case.c_b + case.c_w / width * products)
        chunks.append(np.stack(layers[-2:]))
    return np.concatenate(chunks, 1)[::-1]


class Moments(NamedTuple):
    """Of Σ in every group of networks."""

    covariance: np.ndarray  # its mean, (groups, 6)
    cosine: np.ndarray  # E cos(u·z), (groups, 13)
    kurtosis: np.ndarray  # excess kurtosis of an output, mean over inputs, (groups,)


def moments(covariances: np.ndarray, u: np.ndarray, groups: int) -> Moments:
    """Return what is compared with the limit, the last layer's Gaussian weights integrated exactly."""
    grouped = covariances.reshape(groups, -1, 3, 3)
    exponent = np.einsum("ua,gkab,ub->gku", u, grouped, u, optimize=True)
    variances = np.diagonal(grouped, axis1=2, axis2=3)
    spread = variances.var(1, ddof=1) / variances.mean(1) ** 2
    first, second = np.transpose(ENTRIES)
    mean = grouped.mean(1)[:, first, second]
    return Moments(mean, np.exp(-exponent / 2).mean(1), 3 * spread.mean(1))


def draw_relu_outputs(
    inputs: np.ndarray,
    width: int,
    hidden: int,
    outputs: int,
    count: int,
    rng: np.random.Generator,
    *,
    signs: bool,
) -> np.ndarray:
    """Draw outputs of ReLU networks with matrices of signs or of Gaussians, ``(networks, 3, outputs)``.

    The first layer is Gaussian, as 64 pixels are no limit; there are no biases, and C_W = 2.
    """
    root = np.sqrt(2 / inputs.shape[1]) * inputs.astype(np.float32)
    chunks = []
    for size in _sizes(count):
        z = root @ rng.standard_normal((size, inputs.shape[1], width), np.float32)
        for fan_out in (*[width] * (hidden - 1), outputs):
            shape = size, width, fan_out
            weights = _signs(rng, shape) if signs else rng.standard_normal(shape, np.float32)
            z = np.float32(np.sqrt(2 / width)) * np.maximum(z, 0) @ weights
        chunks.append(z)
    return np.concatenate(chunks).astype(float)


def excess_kurtosis(outputs: np.ndarray) -> np.ndarray:
    """Return the excess kurtosis of every group, mean over inputs, from ``(groups, networks, 3, outputs)``."""
    second = (outputs**2).mean((1, 3))
    fourth = (outputs**4).mean((1, 3))
    return (fourth / second**2 - 3).mean(-1)


def _signs(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    """Draw independent signs ±1, eight from every random byte."""
    size = int(np.prod(shape))
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-size // 8)), np.uint8))[:size]
    return 2 * bits.reshape(shape).astype(np.float32) - 1


def _sizes(count: int) -> list[int]:
    whole, remainder = divmod(count, CHUNK)
    return [CHUNK] * whole + [remainder] * (remainder > 0)
