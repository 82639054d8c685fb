"""Adapters beside a layer, and what one step of an optimizer makes of them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from steepest.claims.training.lora_rank.theory import Batch
from steepest.nn.data import digits
from steepest.nn.losses import cross_entropy
from steepest.nn.types import Values

EPSILON = 1e-20  # of Adam, whose first step is to be the sign
CLASSES = 10

Risk = Callable[[Array], Array]
"""The mean loss of a batch, of a layer's outputs ``(outputs, m)``."""


def drawn(
    rng: np.random.Generator, inputs: int, outputs: int, examples: int, power: float
) -> Batch:
    """Draw inputs whose directions have variances k^(−power), and errors."""
    deviations = np.arange(1.0, inputs + 1) ** (-power / 2)
    # variances are one in the mean over directions
    deviations *= (inputs / (deviations**2).sum()) ** 0.5
    x = deviations[:, None] * rng.standard_normal((inputs, examples))
    return Batch(x, rng.standard_normal((outputs, examples)))


class DigitsLayer:
    """The second layer of a ReLU network on digits, with all that stands around it."""

    def __init__(self, rng: np.random.Generator, inputs: int, outputs: int, examples: int) -> None:
        """Draw the weights of the network and twice so many images."""
        data = digits()
        pixels = np.asarray(data.x, float)
        rows = rng.permutation(len(pixels))[: 2 * examples]
        first = rng.standard_normal((inputs, 64)) / 8
        hidden = np.maximum(first @ pixels[rows].T, 0)
        self.x, self.elsewhere = np.split(hidden, 2, axis=1)
        self.labels = np.argmax(np.asarray(data.y)[rows[:examples]], 1)
        layer = rng.standard_normal((outputs, inputs)) * (2 / inputs) ** 0.5
        self.last = rng.standard_normal((CLASSES, outputs)) / outputs**0.5
        self.base = layer @ self.x

    def batch(self) -> Batch:
        """Return inputs and errors of the layer, the latter by the chain rule."""
        logits = self.last @ np.maximum(self.base, 0)
        shares = np.exp(logits - logits.max(0))
        shares /= shares.sum(0)
        errors = shares - np.eye(CLASSES)[self.labels].T
        # softmax less label, back through the last matrix and ReLU's gates, (outputs, m)
        return Batch(self.x, (self.last.T @ errors) * (self.base > 0))

    def risk(self, change: Array) -> Array:
        """Return the mean cross-entropy when the layer's outputs change."""
        logits = jnp.asarray(self.last) @ jax.nn.relu(jnp.asarray(self.base) + change)
        return cross_entropy(logits.T, jnp.asarray(self.labels)).mean()


def linear(batch: Batch) -> Risk:
    """Return the risk whose gradients are the errors of a batch, at any outputs."""
    return lambda change: (jnp.asarray(batch.y) * change).sum(0).mean()


def first_steps(
    risk: Risk, x: Values, other: Values, outputs: int, ranks: Array, down: Array
) -> dict[str, Array]:
    """Return mean square changes of outputs after one step with η = 1, ``(ranks,)`` each.

    γ is 1/√r for descent and 1/r for Adam.

    Args:
        risk: of changes of the layer's outputs.
        x: the layer's inputs, ``(n, m)``.
        other: inputs of other examples.
        outputs: of the layer.
        ranks: of the adapters; rows of A beyond a rank are zero.
        down: A, ``(largest rank, n)``.
    """
    x = jnp.asarray(x)
    other = jnp.asarray(other)

    def of_rank(rank: Array, scale: Array, optimizer: Any) -> tuple[Array, Array]:
        active = jnp.arange(len(down)) < rank
        params = {"a": down * active[:, None], "b": jnp.zeros((outputs, len(down)))}
        change = lambda params, x: scale * params["b"] @ (params["a"] @ x)
        gradient = jax.grad(lambda params: risk(change(params, x)))(params)
        update, _ = optimizer.update(gradient, optimizer.init(params), params)
        moved: Any = optax.apply_updates(params, update)
        return (change(moved, x) ** 2).mean(), (change(moved, other) ** 2).mean()

    kinds = {"sgd": (optax.sgd(1.0), 0.5), "adam": (optax.adam(1.0, eps=EPSILON), 1.0)}
    changes = {}
    for name, (optimizer, power) in kinds.items():
        run = lambda rank, scale, optimizer=optimizer: of_rank(rank, scale, optimizer)
        at_batch, elsewhere = jax.vmap(run)(ranks, ranks**-power)
        changes[name] = at_batch
        changes[f"{name}_elsewhere"] = elsewhere
    return changes
