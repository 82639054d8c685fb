"""Measure the margins of parities: programs over neurons and over explicit gates, and sampled correlations.

Nothing here knows a kernel of the library: frozen features are gates that are drawn, and in many dimensions the chance
that two inputs open one gate is the angle between them by its tangent.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steepest import kit
from steepest.nn.data import hypercube
from steepest.programs import kernel_margin, neuron_margin

GATES = 10_000  # of a program: its margin is off by 0.8 % at k = 4


def measure_margins(
    rng: np.random.Generator,
    bits: Sequence[int],
    dimensions: Sequence[int],
    large: Sequence[int],
    *,
    groups: int,
    gates: int,
    samples: int,
    gate_dimension: int,
) -> kit.Observation:
    """Return the margins of all parities on whole cubes, and of the same in many dimensions."""
    seed = int(rng.integers(2**31))
    frozen = np.array([[gate_margins(rng, d, k, groups, gates) for d in dimensions] for k in bits])
    tangent, bounded = np.moveaxis(frozen, 2, 0)
    of_two, of_two_bounded = gate_margins(rng, gate_dimension, 2, groups, gates // 5)
    of_three = gate_margins(rng, 3, 2, groups, gates)[0]
    sampled = [
        [[sampled_margin(rng, d, k, samples) for d in large] for k in bits] for _ in range(groups)
    ]
    return kit.seen(
        first=("bits dimension", [[best_neurons(d, k, seed) for d in dimensions] for k in bits]),
        program=("bits dimension", [[gate_program(rng, d, k) for d in dimensions] for k in bits]),
        tangent=("bits dimension draw", tangent),
        bounded=("bits dimension draw", bounded),
        sampled=("draw bits large", sampled),
        ratio=("draw", best_neurons(3, 2, seed) / of_three),
        gates=("draw", of_two_bounded / of_two),
    )


def cube(d: int, k: int) -> tuple[NDArray, NDArray]:
    """Return the unit points of the cube and the parity of their first k bits."""
    signs = hypercube(d)
    return signs / np.sqrt(d), signs[:, :k].prod(1)


def best_neurons(d: int, k: int, seed: int) -> float:
    """Return the margin of the parity on the whole cube over all ReLU neurons, by a search for neurons."""
    x, y = cube(d, k)
    return neuron_margin(x, y, 1e-8, seed=seed).margin


def gate_program(rng: np.random.Generator, d: int, k: int) -> float:
    """Return the largest margin of the parity on the whole cube over drawn frozen features."""
    x, y = cube(d, k)
    # the kernel is the mean over gates of ⟨x 1[open], x' 1[open]⟩
    is_open = (rng.normal(size=(GATES, d)) @ x.T >= 0).astype(float)
    return kernel_margin((is_open.T @ is_open / GATES) * (x @ x.T), y).margin


def gate_margins(
    rng: np.random.Generator, d: int, k: int, groups: int, gates: int
) -> tuple[NDArray, NDArray]:
    """Return √E|u|² and E|u| over drawn gates, with uniform weights on the cube, ``(groups,)`` each."""
    lengths = np.array([gate_lengths(rng, d, k, gates) for _ in range(groups)])
    return np.sqrt((lengths**2).mean(1)), lengths.mean(1)


def gate_lengths(rng: np.random.Generator, d: int, k: int, gates: int) -> NDArray:
    """Return ‖E y x 1[⟨w, x⟩ ≥ 0]‖ over the cube for so many gates w ~ N(0, I)."""
    x, y = cube(d, k)
    w = rng.normal(size=(gates, d))
    return np.linalg.norm(((w @ x.T >= 0) * y) @ x / len(x), axis=1)


def sampled_margin(rng: np.random.Generator, d: int, k: int, samples: int) -> float:
    """Return √(E χ ⟨x, x'⟩ P(both open)) at one x', over sampled bits beyond the first k and all values of these.

    With uniform weights on the cube that is √E|u|²; the first k bits matter only through how many of them are turned.
    """
    others = 2 * rng.binomial(d - k, 0.5, samples) - (d - k)
    turned = np.arange(k + 1)
    ways = np.array([1.0])
    for _ in range(k):
        ways = np.convolve(
            ways, [0.5, -0.5]
        )  # binomial coefficients with the parity's signs, over 2^k
    # k − 2j from the first bits, of which j are turned, and a binomial sum from the others, over d
    cosine = (k - 2 * turned[:, None] + others) / d
    # P(⟨w, x⟩, ⟨w, x'⟩ ≥ 0) = (π − θ)/2π for Gaussian w
    angle = np.arctan2(np.sqrt(1 - cosine**2), cosine)
    both_open = 0.5 - angle / (2 * np.pi)
    return float(np.sqrt((ways @ (cosine * both_open)).mean()))
