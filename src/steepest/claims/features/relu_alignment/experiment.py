"""Descents of ReLU networks with two hidden layers from scaled starts, and what their layers have become."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import descend
from steepest.nn.losses import logistic, margin_risk
from steepest.nn.networks import mlp
from steepest.nn.types import Key, Values


class Layers(NamedTuple):
    """What is looked at where the risk first is below the target, in each of several descents.

    Attributes:
        risk: shape ``(runs,)``.
        stable_rank: ‖W‖_F²/‖W‖₂² of the hidden layers, ``(runs, 2)``.
        first_rank: the same at the start.
        growth: of ‖W‖_F² of the hidden layers since the start, ``(runs, 2)``.
        aligned: |⟨v, u⟩| of neighbouring layers, first with second and second with last, ``(runs, 2)``.
    """

    risk: Values
    stable_rank: Values
    first_rank: Values
    growth: Values
    aligned: Values


def runner(
    width: int, inputs: int, lr: float, steps: int, record: int, target: float
) -> Callable[[Values, Values, Key, Values], Layers]:
    """Return a function of images, labels of each run, key and scales of the start that trains one network so often."""
    net = mlp((inputs, width, width, 1), "relu", c_w=2.0)
    look = {"layers": lambda params: [layer["w"] for layer in params]}

    def one(x: jax.Array, y: jax.Array, key: Key, scale: jax.Array) -> tuple[jax.Array, list]:
        """Return the risk and the weights at the first record with the target risk, and the weights before it."""
        start = jax.tree.map(lambda leaf: scale * leaf, net.init(key))
        risk = margin_risk(logistic, net.apply, x, y)
        path = descend(risk, start, optax.sgd(lr), steps, record=record, observe=look)
        first = jnp.argmax(path.risk <= target)  # NaN compares false
        layers = path.observed["layers"]
        return path.risk[first], [jnp.stack([w[0], w[first]]) for w in layers]

    run = kit.compiled(jax.vmap(one, (None, 0, None, 0)))

    def trained(x: Values, y: Values, key: Key, scales: Values) -> Layers:
        risk, weights = run(x, y, key, scales)
        begin = [np.asarray(w)[..., 0, :, :] for w in weights]
        end = [np.asarray(w)[..., 1, :, :] for w in weights]
        size = lambda layers: np.stack([(w**2).sum((-1, -2)) for w in layers[:2]], -1)
        at_first = look_at(*begin)
        now = look_at(*end)
        return Layers(
            np.asarray(risk), now[..., :2], at_first[..., :2], size(end) - size(begin), now[..., 2:]
        )

    return trained


def look_at(first: Values, second: Values, last: Values) -> Values:
    """Return stable ranks of both hidden layers, and alignments of first with second and second with last; ``(…, 4)``.

    Args:
        first: ``(…, h, 64)``.
        second: ``(…, h, h)``.
        last: ``(…, 1, h)``.
    """
    left_1, sizes_1, _ = np.linalg.svd(first, full_matrices=False)
    left_2, sizes_2, right_2 = np.linalg.svd(second, full_matrices=False)
    onward = last[..., 0, :] / np.linalg.norm(last[..., 0, :], axis=-1, keepdims=True)
    return np.stack(
        [
            (sizes_1**2).sum(-1) / sizes_1[..., 0] ** 2,
            (sizes_2**2).sum(-1) / sizes_2[..., 0] ** 2,
            np.abs((right_2[..., 0, :] * left_1[..., :, 0]).sum(-1)),
            np.abs((onward * left_2[..., :, 0]).sum(-1)),
        ],
        axis=-1,
    )
