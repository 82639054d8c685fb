"""Parities learned from noisy labels by the least empirical risk, over all subsets of the bits at once."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import hadamard
from scipy.special import ndtri

from steepest.linalg import sequential
from steepest.nn.types import Values

SIZES = (0.4, 5.5)  # least and largest number of examples, times 1/ε²
GRID = 14  # how many numbers in between
USED = 0.35  # shares that are at most so far from ½ enter a threshold


class Study(NamedTuple):
    """What is drawn."""

    lengths: tuple[int, ...]  # of the longest name, of each class
    seeds: int
    draws: int  # for each seed
    ones: float  # chance of a one in the inputs
    read: int  # bits of a name that its function reads: beyond them names are copies

    @property
    def bits(self) -> int:
        """Number of bits of inputs."""
        return max(self.lengths)


def walsh(counts: Values) -> Values:
    """Return Σ_x c(x)(−1)^⟨S, x⟩ for every subset S of the bits, ``(draws, 2^bits)``."""
    bits = counts.shape[1].bit_length() - 1
    high = 2 ** (bits // 2)
    low = 2 ** (bits - bits // 2)
    # one dimension of the square after the other, each as a product of two large matrices
    rows = counts.reshape(-1, low) @ hadamard(low).astype(np.float32)
    columns = rows.reshape(-1, high, low).swapaxes(1, 2).reshape(-1, high)
    sums = columns @ hadamard(high).astype(np.float32)
    return sums.reshape(-1, low, high).swapaxes(1, 2).reshape(len(counts), -1)


def correlations(
    rng: np.random.Generator, study: Study, secrets: Values, samples: int, edge: float
) -> Values:
    """Return the sums of label times parity, for every subset, ``(draws, 2^bits)``.

    Args:
        rng: draws inputs and noise.
        study: what is drawn.
        secrets: the right subset of each draw, as a number, ``(draws,)``.
        samples: how many examples.
        edge: ε; the labels are those of the right parity with chance ½ + ε.
    """
    draws = len(secrets)
    size = 2**study.bits
    if study.ones == 0.5:
        inputs = rng.integers(0, size, (draws, samples), dtype=np.int32)
    else:
        places = 2 ** np.arange(study.bits, dtype=np.int32)
        inputs = (rng.random((draws, samples, study.bits)) < study.ones) @ places
    inputs &= 2**study.read - 1
    # parity of ⟨S, x⟩, the number of ones that both share
    odd = np.bitwise_count(inputs & secrets[:, None]) & 1
    flipped = rng.random((draws, samples), dtype=np.float32) > 0.5 + edge
    labels = np.where(odd ^ flipped, -1.0, 1.0)
    cells = inputs + size * np.arange(draws, dtype=np.int32)[:, None]
    counts = np.bincount(cells.ravel(), labels.ravel(), draws * size)
    return walsh(counts.astype(np.float32).reshape(draws, size))


@sequential
def chosen(
    sums: Values, secrets: Values, study: Study, samples: int, penalty: float = 0.0
) -> Values:
    """Return whether the right subset has the least penalized risk of all up to each length, ``(lengths, draws)``.

    The length of a subset's name is the place of its last bit; it costs ``penalty`` times √(length · log 2/2m). A tie
    is no success, unless it is with another name of the right function.
    """
    place = np.arange(sums.shape[1])
    names = np.ceil(np.log2(place + 1))
    # the risk is ½ − sum/2m: in sums, √(length · log 2/2m) is √(2m · log 2 · length)
    costs = penalty * np.sqrt(2 * samples * np.log(2) * names)
    scores = sums - costs.astype(np.float32)
    draws = np.arange(len(sums))
    right = scores[draws, secrets]
    same = 2**study.read
    for copy in range(0, len(place), same):
        scores[draws, copy + secrets % same] = -np.inf
    return np.array([right > scores[:, : 2**bits].max(1) for bits in study.lengths])


def needed_examples(
    rng: np.random.Generator, study: Study, edge: float, own: int, penalties: tuple[float, ...]
) -> Values:
    """Return how many examples make the right parity the one of least risk, ``(penalties, lengths, seeds)``.

    Args:
        rng: draws subsets, inputs and noise.
        study: what is drawn.
        edge: ε.
        own: length of the right parity's name.
        penalties: factors of the penalty of a name's length, zero for the empirical risk.
    """
    sizes = np.unique((np.geomspace(*SIZES, GRID) / edge**2).astype(int))
    shares = []
    for samples in sizes:
        secrets = rng.integers(2 ** (own - 1), 2**own, study.seeds * study.draws, dtype=np.int32)
        sums = correlations(rng, study, secrets, int(samples), edge)
        right = [chosen(sums, secrets, study, int(samples), p) for p in penalties]
        shares.append(np.reshape(right, (*np.shape(right)[:2], study.seeds, study.draws)).mean(-1))
    return np.apply_along_axis(lambda share: crossing(sizes, share), 0, np.array(shares))


def crossing(samples: Values, shares: Values) -> float:
    """Return at how many examples a share is ½, by a line of its normal quantiles over the root of the number."""
    used = np.abs(shares - 0.5) < USED
    if used.sum() < 2:
        return np.nan
    slope, start = np.polyfit(np.sqrt(samples[used]), ndtri(shares[used]), 1)
    # the normal quantile of ½ is zero
    return float((start / slope) ** 2)
