"""Policies with a softmax over a few answers, taught by groups of sampled answers that are right or wrong."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MEAN = 0
"""The advantage is the reward less its mean over the group."""
DEVIATION = 1
"""That, divided by the group's deviation."""
RAW = 2
"""The advantage is the reward."""


class Lanes(NamedTuple):
    """Questions that are learned side by side, arrays of one length.

    Attributes:
        rule: how rewards become advantages.
        group: sampled answers in a step.
        start: chance of the right answer at first.
        informed: whether rewards know which answer is right; else they are tossed, as often right as at the start.
    """

    rule: NDArray
    group: NDArray
    start: NDArray
    informed: NDArray


def learn(
    rng: np.random.Generator, lanes: Lanes, answers: int, lr: float, longest: float
) -> NDArray:
    """Return when the right answer, which is the first, has the chance one half, or ``longest`` if it has not by then.

    Args:
        rng: of answers and tosses.
        lanes: the questions.
        answers: K.
        lr: η; times are η times the steps.
        longest: time at which all end.
    """
    logits = np.zeros((len(lanes.group), answers))
    # p = e^z/(e^z + K − 1) where all other logits are zero
    logits[:, 0] = np.log(lanes.start * (answers - 1) / (1 - lanes.start))
    arrived = np.full(len(logits), longest)
    active = np.arange(len(logits))
    chances = softmax(logits)
    for step in range(1, int(longest / lr) + 1):
        going_on = Lanes(*(values[active] for values in lanes))
        before = chances
        logits = logits + lr * update(rng, going_on, chances)
        chances = softmax(logits)
        over = chances[:, 0] >= 0.5
        if over.any():
            # the step is cut where the chance passes one half
            part = (0.5 - before[over, 0]) / (chances[over, 0] - before[over, 0])
            arrived[active[over]] = lr * (step - 1 + part)
            active = active[~over]
            logits = logits[~over]
            chances = chances[~over]
        if not len(active):
            break
    return arrived


def update(rng: np.random.Generator, lanes: Lanes, chances: NDArray) -> NDArray:
    """Return the mean over a group of advantage times the gradient of log π, ``(lanes, answers)``."""
    counts = rng.multinomial(lanes.group, chances)
    group = lanes.group[:, None]
    rewarded = np.zeros_like(counts)
    rewarded[:, 0] = counts[:, 0]
    tossed = rng.binomial(counts, np.broadcast_to(lanes.start[:, None], counts.shape))
    rewarded = np.where(lanes.informed[:, None], rewarded, tossed)
    mean = rewarded.sum(1, keepdims=True) / group
    baseline = np.where(lanes.rule[:, None] == RAW, 0, mean)
    # rewards are 0 or 1, of variance q(1 − q)
    deviation = np.sqrt(mean * (1 - mean))
    divides = (lanes.rule[:, None] == DEVIATION) & (deviation > 0)
    scale = np.where(divides, 1 / np.where(deviation > 0, deviation, 1), 1.0)
    # sum of advantages of each answer that was sampled
    advantage = (rewarded - baseline * counts) * scale / group
    # Σ_a A_a (e_a − π), as ∂ log π_a/∂(logits) = e_a − π
    return advantage - chances * advantage.sum(1, keepdims=True)


def softmax(logits: NDArray) -> NDArray:
    """Return chances of answers."""
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)
