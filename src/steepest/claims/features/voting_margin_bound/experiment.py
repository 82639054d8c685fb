"""Votes of stumps: the luckiest on coin tosses, and those of AdaBoost on labels of several noises."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.dynamics import adaboost
from steepest.programs import hard_margin

FEATURES = 8  # of which the first three vote on the label
CELLS = 16  # of the grid of thresholds in each feature
VOTERS = 3
TOSSES = 50  # of coins for all examples of a sample
TESTED = 20_000  # examples on which errors are measured
# Multiples of the largest margin that three equal voters have. More of them cost confidence.
THETAS = np.array([0.03, 0.06, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9]) / VOTERS


class Setting(NamedTuple):
    """Examples of one size a list entry: votes of all stumps and labels, of every noise and sample."""

    votes: list[kit.Values]  # (seeds, n, stumps)
    labels: list[kit.Values]  # (seeds, noises, n)


class Fresh(NamedTuple):
    """Examples on which errors are measured, with labels of every noise."""

    votes: kit.Values  # (tested, stumps)
    labels: list[kit.Values]


def draw_examples(
    rng: np.random.Generator,
    sizes: Sequence[int],
    noises: Sequence[float],
    seeds: int,
    copied: float,
) -> Setting:
    """Draw uniform points, of which a part are copies of the first, and their labels."""
    votes = []
    labels = []
    for n in sizes:
        x = rng.random((seeds, n, FEATURES))
        copies = int(copied * n)
        x[:, :copies] = x[:, :1]
        votes.append(stumps(x))
        labels.append(np.stack([label(x, noise, rng) for noise in noises], axis=1))
    return Setting(votes, labels)


def draw_fresh(rng: np.random.Generator, noises: Sequence[float]) -> Fresh:
    """Draw examples on which errors are measured."""
    x = rng.random((TESTED, FEATURES))
    return Fresh(stumps(x), [label(x, noise, rng) for noise in noises])


def toss(setting: Setting, fresh: Fresh, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Toss a coin for each example, and take the stump or negated stump that is right most often.

    Returns:
        ``luck``, its mean product with the tosses, and ``gap``, its error on fresh tosses minus that on its own, both
        ``(sizes, seeds, tosses)``; ``true_luck``, the same product with the true labels, ``(sizes, seeds)``.
    """
    tosses = rng.choice([-1.0, 1.0], len(fresh.votes))
    on_fresh = (tosses @ fresh.votes) / len(tosses)
    luck = []
    gap = []
    true_luck = []
    for votes, labels in zip(setting.votes, setting.labels, strict=True):
        for sample, ys in zip(votes, labels, strict=True):
            n = len(sample)
            products = rng.choice([-1.0, 1.0], (TOSSES, n)) @ sample / n
            best = np.abs(products).argmax(1)
            own = products[np.arange(TOSSES), best]
            luck.append(np.abs(own))
            gap.append(
                (np.abs(own) - np.sign(own) * on_fresh[best]) / 2
            )  # an error is (1 − product)/2
            true_luck.append(np.abs(ys[0] @ sample).max() / n)
    shape = (len(setting.votes), -1)
    return {
        "luck": np.reshape(luck, (*shape, TOSSES)),
        "gap": np.reshape(gap, (*shape, TOSSES)),
        "true_luck": np.reshape(true_luck, shape),
    }


def boost(
    setting: Setting, fresh: Fresh, rounds: int, looked_at: Sequence[int]
) -> dict[str, np.ndarray]:
    """Boost on each sample and noise, and look at votes after some rounds.

    Returns:
        ``violations`` of each θ ``(sizes, seeds, noises, rounds, thetas)``, and ``error`` on fresh examples and
        ``training`` error without the last axis.
    """
    run = kit.compiled(lambda votes, y: adaboost(votes, y, rounds)[:2])
    violations = []
    errors = []
    training = []
    for votes, labels in zip(setting.votes, setting.labels, strict=True):
        for sample, ys in zip(votes, labels, strict=True):
            for y, fresh_y in zip(ys, fresh.labels, strict=True):
                chosen, amount = (np.asarray(part) for part in run(sample, y))
                for last in looked_at:
                    w = np.bincount(chosen[:last], amount[:last], sample.shape[1])
                    w /= np.abs(w).sum()
                    margin = y * (sample @ w)
                    training.append(np.mean(margin <= 0))
                    violations.append([np.mean(margin <= theta) for theta in THETAS])
                    errors.append(np.mean(fresh_y * (fresh.votes @ w) <= 0))
    shape = (len(setting.votes), -1, len(fresh.labels), len(looked_at))
    return {
        "violations": np.reshape(violations, (*shape, len(THETAS))),
        "error": np.reshape(errors, shape),
        "training": np.reshape(training, shape),
    }


def stumps(x: kit.Values) -> kit.Values:
    """Return the votes ±1 of all stumps ``x_j > k/16``, shape ``(…, n, stumps)``."""
    thresholds = np.arange(1, CELLS) / CELLS
    votes = np.where(x[..., None] > thresholds, 1.0, -1.0)
    return votes.reshape(*x.shape[:-1], -1)


def largest_margin(votes: kit.Values, y: kit.Values) -> float:
    """Return the largest margin of any vote of ℓ1 norm one; zero where none is right on all examples."""
    program = hard_margin(votes, y, "l1")
    return program.margin if program.separable else 0.0


def label(x: kit.Values, noise: float, rng: np.random.Generator) -> kit.Values:
    """Return the majority of three halves, replaced by a coin with a probability."""
    majority = np.sign(np.sign(x[..., :VOTERS] - 0.5).sum(-1))
    coin = rng.choice([-1.0, 1.0], majority.shape)
    return np.where(rng.random(majority.shape) < noise, coin, majority)
