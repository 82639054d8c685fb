"""Classifiers of the first C digits, trained alike for every C: what the claims about their Hessians look at."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from steepest import kit
from steepest.dynamics import descend, minibatch
from steepest.kit import keys
from steepest.nn.data import balanced_choices, digits
from steepest.nn.losses import cross_entropy
from steepest.nn.networks import Mlp, mlp

DIGITS = 10
TOLERANCE = 1e-4  # of the eigenpairs' residuals, relative to the largest eigenvalue
POOL = 150  # outputs of every network; images of each digit to choose from


class Lanes(NamedTuple):
    """Independent trainings of one shape, so that they compile once; one lane for each number of classes and seed.

    Attributes:
        x: centred images, shape ``(lanes, n, 64)``, equally many of each class, sorted by class.
        y: their classes, shape ``(lanes, n)``.
        shift: added to the outputs: 0 for the classes that there are and −10⁹ for the others, shape ``(lanes, 10)``.
        keys: of initial weights and batches.
    """

    x: Float[kit.Values, "lanes n d"]
    y: Int[kit.Values, "lanes n"]
    shift: Float[kit.Values, "lanes 10"]
    keys: kit.Key


def lanes(key: kit.Key, classes: tuple[int, ...], seeds: int, n: int) -> Lanes:
    """The digits 0 … C−1 for every C, with the images of each seed drawn anew."""
    if len({c * (n // c) for c in classes}) > 1:
        raise kit.UserError(
            f"n must be a multiple of every number of classes, got n = {n} and {classes}; try a multiple of "
            f"{math.lcm(*classes)}"
        )
    for_images, for_training = jax.random.split(key)
    data = digits()
    pools = np.asarray(data.x)[balanced_choices(data, POOL, keys(for_images, seeds))]
    x = np.stack([pool[:c, : n // c].reshape(c * (n // c), -1) for c in classes for pool in pools])
    y = np.stack([np.repeat(np.arange(c), n // c) for c in classes for _ in pools])
    shift = np.stack([np.where(np.arange(DIGITS) < c, 0.0, -1e9) for c in classes for _ in pools])
    again = np.tile(np.asarray(jax.random.key_data(keys(for_training, seeds))), (len(classes), 1))
    return Lanes(
        x - x.mean(1, keepdims=True), y, shift, jax.random.wrap_key_data(jnp.asarray(again))
    )


@dataclass(frozen=True)
class Training:
    """Batches with momentum 0.9 and decay of all weights, the step size lowered tenfold after each third.

    Attributes:
        width: of each hidden layer.
        depth: hidden layers.
        lr: step size of the first third, after a warm-up over a twentieth of the steps.
        decay: the objective is the mean cross-entropy plus decay/2 ‖w‖².
        batch: images in a batch.
        steps: of all thirds together.
    """

    width: int
    depth: int
    lr: float
    decay: float
    batch: int
    steps: int

    @cached_property
    def net(self) -> Mlp:
        """The ReLU network with ten outputs."""
        return mlp((64, *[self.width] * self.depth, DIGITS), "relu", c_w=2.0)

    def unflatten(self, w: Float[Array, " p"]) -> Any:
        """The network's own form of a flat vector of weights."""
        shapes = jax.eval_shape(self.net.init, jax.random.key(0))
        return ravel_pytree(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes))[
            1
        ](w)

    def outputs(self, w: Float[Array, " p"], lane: Lanes) -> Float[Array, "n 10"]:
        """Logits of one lane; those of absent classes are so low that nothing depends on them."""
        return self.net.apply(self.unflatten(w), lane.x) + lane.shift

    def objective(self, w: Float[Array, " p"], lane: Lanes) -> Float[Array, ""]:
        """What is descended, over all images."""
        return cross_entropy(self.outputs(w, lane), lane.y).mean() + self.decay / 2 * (w @ w)

    def __call__(self, all_lanes: Lanes, records: np.ndarray) -> tuple[Array, Array, Array]:
        """Weights ``(lanes, records, p)``, risks and errors ``(lanes, records)`` at some steps."""
        # decay is added before momentum: descent on the risk plus (decay/2)‖w‖²
        rule = optax.chain(
            optax.add_decayed_weights(self.decay), optax.sgd(self.rate, momentum=0.9)
        )

        def one(lane: Lanes) -> tuple[Array, Array, Array]:
            start, batches = jax.random.split(lane.keys)
            losses = lambda p, x, y: cross_entropy(self.net.apply(p, x) + lane.shift, y)
            wrong = lambda p: (self.net.apply(p, lane.x) + lane.shift).argmax(1) != lane.y
            path = descend(
                lambda p: losses(p, lane.x, lane.y).mean(),
                self.net.init(start),
                rule,
                self.steps,
                record=records,
                stochastic=minibatch(losses, lane.x, lane.y, self.batch),
                key=batches,
                observe={
                    "weights": lambda p: ravel_pytree(p)[0],
                    "error": lambda p: wrong(p).mean(),
                },
            )
            return path.observed["weights"], path.risk, path.observed["error"]

        return kit.compiled(lambda a: jax.lax.map(one, a))(all_lanes)

    def rate(self, step: Any) -> Array:
        """The step size."""
        return self.lr * jnp.minimum(20 * step / self.steps, 1) * 0.1 ** (3 * step // self.steps)


class Setting(NamedTuple):
    """How networks are trained, and on what."""

    training: Training
    lanes: Lanes


def trained_and_resolved(
    error: Float[np.ndarray, "..."], residual: Float[np.ndarray, "..."]
) -> list[kit.Hypothesis]:
    """Assume that every network fits its images and that every eigenpair has converged.

    Args:
        error: shares of training images that are classified wrongly.
        residual: of the eigenpairs, over the largest eigenvalue.
    """
    return [
        kit.assume("largest training error", error.max(), "<=", 0.01, "choose more --steps"),
        kit.assume("largest residual / largest eigenvalue", residual.max(), "<=", 10 * TOLERANCE),
    ]
