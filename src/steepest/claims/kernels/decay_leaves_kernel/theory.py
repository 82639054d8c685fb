"""The limit of wide networks under weight decay: a linear recursion whose kernel shrinks, or stays."""

import numpy as np

from steepest.nn.types import Values


def tangent_kernel(x: Values, power: int) -> Values:
    """Return the tangent kernel of n^(−1/2) Σ v_j relu(⟨w_j, x⟩)^p at infinite width, for unit rows x, ``(n, n)``.

    With v and w standard normal it is E σ(z)σ(z') + p² ⟨x, x'⟩ E relu(z)^(p−1) relu(z')^(p−1), both arc-cosine kernels
    (Cho and Saul 2009).
    """
    cosine = np.clip(x @ x.T, -1, 1)
    return _arc_cosine(cosine, power) + power**2 * cosine * _arc_cosine(cosine, power - 1)


def follow(
    kernel: Values, y: Values, *, rate: float, decay: float, shrink: float, fade: float, steps: int
) -> Values:
    """Return outputs along descent at infinite width from zero, ``(steps + 1, n)``.

    A step θ ← (1 − ηλ)θ − η∇R of a network that is homogeneous of degree D multiplies outputs by (1 − ηλ)^D, and moves
    them by the kernel. In k steps the weights of the start shrink by c = (1 − ηλ)^k, their kernel by c^(2D−2); what is
    learned is n^(−1/2) of each weight. The move is between weights at k and at k + 1, which is the half power more.
    Decay towards the start is linear in what is learned: outputs fade by 1 − ηλ, and the kernel stays.

    Args:
        kernel: of the start.
        y: targets; R is the mean of ½(f − y)².
        rate: η.
        decay: λ.
        shrink: power of 1 − ηλ by which the kernel shrinks in a step, 2D − 2.
        fade: power of 1 − ηλ by which outputs shrink, D.
        steps: k.
    """
    keep = 1 - rate * decay
    outputs = np.zeros(len(y))
    path = [outputs]
    for k in range(steps):
        pull = rate / len(y) * kernel @ (y - outputs)
        outputs = keep**fade * outputs + keep ** (shrink * (k + 0.5)) * pull
        path.append(outputs)
    return np.stack(path)


def _arc_cosine(cosine: Values, order: int) -> Values:
    """Return E relu(z)^n relu(z')^n for unit variances of correlation ``cosine``, n = 0, 1 or 2."""
    angle = np.arccos(cosine)
    opening = np.pi - angle
    sine = np.sin(angle)
    # J₀, J₁ and J₂ of the arc-cosine kernels (Cho and Saul 2009)
    forms = (opening, sine + opening * cosine, 3 * sine * cosine + opening * (1 + 2 * cosine**2))
    return forms[order] / (2 * np.pi)
