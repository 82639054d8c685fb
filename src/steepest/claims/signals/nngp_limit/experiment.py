"""Random networks: the covariance of their outputs given the last hidden layer, and outputs where weights are signs."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from steepest import kit
from steepest.claims.signals.nngp_limit.theory import ENTRIES, Case
from steepest.nn.data import digits

CHUNK = 1000
"""Networks drawn at once."""
GROWTH_C_W = 0.1
"""C_W of networks whose activation grows faster than polynomials; they have no biases."""
HIGHEST = 300.0
"""Logarithm of a neuron that is told from larger ones."""


class Setting(NamedTuple):
    """The cases, three images, and the frequencies u of the characteristic functions E cos(u·z) of each case.

    For σ = exp images are scaled, and have frequencies of their own.
    """

    cases: list[Case]
    inputs: kit.Values  # (3, 64)
    frequencies: kit.Values  # (cases, 13, 3)
    gentle: kit.Values  # (3, 64)
    gentle_frequencies: kit.Values  # (13, 3)


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
    # given the inputs the first layer is Gaussian at any width
    start = case.c_b + case.c_w * inputs @ inputs.T / inputs.shape[1]
    chunks = []
    for size in _sizes(count):
        layers = [np.broadcast_to(start, (size, 3, 3))]
        for _ in range(hidden):
            normal = rng.standard_normal((size, 3, width), np.float32)
            # z of a neuron given Σ is N(0, Σ)
            z = np.linalg.cholesky(layers[-1]).astype(np.float32) @ normal
            features = np.asarray(case.activation(jnp.asarray(z)))
            products = (features @ features.swapaxes(1, 2)).astype(float)
            layers.append(case.c_b + case.c_w / width * products)
        chunks.append(np.stack(layers[-2:]))
    # the last hidden layer first
    return np.concatenate(chunks, 1)[::-1]


class Moments(NamedTuple):
    """Of Σ in every group of networks."""

    covariance: np.ndarray  # its mean, (groups, 6)
    cosine: np.ndarray  # E cos(u·z), (groups, 13)
    kurtosis: np.ndarray  # excess kurtosis of an output, mean over inputs, (groups,)


def moments(covariances: np.ndarray, u: np.ndarray, groups: int) -> Moments:
    """Return what is compared with the limit, the last layer's Gaussian weights integrated exactly."""
    grouped = covariances.reshape(groups, -1, 3, 3)
    # uᵀΣu, (groups, networks, 13)
    exponent = np.einsum("ua,gkab,ub->gku", u, grouped, u, optimize=True)
    variances = np.diagonal(grouped, axis1=2, axis2=3)
    # z given Σ is Gaussian, E z⁴ = 3 E Σ²: the excess kurtosis is 3 Var Σ/(E Σ)²
    spread = variances.var(1, ddof=1) / variances.mean(1) ** 2
    first, second = np.transpose(ENTRIES)
    mean = grouped.mean(1)[:, first, second]
    # E[cos(u·z) | Σ] = exp(−uᵀΣu/2)
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


def of_variance(inputs: np.ndarray, largest: float) -> np.ndarray:
    """Return inputs of a length at which the first layer's largest variance is this, for C_W = ``GROWTH_C_W``."""
    squares = GROWTH_C_W * (inputs**2).mean(1)
    return inputs * np.sqrt(largest / squares.max())


class Wide(NamedTuple):
    """Of networks with two hidden layers whose neurons are exponentials, in every group."""

    cosine: np.ndarray  # E cos(u·z), (groups, 13)
    median: np.ndarray  # of the entries of Σ, (groups, 6)


def draw_wide(
    log_neuron: Callable[[np.ndarray], np.ndarray],
    inputs: np.ndarray,
    u: np.ndarray,
    shape: tuple[int, int, int],
    rng: np.random.Generator,
) -> Wide:
    """Draw networks of neurons exp(h(z)) at three inputs, and integrate the last Gaussian weights.

    Args:
        log_neuron: h, cut at ``HIGHEST``.
        inputs: shape ``(3, n_0)``.
        u: frequencies, shape ``(13, 3)``.
        shape: groups, networks of each, and neurons of a hidden layer.
        rng: of the networks.
    """
    groups, networks, width = shape
    start = GROWTH_C_W * inputs @ inputs.T / inputs.shape[1]

    def neurons(covariance: np.ndarray) -> np.ndarray:
        # with jitter, as a single huge neuron makes it singular
        scale = np.trace(covariance, axis1=1, axis2=2)[:, None, None]
        root = np.linalg.cholesky(covariance + 1e-12 * scale * np.eye(3))
        z = root @ rng.standard_normal((networks, 3, width))
        return np.exp(np.minimum(log_neuron(z), HIGHEST))

    cosines = []
    medians = []
    for _ in range(groups):
        covariance = np.broadcast_to(start, (networks, 3, 3))
        features = neurons(covariance)
        features = neurons(GROWTH_C_W / width * features @ features.swapaxes(1, 2))
        # uᵀΣu/C_W = (1/n) Σ_j (u·σ_j)²: a sum of squares, where entries of Σ would cancel
        squares = ((u @ features) ** 2).mean(2)
        cosines.append(np.exp(-GROWTH_C_W * squares / 2).mean(0))
        products = np.stack([features[:, a] * features[:, b] for a, b in ENTRIES], 1).mean(2)
        medians.append(GROWTH_C_W * np.median(products, 0))
    return Wide(np.stack(cosines), np.stack(medians))


def largest_shares(
    variance: float, widths: Sequence[int], groups: int, networks: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of the largest network in a group's sum of Σ, at one input and for σ = exp.

    Two hidden layers and one hidden layer, ``(groups, widths)`` each. Sums are of logarithms, as Σ overflows.

    Args:
        variance: of the first layer.
        widths: of the hidden layers.
        groups: how many.
        networks: of each group.
        rng: of the networks.
    """
    share = lambda logs: np.exp(logs.max(1) - logsumexp(logs, axis=1))
    deep = []
    shallow = []
    for width in widths:
        draw = lambda width=width: rng.standard_normal((groups, networks, width))
        # log Σ = log(C_W/n) + log Σ_j exp(2 z_j), as σ(z)² = exp(2z)
        first = np.log(GROWTH_C_W / width) + logsumexp(2 * variance**0.5 * draw(), axis=2)
        z = np.exp(first / 2)[..., None] * draw()  # z = Σ^½ ξ
        second = np.log(GROWTH_C_W / width) + logsumexp(2 * z, axis=2)
        deep.append(share(second))
        shallow.append(share(first))
    return np.stack(deep, 1), np.stack(shallow, 1)
