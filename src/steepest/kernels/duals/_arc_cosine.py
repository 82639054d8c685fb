"""The kernels of a layer of wide rectified linear neurons, as functions of the cosine of two inputs."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float


class ArcCosine(NamedTuple):
    """Kernels of neurons with weights ``w ~ N(0, I)`` on unit vectors x and x′ with the cosine t.

    Attributes:
        outer: ``E relu(⟨w, x⟩) relu(⟨w, x′⟩)``, of output weights.
        inner: ``t P(⟨w, x⟩ ≥ 0, ⟨w, x′⟩ ≥ 0)``, of hidden weights behind output weights with the mean square one.
    """

    outer: Float[np.ndarray, "..."]
    inner: Float[np.ndarray, "..."]


def arc_cosine(t: Float[Any, "..."]) -> ArcCosine:
    r"""Compute the arc-cosine kernel of degree one, and t times that of degree zero.

    With the angle ``θ = arccos t``,

    .. math:: K_{outer} = \frac{\sin θ + (π − θ)\cos θ}{2π}, \qquad K_{inner} = \frac{(π − θ)\, t}{2π},

    half of J₁/π and of t J₀/π in the source, where gates carry the factor two. The tangent kernel of both layers in
    the NTK parameterization, ``f = Σ a_j relu(⟨w_j, x⟩)/√m`` with all weights of variance one, is their sum.

    Args:
        t: cosines; what rounding leaves beyond ±1 is cut off.

    Source: Cho and Saul 2009, section 2.1.

    >>> [round(float(value), 6) for value in arc_cosine(1.0)], [round(float(value), 6) for value in arc_cosine(0.0)]
    ([0.5, 0.5], [0.159155, 0.0])
    """
    cosine = np.clip(np.asarray(t, float), -1, 1)
    beyond = np.pi - np.arccos(cosine)
    # sin θ = √(1 − t²)
    outer = (np.sqrt(1 - cosine**2) + cosine * beyond) / (2 * np.pi)
    return ArcCosine(outer, cosine * beyond / (2 * np.pi))
