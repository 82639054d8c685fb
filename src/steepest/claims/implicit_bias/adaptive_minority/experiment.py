"""Sets whose examples have features of their own, and linear models trained on them by seven rules."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import descend
from steepest.nn.losses import exponential, logistic
from steepest.nn.types import Key, Values

RULES = ("AdaGrad", "RMSprop", "Adam")
LOSSES = ("squares", "logistic", "exponential")
BATCHES = ("all examples", "one example")
CLASSES = (1.0, -1.0)  # common, rare
NONE = 1e-200  # ε of a rule without one: it only makes 0/0 zero
FLOOR = 1e6  # ε far above all gradients
SHORTER = 1.9  # a step of gradient descent times the largest curvature


class Sets(NamedTuple):
    """Training sets and new examples, one a seed and share of the rare class."""

    x: Values  # (seeds, shares, n, d)
    y: Values  # (seeds, shares, n)
    new: Values  # (seeds, shares, new, d)
    new_y: Values  # (seeds, shares, new)


class Design(NamedTuple):
    """What the examples of a set are made of.

    Attributes:
        constants: k, features that are one in every example.
        features: that each example has for itself; the new ones have theirs where no training example has any.
        common: ℓ1 norm of the own features of a common example.
        rare: that of a rare one.
    """

    constants: int
    features: int
    common: float
    rare: float


def draw(
    rng: np.random.Generator, design: Design, counts: tuple[int, int], rare: Values
) -> tuple[Values, ...]:
    """Draw a set for each number of rare examples, as the arrays of ``Sets`` without seeds.

    Args:
        rng: draws orders, and the examples' own features.
        design: of the examples.
        counts: training and new examples.
        rare: rare ones among both, ``(shares, 2)``.
    """
    n, new = counts
    width = 1 + design.constants + design.features * (n + 1)
    sets = []
    for of_training, of_new in rare:
        y = rng.permutation(np.where(np.arange(n) < of_training, -1.0, 1.0))
        new_y = rng.permutation(np.where(np.arange(new) < of_new, -1.0, 1.0))
        x = _examples(rng, design, y, np.arange(n), width)
        sets.append((x, y, _examples(rng, design, new_y, np.full(new, n), width), new_y))
    return tuple(np.stack(part) for part in zip(*sets, strict=True))


def _examples(
    rng: np.random.Generator, design: Design, y: Values, places: Values, width: int
) -> Values:
    """Return (y, 1, …, 1, own features), those of each example at its place."""
    x = np.zeros((len(y), width))
    shared = 1 + design.constants
    x[:, 0] = y
    x[:, 1:shared] = 1.0
    for row, label, place in zip(x, y, places, strict=True):
        # Dirichlet parts have the sum one: the ℓ1 norm of the row's own features is ``norm``
        parts = rng.dirichlet(np.ones(design.features)) * rng.choice([-1.0, 1.0], design.features)
        first = shared + place * design.features
        norm = design.common if label > 0 else design.rare
        row[first : first + design.features] = norm * parts
    return x


def adaptive(sets: Sets, length: float, steps: int) -> Values:
    """Train by each rule on each loss, from zero, ``(seeds, shares, rules, losses, d)``.

    Args:
        sets: the training sets.
        length: of the way that each weight could go with steps of full size.
        steps: of each rule.
    """
    lr = length / steps
    rules = (
        optax.adagrad(lr, initial_accumulator_value=0.0, eps=NONE),
        optax.rmsprop(lr, eps=NONE),
        optax.adam(lr, eps=NONE),
    )
    losses: tuple[Callable, ...] = (_squares, logistic, exponential)

    def train(x: jax.Array, y: jax.Array) -> jax.Array:
        # one array of all weights: every rule moves each entry by its own gradients
        def risk(weights: jax.Array) -> jax.Array:
            margins = y * (weights @ x.T)
            return jnp.stack([loss(margins[i]).mean() for i, loss in enumerate(losses)]).sum()

        start = jnp.zeros((len(losses), x.shape[1]))
        ends = [descend(risk, start, rule, steps, record=steps).params for rule in rules]
        return jnp.stack(ends)

    return np.asarray(kit.compiled(_over_sets(train))(sets.x, sets.y))


def gradient(sets: Sets, steps: int) -> tuple[Values, Values]:
    """Train by gradient descent on squares, and by Adam with an ε far above all gradients, ``(seeds, shares, d)``."""
    # the largest eigenvalue of XᵀX/n
    curvature = np.linalg.norm(sets.x, 2, axis=(-2, -1)) ** 2 / sets.y.shape[-1]

    def train(x: jax.Array, y: jax.Array, lr: jax.Array) -> tuple[jax.Array, jax.Array]:
        risk = lambda w: _squares(y * (x @ w)).mean()
        start = jnp.zeros(x.shape[1])
        plain = descend(risk, start, optax.sgd(lr), steps, record=steps).params
        # F m/(√v + F) ≈ m where F is far above all gradients: Adam is descent with momentum
        floored = optax.adam(lr * FLOOR, eps=FLOOR)
        return plain, descend(risk, start, floored, steps, record=steps).params

    plain, floored = kit.compiled(_over_sets(train))(sets.x, sets.y, SHORTER / curvature)
    return np.asarray(plain), np.asarray(floored)


def single_examples(sets: Sets, lr: float, steps: int, key: Key) -> tuple[Values, Values]:
    """Train on squares by one example a step: SGD, each step 1/‖x_i‖², and Adam with steps ``lr``."""

    def train(x: jax.Array, y: jax.Array, key: Key) -> tuple[jax.Array, jax.Array]:
        risk = lambda w: _squares(y * (x @ w)).mean()
        lengths = (x**2).sum(1)

        def projected(w: jax.Array, key: Key) -> jax.Array:
            i = jax.random.randint(key, (), 0, len(y))
            # with a step of one, this projects w on ⟨w, x_i⟩ = y_i
            return _squares(y[i] * (x[i] @ w)) / lengths[i]

        def plain(w: jax.Array, key: Key) -> jax.Array:
            i = jax.random.randint(key, (), 0, len(y))
            return _squares(y[i] * (x[i] @ w))

        start = jnp.zeros(x.shape[1])
        follow = lambda rule, loss: (
            descend(risk, start, rule, steps, record=steps, stochastic=loss, key=key).params
        )
        return follow(optax.sgd(1.0), projected), follow(optax.adam(lr, eps=1e-8), plain)

    keys = kit.keys(key, sets.y.shape[0] * sets.y.shape[1]).reshape(sets.y.shape[:2])
    sgd, adam = kit.compiled(_over_sets(train))(sets.x, sets.y, keys)
    return np.asarray(sgd), np.asarray(adam)


def _squares(margins: jax.Array) -> jax.Array:
    return 0.5 * (1 - margins) ** 2


def _over_sets(train: Callable) -> Callable:
    return jax.vmap(jax.vmap(train))


class Fit(NamedTuple):
    """How trained weights ``(seeds, shares, …, d)`` do on training and on new examples.

    Attributes:
        outputs: mean output on the new examples of each class over the mean training margin, ``(seeds, shares, …, 2)``.
        error: share of new examples that are misclassified, ``(seeds, shares, …)``.
        missed: share of training examples that are.
        unit: the weights over their length.
    """

    outputs: Values
    error: Values
    missed: Values
    unit: Values


def fit(sets: Sets, weights: Values) -> Fit:
    """Look at trained weights."""
    shape = weights.shape[2:-1]
    flat = weights.reshape(*weights.shape[:2], -1, weights.shape[-1])
    margins = np.einsum("stnd,strd->strn", sets.x, flat) * sets.y[:, :, None]
    outputs = np.einsum("stnd,strd->strn", sets.new, flat)
    new_y = sets.new_y[:, :, None]
    means = [np.where(new_y == c, outputs, 0).sum(-1) / (new_y == c).sum(-1) for c in CLASSES]
    size = margins.mean(-1)[..., None]
    ratio = np.divide(
        np.stack(means, -1), size, out=np.zeros((*size.shape[:-1], 2)), where=size != 0
    )
    lengths = np.linalg.norm(flat, axis=-1, keepdims=True)
    unit = np.divide(flat, lengths, out=np.zeros_like(flat), where=lengths > 0)
    put = lambda array, *last: array.reshape(*array.shape[:2], *shape, *last)
    return Fit(
        put(ratio, 2),
        put((outputs * new_y <= 0).mean(-1)),
        put((margins <= 0).mean(-1)),
        put(unit, unit.shape[-1]),
    )
