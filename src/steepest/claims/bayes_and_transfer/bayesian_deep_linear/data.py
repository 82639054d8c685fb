"""Noise-free data of a given size: Gaussian, and digits with their labels."""

from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.nn.data import digits

NEW = 10  # inputs of each kind at which networks predict


class Data(NamedTuple):
    """Noise-free data, scaled to a given size A = n_0‖θ_∥‖²/P.

    Attributes:
        x: inputs, one a column, shape ``(n_0, P)``.
        y: targets, shape ``(P,)``.
        inverse: pseudo-inverse of x, shape ``(P, n_0)``.
        conditioning: smallest over largest singular value of x.
        new: inputs of the same kind at which networks predict, shape ``(n_0, new)``.
    """

    x: kit.Values
    y: kit.Values
    inverse: kit.Values
    conditioning: float
    new: kit.Values

    @property
    def interpolant(self) -> kit.Values:
        """Return θ_∥, the least interpolant, shape ``(n_0,)``."""
        return self.y @ self.inverse

    @property
    def new_lengths(self) -> kit.Values:
        """Return the lengths ‖x_⊥‖ of new inputs off the span of the data, shape ``(new,)``."""
        return np.linalg.norm(self.new - self.x @ (self.inverse @ self.new), axis=0)


class Examples(NamedTuple):
    """Inputs and targets of one kind, and new inputs of it, one input a column."""

    x: kit.Values
    y: kit.Values
    new: kit.Values


def data_of_size(examples: Examples, size: float) -> Data:
    """Return data with targets scaled so that n_0‖θ_∥‖²/P is ``size``."""
    x, y, new = examples
    inverse = np.linalg.pinv(x)
    spectrum = np.linalg.svd(x, compute_uv=False)
    unscaled = len(x) * ((y @ inverse) ** 2).sum() / len(y)
    # A is quadratic in the targets
    return Data(x, y * np.sqrt(size / unscaled), inverse, float(spectrum[-1] / spectrum[0]), new)


def draw_gaussian(inputs: int, points: int, rng: np.random.Generator) -> Examples:
    """Draw inputs, targets and new inputs from a standard Gaussian."""
    x = rng.standard_normal((inputs, points))
    return Examples(x, rng.standard_normal(points), rng.standard_normal((inputs, NEW)))


def draw_digits(inputs: int, points: int, rng: np.random.Generator) -> Examples:
    """Draw images, of which the most variable pixels are the inputs, their labels, and new images."""
    images = digits()
    pixels = np.asarray(images.x)
    labels = np.asarray(images.y).argmax(1).astype(float)
    variable = np.argsort(-pixels.var(0), kind="stable")[:inputs]
    chosen = rng.choice(len(pixels), points + NEW, replace=False)
    x = pixels[np.ix_(chosen, variable)].T
    return Examples(x[:, :points], labels[chosen[:points]], x[:, points:])
