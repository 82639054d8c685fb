"""An equinox network on the digits of scikit-learn, with plain SGD and weight decay, watched while it trains.

``python examples/training/digits_equinox.py`` trains and writes ``digits_equinox.jsonl``; then

    steepest watch digits_equinox.jsonl --page digits_equinox.html
    steepest measure examples/training/digits_equinox.py:trained
    steepest run edge-of-stability --batch 8 --subject examples/training/digits_equinox.py:build
    steepest run neural-collapse --subject examples/training/digits_equinox.py:build
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

STEPS = 3000
BATCH = 32
LR = 0.1
DECAY = 2e-3


class Network(eqx.Module):
    """Two hidden layers of ReLU and a linear classifier."""

    hidden: list
    read: eqx.nn.Linear

    def __init__(self, width: int, key: jax.Array) -> None:
        keys = jax.random.split(key, 3)
        self.hidden = [
            eqx.nn.Linear(64, width, key=keys[0]), eqx.nn.Linear(width, width, key=keys[1])
        ]  # fmt: skip
        self.read = eqx.nn.Linear(width, 10, key=keys[2])

    def features(self, x: jax.Array) -> jax.Array:
        """Return what the classifier reads, of one image."""
        for layer in self.hidden:
            x = jax.nn.relu(layer(x))
        return x

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.read(self.features(x))


def cross_entropy(outputs: jax.Array, targets: jax.Array) -> jax.Array:
    """Mean over the images."""
    return optax.softmax_cross_entropy_with_integer_labels(outputs, targets).mean()


def digits() -> tuple[tuple, tuple]:
    """Images ``(n, 64)`` and the digits that they show: 1000 to train on, equally many of each, the rest held out."""
    x, y = load_digits(return_X_y=True)
    shuffle = np.random.default_rng(0).permutation(len(x))
    x, y = (x[shuffle] / 16).astype(np.float32), y[shuffle]
    train = np.sort(np.concatenate([np.flatnonzero(y == digit)[:100] for digit in range(10)]))
    rest = np.setdiff1d(np.arange(len(x)), train)
    return (x[train], y[train]), (x[rest], y[rest])


def build(seed: int = 0, width: float = 1.0) -> dict:
    """The untrained network with all that trains it."""
    model = Network(int(64 * width), jax.random.key(seed))
    params, static = eqx.partition(model, eqx.is_inexact_array)
    (x, y), held_out = digits()
    x, y = jnp.asarray(x), jnp.asarray(y)

    def apply(params, x):
        return jax.vmap(eqx.combine(params, static))(x)

    def features(params, x):
        return jax.vmap(eqx.combine(params, static).features)(x)

    optimizer = optax.chain(optax.add_decayed_weights(DECAY), optax.sgd(LR))

    @jax.jit
    def step(params, state, rows):
        slope = jax.grad(lambda params: cross_entropy(apply(params, x[rows]), y[rows]))(params)
        updates, state = optimizer.update(slope, state, params)
        return optax.apply_updates(params, updates), state

    def train():
        now, state = params, optimizer.init(params)
        draw = np.random.default_rng(seed)
        for _ in range(STEPS):
            now, state = step(now, state, draw.choice(len(x), BATCH, replace=False))
            yield apply, now

    return {
        "model": (apply, params),
        "loss": cross_entropy,
        "data": (x, y),
        "held_out": held_out,
        "train": train,
        "features": features,
        "lr": LR,
        "batch": BATCH,
        "length": STEPS,
    }


def trained() -> dict:
    """The same after training, as it is measured."""
    built = build()
    for model in built["train"]():
        built["model"] = model
    return built


def main(log: str = "digits_equinox.jsonl") -> None:
    """Train, and measure along the way."""
    from steepest import Monitor

    built = build()
    x, y = built["data"]
    monitor = Monitor(
        log, cross_entropy, (x[:300], y[:300]), ["risk", "sharpness", "batch-noise"],
        every=100, budget=None, lr=LR, weight_decay=DECAY, batch=BATCH,
    )  # fmt: skip
    for step, model in enumerate(built["train"]()):
        monitor(step, model)
    apply, params = model
    x, y = built["held_out"]
    print(f"held-out error: {(apply(params, x).argmax(1) != y).mean():.1%}")


if __name__ == "__main__":
    main()
