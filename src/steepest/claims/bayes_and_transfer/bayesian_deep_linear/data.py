"""Noise-free data of a given size: Gaussian, and digits with their labels."""

from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.nn.data import digits


class Data(NamedTuple):
    """Noise-free data, scaled to a given size A = n_0‖θ_∥‖²/P.

    Attributes:
        x: inputs, one a column, shape ``(n_0, P)``.
        y: targets, shape ``(P,)``.
        inverse: pseudo-inverse of x, shape ``(P, n_0)``.
        conditioning: smallest over largest singular value of x.
    """

    x: kit.Values
    y: kit.Values
    inverse: kit.Values
    conditioning: float

    @property
    def interpolant(self) -> kit.Values:
        """Return θ_∥, the least interpolant, shape ``(n_0,)``."""
        return self.y @ self.inverse


def data_of_size(x: kit.Values, y: kit.Values, size: float) -> Data:
    """Return data with targets scaled so that n_0‖θ_∥‖²/P is ``size``."""
    inverse = np.linalg.pinv(x)
    spectrum = np.linalg.svd(x, compute_uv=False)
    unscaled = len(x) * ((y @ inverse) ** 2).sum() / len(y)
    return Data(x, y * np.sqrt(size / unscaled), inverse, float(spectrum[-1] / spectrum[0]))


def draw_gaussian(
    inputs: int, points: int, rng: np.random.Generator
) -> tuple[kit.Values, kit.Values]:
    """Draw inputs, ``(n_0, P)``, and targets, ``(P,)``, from a standard Gaussian."""
    return rng.standard_normal((inputs, points)), rng.standard_normal(points)


def draw_digits(
    inputs: int, points: int, rng: np.random.Generator
) -> tuple[kit.Values, kit.Values]:
    """Draw images, of which the most variable pixels are the inputs, ``(n_0, P)``, and their labels, ``(P,)``."""
    images = digits()
    pixels = np.asarray(images.x)
    labels = np.asarray(images.y).argmax(1).astype(float)
    variable = np.argsort(-pixels.var(0), kind="stable")[:inputs]
    chosen = rng.choice(len(pixels), points, replace=False)
    return pixels[np.ix_(chosen, variable)].T, labels[chosen]
