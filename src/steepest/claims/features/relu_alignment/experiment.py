"""Descents of ReLU networks with two hidden layers from scaled starts, and what their layers have become."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
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

    def one(x: jax.Array, y: jax.Array, key: Key, scale: jax.Array) -> tuple[jax.Array, list]:
        """Return the risk, and the weights at the start and at the first record with the target risk.

        Without one these are the start's.
        """
        start = jax.tree.map(lambda leaf: scale * leaf, net.init(key))
        risk = margin_risk(logistic, net.apply, x, y)
        step = lambda _, w: jax.tree.map(
            lambda leaf, slope: leaf - lr * slope, w, jax.grad(risk)(w)
        )

        def to_record(state: tuple) -> tuple:
            count, params, _ = state
            following = jnp.minimum(count + record, steps)
            params = jax.lax.fori_loop(count, following, step, params)
            return following, params, risk(params)

        is_learned = lambda value: value <= target  # NaN compares false
        goes_on = lambda state: (state[0] < steps) & ~is_learned(state[2])
        begin = (jnp.asarray(0), start, risk(start))
        end = jax.lax.while_loop(goes_on, to_record, begin)
        _, params, last = jax.tree.map(partial(jnp.where, is_learned(end[2])), end, begin)
        return last, [jnp.stack([w["w"], v["w"]]) for w, v in zip(start, params, strict=True)]

    # one after another, so that each stops at its own record
    run = kit.compiled(
        lambda x, y, key, scales: jax.lax.map(
            lambda lane: one(x, lane[0], key, lane[1]), (y, scales)
        )
    )

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
    # where layers are near σ u vᵀ, v of a layer meets u of the one before it
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
