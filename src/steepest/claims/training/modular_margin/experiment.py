"""Training of quadratic networks on tables of p × p labels, with decay, and what is learned."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RATE = 0.02  # of Adam
BETA1 = 0.9
BETA2 = 0.999
EPSILON = 1e-8
SPREAD = 0.3  # of weights at the start
CHECKED = 0.9  # of the steps, after which margins are read once before the end


class Trained(NamedTuple):
    """Networks of a table, one for each row of decays.

    Attributes:
        weights: u, v and w of each neuron, ``(3, networks, neurons, p)``.
        earlier: the same at nine tenths of the training.
    """

    weights: NDArray
    earlier: NDArray


class Learned(NamedTuple):
    """What networks have learned, ``(networks,)`` each.

    Attributes:
        margin: the smallest over examples and wrong labels, over the size.
        size: sum of cubes of the neurons' norms.
        in_one_frequency: share of squares of weights in the frequency of each neuron, weighted by size.
        least: share of the size of the rarest frequency.
        most: share of the size of the commonest frequency.
    """

    margin: NDArray
    size: NDArray
    in_one_frequency: NDArray
    least: NDArray
    most: NDArray


def outputs(weights: NDArray) -> tuple[NDArray, NDArray]:
    """Return u(a) + v(b), ``(networks, neurons, p²)``, and outputs for each label, ``(networks, p², p)``."""
    u, v, w = weights
    sums = (u[..., :, None] + v[..., None, :]).reshape(*u.shape[:2], -1)
    return sums, np.swapaxes(sums**2, 1, 2) @ w


def slopes(weights: NDArray, correct: NDArray) -> NDArray:
    """Return gradients of the mean cross-entropy, for labels as rows of zeros and a one, ``(p², p)``."""
    u, _, w = weights
    sums, scores = outputs(weights)
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    errors = exponentials / exponentials.sum(-1, keepdims=True) - correct
    errors /= len(correct)
    of_w = sums**2 @ errors
    # the square has the slope 2(u(a) + v(b)); u(a) is in all b, and v(b) in all a
    of_sums = 2 * sums * (w @ np.swapaxes(errors, 1, 2))
    of_sums = of_sums.reshape(*u.shape, u.shape[-1])
    return np.stack([of_sums.sum(3), of_sums.sum(2), of_w])


def norms(weights: NDArray) -> NDArray:
    """Return the norm of each neuron, ``(networks, neurons)``."""
    return np.sqrt((weights**2).sum((0, -1)))


def train(
    rng: np.random.Generator, correct: NDArray, neurons: int, decays: NDArray, steps: int
) -> Trained:
    """Train by Adam on all examples, with the slope of λ Σ‖θ‖³ added; the rate falls to zero in the second half."""
    p = correct.shape[1]
    shape = (3, len(decays), neurons, p)
    weights = SPREAD * rng.standard_normal(shape).astype(np.float32)
    pulls = 3 * decays.astype(np.float32)[:, None, None]
    correct = correct.astype(np.float32)
    mean = np.zeros_like(weights)
    square = np.zeros_like(weights)
    earlier = weights
    for number in range(1, steps + 1):
        # λ‖θ‖³ has the slope 3λ‖θ‖θ
        slope = slopes(weights, correct) + pulls * norms(weights)[..., None] * weights
        mean = BETA1 * mean + (1 - BETA1) * slope
        square = BETA2 * square + (1 - BETA2) * slope**2
        rate = np.float32(RATE * min(1, 2 * (1 - number / steps)))
        along = mean / np.float32(1 - BETA1**number)
        length = np.sqrt(square / np.float32(1 - BETA2**number)) + np.float32(EPSILON)
        weights = weights - rate * along / length
        if number == round(CHECKED * steps):
            earlier = weights
    return Trained(weights, earlier)


def learned(weights: NDArray, correct: NDArray) -> Learned:
    """Return what networks have learned of a table."""
    weights = weights.astype(float)
    scores = outputs(weights)[1]
    right = (scores * correct).sum(-1)
    wrong = np.where(correct > 0, -np.inf, scores).max(-1)
    cubes = norms(weights) ** 3
    size = cubes.sum(-1)
    p = weights.shape[-1]
    powers = np.abs(np.fft.fft(weights, axis=-1)[..., 1 : (p + 1) // 2]) ** 2
    # a frequency stands at k and at p − k, and all squares add up to p times those of the weights
    shares = 2 * powers.sum(0) / (p * norms(weights) ** 2)[..., None]
    place = shares.argmax(-1)
    parts = cubes / size[:, None]
    of_frequency = np.stack(
        [np.where(place == k, parts, 0).sum(-1) for k in range(powers.shape[-1])], -1
    )
    return Learned(
        (right - wrong).min(-1) / size,
        size,
        (shares.max(-1) * parts).sum(-1),
        of_frequency.min(-1),
        of_frequency.max(-1),
    )


def addition(p: int) -> NDArray:
    """Return labels of a + b mod p, rows of zeros and a one, ``(p², p)``."""
    numbers = np.arange(p)
    return np.eye(p)[(numbers[:, None] + numbers) % p].reshape(p * p, p)


def random_table(rng: np.random.Generator, p: int) -> NDArray:
    """Return labels that are drawn independently, ``(p², p)``."""
    return np.eye(p)[rng.integers(p, size=p * p)]
