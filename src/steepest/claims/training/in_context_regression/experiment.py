"""A layer of linear attention, trained by Adam on regressions that it sees once each.

A prompt is a matrix of tokens: N examples with their labels, and a query whose label is missing. The layer answers with
the last entry of value · (key · query)/N, summed over all tokens. What it knows is p, which reads a token's value, and
K, which compares tokens with the query. The query's label is zero, so that K's last column does nothing, and none is
kept; p stands in its place: weights are ``(trainings, d + 1, d + 1)``, with K in the first d columns.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BETA1 = 0.9
BETA2 = 0.99
EPSILON = 1e-8
HEAVY = 0.2  # the share of inputs that are not zero, where tails are heavy


class Prompts(NamedTuple):
    """Prompts as the layer sees them.

    Attributes:
        moments: of tokens, (1/N) Σ t tᵀ with the query among them, ``(trainings, batch, d + 1, d + 1)``.
        queries: ``(trainings, batch, d)``.
        labels: of the queries, ``(trainings, batch)``.
    """

    moments: NDArray
    queries: NDArray
    labels: NDArray


class Trained(NamedTuple):
    """Weights of a training, ``(trainings, d + 1, d + 1)``.

    Attributes:
        halfway: after half of the steps, with a quarter of all step sizes still to come.
        last: at its end.
    """

    halfway: NDArray
    last: NDArray


class Sizes(NamedTuple):
    """How much is drawn.

    Attributes:
        trainings: side by side, each with prompts of its own.
        batch: prompts of each training.
        length: N, examples in a prompt.
    """

    trainings: int
    batch: int
    length: int


def draw(rng: np.random.Generator, variances: NDArray, sizes: Sizes, *, heavy: bool) -> Prompts:
    """Draw prompts, each with a regression of its own.

    Where tails are heavy, four of five inputs are zero and the fifth is √5 times as long: Λ stays as it is.
    """
    d = len(variances)
    shape = (sizes.trainings, sizes.batch, sizes.length + 1)
    x = rng.standard_normal((*shape, d), dtype=np.float32)
    x *= np.sqrt(variances).astype(np.float32)
    if heavy:
        is_long = rng.random((*shape, 1), dtype=np.float32) < HEAVY
        # E x xᵀ is the same as of normal inputs: a share s of them, times 1/√s
        x *= is_long / np.float32(np.sqrt(HEAVY))
    w = rng.standard_normal((*shape[:2], d, 1), dtype=np.float32)
    tokens = np.concatenate([x, x @ w], -1)
    queries = tokens[..., -1, :-1].copy()
    labels = tokens[..., -1, -1].copy()
    tokens[..., -1, -1] = 0
    return Prompts(tokens.swapaxes(-1, -2) @ tokens / sizes.length, queries, labels)


def start(rng: np.random.Generator, trainings: int, d: int, scale: float) -> NDArray:
    """Draw weights: p reads labels alone, K compares inputs alone, by a positive matrix; both have the norm scale."""
    factor = rng.standard_normal((trainings, d, d))
    positive = factor @ factor.swapaxes(1, 2)
    positive /= np.linalg.norm(positive, axis=(1, 2), keepdims=True)
    weights = np.zeros((trainings, d + 1, d + 1))
    weights[:, :d, :d] = scale * positive
    weights[:, d, d] = scale
    return weights


def answers_and_slopes(weights: NDArray, prompts: Prompts) -> tuple[NDArray, NDArray]:
    """Return answers ``(trainings, batch)``, and the gradient of half the mean square of what they leave."""
    p = weights[:, None, :, -1:]
    keys = (prompts.queries @ weights[..., :-1].swapaxes(1, 2))[..., None]
    by_p = (prompts.moments @ keys)[..., 0]
    by_keys = (prompts.moments @ p)[..., 0]
    # pᵀ G K q with the moments G: linear in p and in K, so that the other factors are its slopes
    answers = (by_p * p[..., 0]).sum(-1)
    errors = (answers - prompts.labels) / answers.shape[1]
    slopes = np.empty_like(weights)
    slopes[..., -1] = (errors[:, None] @ by_p)[:, 0]
    slopes[..., :-1] = (errors[..., None] * by_keys).swapaxes(1, 2) @ prompts.queries
    return answers, slopes


def train(
    rng: np.random.Generator,
    variances: NDArray,
    sizes: Sizes,
    first: NDArray,
    lr: float,
    steps: int,
    *,
    heavy: bool,
) -> Trained:
    """Train by Adam on fresh prompts, with a step that falls linearly to zero."""
    weights = halfway = first
    mean = np.zeros_like(first)
    square = np.zeros_like(first)
    for step in range(steps):
        prompts = draw(rng, variances, sizes, heavy=heavy)
        slopes = answers_and_slopes(weights, prompts)[1]
        mean = BETA1 * mean + (1 - BETA1) * slopes
        square = BETA2 * square + (1 - BETA2) * slopes**2
        upward = mean / (1 - BETA1 ** (step + 1))
        size = np.sqrt(square / (1 - BETA2 ** (step + 1))) + EPSILON
        weights = weights - lr * (1 - step / steps) * upward / size
        if step == steps // 2:
            halfway = weights
    return Trained(halfway, weights)


def preconditioner(weights: NDArray) -> NDArray:
    """Return M, where answers depend on inputs and on h = (1/N) Σ y_i x_i by xᵀMh, ``(trainings, d, d)``.

    A label meets an input in two ways: p reads the label and K compares the input, or the other way about.
    """
    p = weights[..., -1]
    k = weights[..., :-1]
    # (p·t)(tᵀKq) has y x in two terms: p_y K_x q and p_x (k_y·q); their sum is hᵀMᵀq
    across = p[:, -1, None, None] * k[:, :-1] + p[:, :-1, None] * k[:, -1:]
    return across.swapaxes(1, 2)


def risk(
    rng: np.random.Generator, variances: NDArray, sizes: Sizes, weights: NDArray, *, heavy: bool
) -> NDArray:
    """Return half the mean square of what the layer leaves on fresh prompts, ``(trainings,)``."""
    prompts = draw(rng, variances, sizes, heavy=heavy)
    answers = answers_and_slopes(weights, prompts)[0]
    return ((answers - prompts.labels) ** 2).mean(1) / 2
