"""Few digits of ten classes for training, and many for testing; networks on them whose function scales."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.nn.activations import activation
from steepest.nn.data import digits
from steepest.nn.networks import Mlp, mlp
from steepest.nn.types import Values

CLASSES = 10


def few_digits(
    key: kit.Key, seeds: int, n: int, test: int
) -> tuple[Values, Values, Values, Values]:
    """Return centred images and classes for training, ``(seeds, n, 64)`` and ``(seeds, n)``, and the same for testing.

    Args:
        key: of the draws.
        seeds: how many.
        n: images for training.
        test: images for testing.
    """
    data = digits()
    shuffle = kit.compiled(jax.vmap(lambda k: jax.random.permutation(k, data.n)))
    places = np.asarray(shuffle(kit.keys(key, seeds)))[:, : n + test]
    x = np.asarray(data.x)[places]
    y = np.asarray(data.y).argmax(1)[places]
    x = x - x[:, :n].mean(1, keepdims=True)
    return x[:, :n], y[:, :n], x[:, n:], y[:, n:]


def without_biases(hidden: tuple[int, ...], sigma: str, c_w: float) -> Mlp:
    """Return a network from 64 pixels to ten classes, without biases; its weights act as they are."""
    return mlp((64, *hidden, CLASSES), sigma, c_w=c_w, bias=False)


def homogeneous(sigma: str) -> kit.Hypothesis:
    """Assume that an activation is positively homogeneous."""
    function: Any = activation(sigma).function
    bend = lambda z: jnp.abs(function(3 * z) - 3 * function(z)).max()
    bent = float(kit.compiled(bend)(np.linspace(-3, 3, 121)))
    advice = "choose a positively homogeneous --activation"
    return kit.assume("largest |σ(3z) − 3σ(z)|", bent, "<=", 1e-12, advice)
