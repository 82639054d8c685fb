"""Trainings of networks, and what is seen of their collapse."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.claims.curvature._collapse import LOOK, loss_of
from steepest.dynamics import descend, logarithmic
from steepest.measurement.quantities import upper_pairs
from steepest.nn.networks import mlp

RECORDS = 60  # moments of a training, evenly spaced in log(1 + step)
DRAWS = 200  # of random means, for every network
# a direction of the class means counts when it is at least this long against the longest
RANK_CUT = 0.1


@dataclass(frozen=True)
class Training:
    """Batches with momentum 0.9 and decay of all parameters, a tenth of the step size after each third.

    Attributes:
        widths: of the ReLU network, from inputs to classes.
        images: of each class.
        loss: one of LOSSES.
        lr: largest step size, after a warm-up over a twentieth of the steps.
        decay: of all parameters.
        batch: images in a batch, drawn with replacement.
        steps: of all thirds together.
    """

    widths: tuple[int, ...]
    images: int
    loss: str
    lr: float
    decay: float
    batch: int
    steps: int

    def __call__(self, key: kit.Key, x: jax.Array) -> dict[str, jax.Array]:
        """Train one network; return its features, last layer and training error at RECORDS moments."""
        y = jnp.repeat(jnp.arange(self.widths[-1]), self.images)
        targets = jax.nn.one_hot(y, self.widths[-1])
        net = mlp(self.widths, "relu", c_w=2.0)
        risk = lambda p, x, t: loss_of(self.loss == "squared", net.apply(p, x), t).mean()

        def of_batch(params: Any, key: kit.Key) -> jax.Array:
            chosen = jax.random.randint(key, (self.batch,), 0, len(y))
            return risk(params, x[chosen], targets[chosen])

        path = descend(
            lambda p: risk(p, x, targets),
            net.init(key),
            optax.chain(optax.add_decayed_weights(self.decay), optax.sgd(self.rate, momentum=0.9)),
            self.steps,
            record=logarithmic(self.steps, RECORDS),
            stochastic=of_batch,
            key=key,
            observe={
                "features": lambda p: net.features(p, x),
                "rows": lambda p: p[-1]["w"],
                "biases": lambda p: p[-1]["b"],
                "error": lambda p: jnp.mean(net.apply(p, x).argmax(1) != y),
            },
        )
        return path.observed

    def rate(self, step: Any) -> jax.Array:
        """The step size."""
        warm = jnp.minimum(20 * step / self.steps, 1)
        return self.lr * warm * 0.1 ** (step // (self.steps // 3))


def networks(training: Training, key: kit.Key, x: np.ndarray) -> dict[str, np.ndarray]:
    """Train a network on each row of images; return NC1 to NC4 and the error along it, ``(seed, record, …)``."""

    def train(keys: kit.Key, x: jax.Array) -> dict[str, jax.Array]:
        return jax.lax.map(lambda lane: training(*lane), (keys, x))

    paths = jax.tree.map(np.asarray, kit.compiled(train)(kit.keys(key, len(x)), x))
    y = np.repeat(np.arange(training.widths[-1]), training.images)
    states = [paths[name] for name in ("features", "rows", "biases")]
    looks = [
        [seen_of(h, y, w, b) for h, w, b in zip(*of_one, strict=True)]
        for of_one in zip(*states, strict=True)
    ]
    names = looks[0][0]
    arrays = {
        name: np.array([[look[name] for look in of_one] for of_one in looks]) for name in names
    }
    return {"error": paths["error"], **arrays}


def seen_of(h: Any, y: Any, w: Any, b: Any) -> dict[str, Any]:
    """Return what is recorded of the collapse of features h of classes y, read by W h + b."""
    state = LOOK(h, y, w, b)
    return {
        "cosines": np.asarray(upper_pairs(state.cosines)),
        "dimensions": int((np.asarray(state.spectrum) >= RANK_CUT).sum()),
        "variability": float(state.variability),
        "norm_spread": float(state.norm_spread),
        "duality": float(state.duality),
        "mismatch": float(state.mismatch),
    }


def random_means(key: kit.Key, shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return cosines ``(seeds, draws)`` and mean spread of lengths ``(seeds,)`` of centred random class means.

    Args:
        key: of the draws.
        shape: networks, classes and dimensions.
    """
    seeds, classes, width = shape
    means = kit.numpy_generator(key).standard_normal((seeds, DRAWS, classes, width))
    # the centred means of C independent ones have cosines around −1/(C − 1) already
    means -= means.mean(2, keepdims=True)
    lengths = np.linalg.norm(means, axis=-1)
    unit = means / lengths[..., None]
    cosines = np.asarray(upper_pairs(unit @ unit.swapaxes(-1, -2)))
    spread = lengths.std(-1) / lengths.mean(-1)  # coefficient of variation
    return cosines.reshape(seeds, -1), spread.mean(1)
