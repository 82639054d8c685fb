"""Mean breakpoints of a neuron given the layers below, and by its signs at two ends."""

from collections.abc import Sequence

import numpy as np

from steepest import kit
from steepest.geometry import Layer, trace
from steepest.kernels import arc_cosine


def features_below(layers: Sequence[Layer], ends: kit.Values, c_w: float, c_b: float) -> kit.Values:
    """Return ``φ = (√C_b, √(C_w/n) σ(z))`` of the layer below the last hidden one at all places of a segment.

    A neuron of the last hidden layer is ``g·φ`` with standard normal g. Shape ``(places, 1 + n)``.
    """
    below = trace(layers[:-2], ends).outputs
    active = np.maximum(below, 0) * (c_w / below.shape[1]) ** 0.5
    return np.concatenate([np.full((len(active), 1), c_b**0.5), active], 1)


def conditional_mean(features: kit.Values) -> kit.Values:
    """Return the mean zeros of a neuron given those below, ``Σ ∠(φ(t_i), φ(t_{i+1}))/π`` (Edelman and Kostlan 1995).

    Returns:
        that; and the angle of the two ends alone, shape ``(2,)``.
    """
    features = features / np.linalg.norm(features, axis=1, keepdims=True)
    # φ is affine between two places: its direction runs along the great arc of both
    chords = np.linalg.norm(features[1:] - features[:-1], axis=1)
    across = np.linalg.norm(features[-1] - features[0])
    return np.array([_angle(chords).sum(), _angle(across)]) / np.pi


def _angle(chord: kit.Values) -> kit.Values:
    """Return the angle of two unit vectors at this distance."""
    # the arcsine of the chord keeps small angles, of which the arccosine loses half of the digits
    return 2 * np.arcsin(np.minimum(chord / 2, 1))


def signs_at_the_ends(ends: kit.Values, depth: int, c_w: float, c_b: float) -> kit.Values:
    """Return how often a neuron's signs differ at two ends, at infinite width: arccos ρ_l/π, mean over segments."""
    # covariance of preactivations at both ends, (…, 2, 2)
    gram = c_b + c_w / ends.shape[-1] * (ends @ np.swapaxes(ends, -1, -2))
    first = gram[..., 0, 0]
    last = gram[..., 1, 1]
    mixed = gram[..., 0, 1]
    shares = []
    for _ in range(depth):
        root = np.sqrt(first * last)
        cosine = np.clip(mixed / root, -1, 1)
        # two Gaussians of correlation ρ differ in sign with the probability arccos ρ/π
        shares.append(np.mean(np.arccos(cosine)) / np.pi)
        # E σ(u)σ(v) = √(Var u Var v) κ₁(ρ), κ₁ the arc-cosine kernel of degree one, κ₁(1) = ½
        mixed = c_b + c_w * root * arc_cosine(cosine).outer
        first = c_b + c_w * first / 2
        last = c_b + c_w * last / 2
    return np.array(shares)
