"""Descents of free features, and what is seen of their collapse."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.claims.curvature._collapse import LOOK, loss_of
from steepest.dynamics import descend, logarithmic
from steepest.measurement.quantities import upper_pairs
from steepest.nn.networks import unconstrained, unconstrained_risk


@dataclass(frozen=True)
class FreeFeatures:
    """Features and weights without a network, with the same decay of both.

    Attributes:
        classes: C.
        copies: examples of each class.
        dimension: of the features.
        decay: of features and of weights.
        steps: of descent.
    """

    classes: int
    copies: int
    dimension: int
    decay: float
    steps: int

    def descend(self, square: jax.Array, key: kit.Key) -> dict[str, Any]:
        """Return losses on the way, features and weights at start and end, outputs and gradient at the end."""
        n = self.classes * self.copies
        net = unconstrained(self.classes, self.dimension, n)
        targets = jnp.repeat(jnp.eye(self.classes), self.copies, axis=0)
        risk = unconstrained_risk(net, partial(loss_of, square), targets, self.decay, self.decay)
        rule = optax.sgd(2.0, momentum=0.98, nesterov=True)
        start = net.init(key)
        path = descend(risk, start, rule, self.steps, record=logarithmic(self.steps, 40))
        outputs = net.apply(path.params, jnp.arange(n))
        slope = optax.tree.norm(jax.grad(risk)(path.params))
        return {
            "loss": path.risk,
            "start": start,
            "end": path.params,
            "outputs": outputs,
            "gradient": slope,
        }


def free_features(free: FreeFeatures, key: kit.Key, seeds: int) -> dict[str, np.ndarray]:
    """Descend with both losses from every start; return what is seen, ``(loss, seed, …)``."""

    def both(starts: kit.Key) -> dict[str, Any]:
        lanes = jnp.arange(2 * seeds) >= seeds, jnp.concatenate([starts] * 2)
        return jax.lax.map(lambda lane: free.descend(*lane), lanes)

    paths = jax.tree.map(np.asarray, kit.compiled(both)(kit.keys(key, seeds)))
    y = np.repeat(np.arange(free.classes), free.copies)
    states = zip(paths["start"]["h"], paths["start"]["w"], strict=True)
    begin = [LOOK(h, y, w) for h, w in states]
    ends = [LOOK(h, y, w) for h, w in zip(paths["end"]["h"], paths["end"]["w"], strict=True)]
    of_ends = lambda name: np.array([getattr(end, name) for end in ends])
    measured = {
        "loss": paths["loss"],
        "gradient": paths["gradient"],
        "singular": np.linalg.svd(paths["outputs"], compute_uv=False),
        "variability": of_ends("variability"),
        "start_variability": np.array([state.variability for state in begin]),
        "start_cosines": upper_pairs(jnp.asarray(np.array([state.cosines for state in begin]))),
        "cosines": upper_pairs(jnp.asarray(of_ends("cosines"))),
        "raw_cosines": upper_pairs(jnp.asarray(of_ends("raw_cosines"))),
        "duality": of_ends("duality"),
    }
    return {name: np.reshape(v, (2, seeds, *np.shape(v)[1:])) for name, v in measured.items()}
