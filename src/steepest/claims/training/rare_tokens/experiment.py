"""Softmax regression on pairs of words, trained on random batches by descent and by Adam."""

import numpy as np
from numpy.typing import NDArray

EPSILON = 1e-12
PATIENCE = 200_000  # steps, after which a word counts as never learned


def shares(
    rng: np.random.Generator, chances: NDArray, words: NDArray, batch: int, runs: int
) -> NDArray:
    """Draw a batch for each run, and return the share of some words in it, ``(runs, words)``."""
    return rng.multinomial(batch, chances, size=runs)[:, words] / batch


def probabilities(scores: NDArray) -> NDArray:
    """Return the softmax of scores along the last axis."""
    sizes = np.exp(scores)
    return sizes / sizes.sum(-1, keepdims=True)


def gradient(chances: NDArray, share: NDArray, targets: NDArray) -> NDArray:
    """Return the gradient of the cross-entropy in the scores.

    Chances that the model gives are ``(runs, words, vocabulary)``, shares of the words in the batch ``(runs, words)``,
    and the places of the words that follow ``(words,)``.
    """
    # ∂/∂scores of −log P is the softmax less one at the right word
    errors = chances.copy()
    errors[:, np.arange(len(targets)), targets] -= 1
    return share[..., None] * errors


def steps_to_half(
    rng: np.random.Generator,
    chances: NDArray,
    words: NDArray,
    targets: NDArray,
    batch: int,
    eta: float,
    runs: int,
    betas: tuple[float, float] | None = None,
) -> NDArray:
    """Return after how many steps each word's successor has a half of the probability, ``(runs, words)``.

    Each word has scores of its own for all that may follow, so that only those of the words asked for are trained.
    Descent, or Adam where there are betas.
    """
    scores = np.zeros((runs, len(words), len(chances)))
    average = np.zeros_like(scores)
    squares = np.zeros_like(scores)
    when = np.full((runs, len(words)), np.inf)
    for taken in range(PATIENCE):
        model = probabilities(scores)
        learned = model[:, np.arange(len(words)), targets] >= 0.5
        when = np.where(learned, np.minimum(when, taken), when)
        if np.isfinite(when).all():
            break
        slope = gradient(model, shares(rng, chances, words, batch, runs), targets)
        if betas is None:
            scores -= eta * slope
            continue
        beta1, beta2 = betas
        average += (1 - beta1) * (slope - average)
        squares += (1 - beta2) * (slope**2 - squares)
        mean = average / (1 - beta1 ** (taken + 1))
        scale = np.sqrt(squares / (1 - beta2 ** (taken + 1))) + EPSILON
        scores -= eta * mean / scale
    return when
