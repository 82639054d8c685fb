"""How far Adam's first step moves the outputs of a wide network towards their labels.

The network is f(x) = v·φ(Wφ(Ux)), φ the rectifier, with two hidden layers of N neurons and weights of variance 2/d, 2/N
and 1/N. It is trained by half the mean square of f − f₀ − y, f₀ its start, so that errors begin at −y. The first step
of Adam is −η sign(g) for each weight, and to first order in η it moves outputs by

    (1/B) Σ_b y_b Δf(b) = η ‖g‖₁ .

With z₁, z₂ what enters the hidden neurons and D what comes back to the first of them, the norms of the three parts are

    hidden:   (1/B) Σ_ij |v_i| |Σ_b y_b φ'(z₂ᵢ(b)) φ(z₁ⱼ(b))|  =  a N^{3/2}
    read-out: (1/B) Σ_i |Σ_b y_b φ(z₂ᵢ(b))|                    =  b N
    inputs:   (1/B) Σ_jk |Σ_b y_b D_j(b) φ'(z₁ⱼ(b)) x_k(b)|    =  c √N

In the limit z₁, z₂ and √N D are independent Gaussian vectors over the batch for each neuron, with the covariances
2 xᵀx'/d, 2 E φ(z₁)φ(z₁') and 2 E φ'(z₂)φ'(z₂'). So a, b and c are means over them.
"""

from typing import NamedTuple

import numpy as np

from steepest.kernels import arc_cosine
from steepest.nn.types import Values

BLOCKS = 80
NEURONS = 250  # of each layer in a block, and as many with opposite signs


class Parts(NamedTuple):
    """What the first step of each part moves, before powers of N.

    Attributes:
        means: a, b and c, ``(3,)``.
        errors: relative standard errors of these means, ``(3,)``.
    """

    means: Values
    errors: Values


class Covariances(NamedTuple):
    """Of what reaches a neuron, over a batch, each ``(batch, batch)``.

    Attributes:
        first: of z₁.
        second: of z₂.
        back: of √N D.
    """

    first: Values
    second: Values
    back: Values


def cosines(covariance: Values) -> Values:
    """Return the correlations of a covariance."""
    sizes = np.sqrt(np.diag(covariance))
    return np.clip(covariance / np.outer(sizes, sizes), -1, 1)


def covariances(x: Values) -> Covariances:
    """Return the covariances for a batch of inputs ``(batch, d)``."""
    first = 2 * x @ x.T / x.shape[1]
    sizes = np.sqrt(np.diag(first))
    # 2 E φ(z)φ(z') = 2 √(Var z Var z') κ₁, twice the arc-cosine kernel of degree one
    second = 2 * np.outer(sizes, sizes) * arc_cosine(cosines(first)).outer
    # two neurons of a Gaussian pair with the angle θ are both active with the probability (π − θ)/2π
    back = 1 - np.arccos(cosines(second)) / np.pi
    return Covariances(first, second, back)


def gaussian(rng: np.random.Generator, covariance: Values) -> Values:
    """Draw Gaussian vectors of some covariance, half of them the others with opposite signs, ``(2 NEURONS, batch)``."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))
    drawn = rng.standard_normal((NEURONS, len(values))) @ root.T
    return np.concatenate([drawn, -drawn])


def parts(x: Values, y: Values) -> Parts:
    """Return a, b and c for a batch of inputs ``(batch, d)`` with labels ±1."""
    rng = np.random.default_rng(0)
    of_batch = covariances(x)
    blocks = np.empty((BLOCKS, 3))
    for block in range(BLOCKS):
        first = gaussian(rng, of_batch.first)
        second = gaussian(rng, of_batch.second)
        back = gaussian(rng, of_batch.back)
        rng.shuffle(back)  # else its signs are those of the first layer
        gated = y * (second > 0)
        # E|v_i| = √(2/π)/√N, and v_i is independent of gates; all pairs of neurons, (500, 500)
        hidden = np.sqrt(2 / np.pi) * np.abs(gated @ np.maximum(first, 0).T).mean()
        readout = np.abs(np.maximum(second, 0) @ y).mean()
        inputs = np.abs((y * back * (first > 0)) @ x).sum(1).mean()
        blocks[block] = hidden, readout, inputs
    means = blocks.mean(0)
    errors = blocks.std(0, ddof=1) / np.sqrt(BLOCKS) / means
    return Parts(means / len(x), errors)


def powers(width: int) -> Values:
    """Return N^{3/2}, N and √N.

    >>> [float(power) for power in powers(4)]
    [8.0, 4.0, 2.0]
    """
    return width ** np.array([1.5, 1.0, 0.5])
