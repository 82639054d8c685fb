"""How much an adapter's first step changes the outputs of its layer, from the batch's inputs and errors alone.

An adapter adds γBAx to a layer's output Wx, with A of shape (r, n), entries N(0, 1/n), and B = 0. Rows of AX, with the
m inputs of the batch in X, are normals a_k of covariance Γ = XᵀX/n, and the gradient at B is (γ/m)Σ_k Y a_k, Y the
gradients of each example's loss at the outputs, (outputs, m). Descent moves outputs by −(γ²η/m) Y Σ_k a_k a_kᵀ, and
Adam, whose first step is the sign, by −γη Σ_k sign(Y a_k) a_kᵀ.
"""

from typing import NamedTuple

import numpy as np

from steepest.nn.types import Values


class Batch(NamedTuple):
    """What a layer sees of a batch.

    Attributes:
        x: its inputs, ``(n, m)``.
        y: gradients of each example's loss at its outputs, ``(outputs, m)``.
    """

    x: Values
    y: Values


class Sizes(NamedTuple):
    """Constants of the mean squares: ``r(r + 1) a + r b`` of descent, ``r c + r(r − 1) e`` of Adam."""

    a: float
    b: float
    c: float
    e: float

    @property
    def rank(self) -> float:
        """Return r* = b/a, where descent goes over from √r to r."""
        return self.b / self.a


def sizes(batch: Batch) -> Sizes:
    """Return the constants of a batch, for mean squares over its examples and outputs.

    With E S² = r(r + 1)Γ² + r tr(Γ) Γ of a Wishart matrix S, and E sign(⟨y, a⟩) a = √(2/π) Γy/√(yᵀΓy).
    """
    x = np.asarray(batch.x, float)
    y = np.asarray(batch.y, float)
    gram = x.T @ x / len(x)
    correlated = y @ gram
    square = (correlated**2).sum(1)
    lengths = (correlated * y).sum(1)
    live = lengths > 0  # outputs that have an error; Adam does not move others
    examples = x.shape[1]
    entries = y.size
    return Sizes(
        # descent: yᵀE S²y = r(r + 1) yᵀΓ²y + r tr Γ yᵀΓy, over m²
        square.sum() / examples**2 / entries,
        np.trace(gram) * lengths.sum() / examples**2 / entries,
        # Adam: r terms E‖a‖² = tr Γ, r(r − 1) pairs ‖E sign(⟨y, a⟩)a‖² = (2/π) yᵀΓ²y/yᵀΓy
        np.trace(gram) * live.sum() / entries,
        2 / np.pi * (square[live] / lengths[live]).sum() / entries,
    )


def by_descent(of: Sizes, rank: Values) -> Values:
    """Return the mean square change of outputs by descent with γ = η = 1."""
    return rank * (rank + 1) * of.a + rank * of.b


def by_adam(of: Sizes, rank: Values) -> Values:
    """Return the mean square change of outputs by Adam with γ = η = 1."""
    return rank * of.c + rank * (rank - 1) * of.e
