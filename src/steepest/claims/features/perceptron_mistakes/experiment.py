"""The perceptron of a Gram matrix, with what the proof says of its weights along the way."""

from typing import NamedTuple

import numpy as np

from steepest.linalg import sequential
from steepest.nn.types import Values
from steepest.programs import MarginProgram


class Examples(NamedTuple):
    """One data set, as the algorithm and the theory see it."""

    name: str
    gram: Values  # of y_i x_i, (n, n)
    labels: Values  # (n,)
    dimension: float  # of the features; infinite where there is no limit
    program: MarginProgram


class Run(NamedTuple):
    """One run of the perceptron: its errors, and the worst of both halves of the proof along it."""

    mistakes: int
    length: float  # largest ‖w‖²/(R² M)
    progress: float  # least ⟨w, u⟩/(γM)


def limit(one: Examples) -> float:
    """Return (R/γ)²."""
    return float(one.gram.diagonal().max() / one.program.margin**2)


@sequential
def perceptron(
    one: Examples, order: Values | None, cap: int, *, always: bool = False, behind: float = 0.0
) -> Run:
    """Run the perceptron in the features of a Gram matrix until a pass has no error, or ``cap`` errors.

    Args:
        one: the set.
        order: of the examples in each pass; None for an adversary, who presents the error that is least wrong.
        cap: errors after which it is given up.
        always: add examples that are right too (for as many as the set has).
        behind: start at ``-behind R²/γ u`` instead of zero.
    """
    gram = one.gram
    radius = gram.diagonal().max()
    margin = one.program.margin
    best = gram @ (one.program.direction * one.labels)  # ⟨u, y_i x_i⟩
    # of w = −behind R²/γ u, with R² the radius here
    outputs = -behind * radius / margin * best
    square = (behind * radius / margin) ** 2
    along = -behind * radius / margin
    mistakes = 0
    longest = 0.0
    least = np.inf
    ended = False
    while mistakes < cap and not ended:
        before = mistakes
        for i in _presented(outputs, order):
            if outputs[i] > 0 and not always:
                continue
            # ‖w + z_i‖² = ‖w‖² + 2⟨w, z_i⟩ + ‖z_i‖²: by R² more at most after an error
            square += 2 * outputs[i] + gram[i, i]
            # and ⟨w, u⟩ grows by ⟨u, z_i⟩ ≥ γ
            along += best[i]
            outputs = outputs + gram[i]
            mistakes += 1
            longest = max(longest, square / (radius * mistakes))
            least = min(least, along / (margin * mistakes))
            if mistakes >= cap:
                break
        ended = mistakes == before or always
    return Run(mistakes, float(longest), float(least))


def _presented(outputs: Values, order: Values | None) -> Values:
    """Return the examples of one pass: all in their order, or the adversary's one."""
    if order is not None:
        return order
    wrong = np.flatnonzero(outputs <= 0)
    return wrong[np.argsort(-outputs[wrong])[:1]]
