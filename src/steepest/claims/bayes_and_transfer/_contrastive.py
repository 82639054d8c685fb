"""Linear representations f(x) = Wᵀx of digits by class: images, random W, and exact contrastive losses."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.measurement.quantities import Contrastive, contrastive
from steepest.nn.data import digits
from steepest.nn.types import Values

CLASSES = 10
PIXELS = 64
FEWEST = 174  # images of the smallest class


def images_by_class(rng: np.random.Generator, first: int, second: int = 0) -> tuple[Values, Values]:
    """Return random disjoint images of each class, ``(10, first, 64)`` and ``(10, second, 64)``, centred, E‖x‖² = 1."""
    data = digits()
    x = np.asarray(data.x)
    x = x - x.mean(0)
    x = x / np.sqrt((x**2).sum(1).mean())
    labels = np.asarray(data.y).argmax(1)
    orders = [rng.permutation(np.flatnonzero(labels == c)) for c in range(CLASSES)]
    return (
        np.stack([x[order[:first]] for order in orders]),
        np.stack([x[order[first : first + second]] for order in orders]),
    )


class Draws(NamedTuple):
    """Images and random matrices of every seed.

    Attributes:
        images: shape ``(seed, class, image, pixel)``.
        held: images on which nothing is trained, likewise.
        noise: normal numbers, a column for each dimension, shape ``(seed, pixel, columns)``.
    """

    images: Values
    held: Values
    noise: Values

    def features(self, k: int, scale: float = 1.0) -> Values:
        """Return scale · Wᵀx with the first k columns for W ~ N(0, 1/k), shape ``(seed, class, image, k)``."""
        return np.einsum("scip,spk->scik", self.images, scale * k**-0.5 * self.noise[..., :k])


def drawn(key: kit.Key, seeds: int, per_class: int, widest: int, held: int = 0) -> Draws:
    """Draw images of each class, held-out ones, and matrices of as many columns as pixels, or as the widest has."""
    rng = kit.numpy_generator(key)
    parts = [images_by_class(rng, per_class, held) for _ in range(seeds)]
    images, others = (np.stack(part) for part in zip(*parts, strict=True))
    return Draws(images, others, rng.standard_normal((seeds, PIXELS, max(PIXELS, widest))))


def matrices(noise: Values, family: Sequence[tuple[int, float]]) -> Values:
    """Return random matrices of dimensions k and scales, zero beyond k columns, ``(family, seed, pixel, columns)``."""
    columns = np.arange(noise.shape[-1])
    return np.stack([scale * k**-0.5 * noise * (columns < k) for k, scale in family])


def zipf(skew: float) -> Values:
    """Return shares of the classes ∝ (c + 1)^(−skew), shape ``(10,)``."""
    weights = (1.0 + np.arange(CLASSES)) ** -skew
    return weights / weights.sum()


def losses(
    images: Values, weights: Values, shares: Values, of_pairs: Values | None = None
) -> Contrastive:
    """Return the exact losses of representations, each ``(family, seed, shares)``.

    Args:
        images: shape ``(seed, class, image, pixel)``.
        weights: shape ``(family, seed, pixel, columns)``.
        shares: of the classes, a row for each choice.
        of_pairs: shares in the supervised pairs, if they are others.
    """

    def of_seed(inputs: tuple[jax.Array, jax.Array]) -> Contrastive:
        images, weights = inputs

        def of_one(w: jax.Array) -> Contrastive:
            features = images @ w
            of_shares = lambda rho, test: contrastive(features, rho, test)
            return jax.vmap(of_shares)(jnp.asarray(shares), jnp.asarray(tests))

        return jax.lax.map(of_one, weights)

    tests = shares if of_pairs is None else of_pairs
    measured = kit.compiled(lambda *both: jax.lax.map(of_seed, both))(
        images, weights.swapaxes(0, 1)
    )
    return jax.tree.map(lambda values: np.asarray(values).swapaxes(0, 1), measured)
