"""Four small networks, trained again and again on parts of their data, many trainings at once."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

TOGETHER = 32  # trainings of one compiled call


class Case(NamedTuple):
    """A network with its data and its training.

    Attributes:
        name: for the table.
        apply: of ``(params, x)``.
        draw: parameters from a key.
        train: inputs and targets.
        targets: inputs and targets whose outputs are attributed.
        model_output: ``"margin"`` or ``"value"``.
        step: size of a step of SGD with momentum 0.9.
        steps: of a training.
        batch: examples of a step, drawn with replacement.
    """

    name: str
    apply: object
    draw: object
    train: tuple
    targets: tuple
    model_output: str
    step: float
    steps: int
    batch: int = 50


def dense(key, fan_in, fan_out):
    weights = jax.random.normal(key, (fan_in, fan_out)) * np.sqrt(2 / fan_in)
    return {"w": weights, "b": jnp.zeros(fan_out)}


def draw_mlp(widths, key):
    keys = jax.random.split(key, len(widths))
    return [dense(*shape) for shape in zip(keys, widths[:-1], widths[1:], strict=False)]


def mlp(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def draw_conv(key):
    first, second, last = jax.random.split(key, 3)
    return [
        dense(first, 9, 8),
        dense(second, 72, 16),
        dense(last, 16 * 4, 10),
    ]


def patches(x, stride):
    """Windows of 3 × 3, tap by tap, then channel by channel: ``(b, h, w, 9 c)``."""
    x = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    stop = x.shape[1] - 2
    taps = [x[:, i : i + stop : stride, j : j + stop : stride] for i in range(3) for j in range(3)]
    return jnp.concatenate(taps, -1)


def conv(params, x):
    """Two convolutions, 8 channels on 8 × 8 and 16 on 4 × 4, a mean of squares of 2 × 2, ten logits."""
    first, second, last = params
    x = x.reshape(-1, 8, 8, 1)
    x = jax.nn.relu(patches(x, 1) @ first["w"] + first["b"])
    x = jax.nn.relu(patches(x, 2) @ second["w"] + second["b"])
    x = x.reshape(-1, 2, 2, 2, 2, 16).mean((2, 4)).reshape(-1, 64)
    return x @ last["w"] + last["b"]


def split(x, y, train, targets):
    order = np.random.default_rng(0).permutation(len(x))
    of_training = order[:train]
    of_targets = order[train : train + targets]
    return (x[of_training], y[of_training]), (x[of_targets], y[of_targets])


def cases():
    """The networks by name."""
    x, y = load_digits(return_X_y=True)
    digits = split((x / 16).astype(np.float32), y.astype(np.int32), 1000, 100)
    x, y = load_diabetes(return_X_y=True)
    x = (x - x.mean(0)) / x.std(0)
    y = (y - y.mean()) / y.std()
    diabetes = split(x.astype(np.float32), y.astype(np.float32), 342, 100)
    x, y = load_breast_cancer(return_X_y=True)
    x = (x - x.mean(0)) / x.std(0)
    tumours = split(x.astype(np.float32), y.astype(np.int32), 400, 100)
    deep = partial(draw_mlp, (30, 24, 12, 2))
    networks = (
        Case("MLP, digits", mlp, partial(draw_mlp, (64, 48, 10)), *digits, "margin", 0.02, 400),
        Case("convolution, digits", conv, draw_conv, *digits, "margin", 0.03, 500),
        Case("MLP, diabetes", mlp, partial(draw_mlp, (10, 32, 1)), *diabetes, "value", 0.005, 400),
        Case("deeper MLP, breast cancer", mlp, deep, *tumours, "margin", 0.01, 300),
    )
    return {case.name: case for case in networks}


def loss_of(case, outputs, y):
    if case.model_output == "value":
        return ((outputs[:, 0] - y) ** 2).mean() / 2
    return -jnp.take_along_axis(jax.nn.log_softmax(outputs), y[:, None], 1).mean()


def outputs_of(case, params, x, y):
    """The model output of each example, written apart from the library's."""
    out = case.apply(params, x)
    if case.model_output == "value":
        return out[:, 0]
    log_p = jnp.take_along_axis(jax.nn.log_softmax(out), y[:, None], 1)[:, 0]
    others = jax.nn.one_hot(y, out.shape[1], dtype=bool)
    return log_p - jax.nn.logsumexp(jnp.where(others, -jnp.inf, jax.nn.log_softmax(out)), axis=1)


def train(case, key, places):
    """Descend from a random start on batches of the examples at these places."""
    x, y = map(jnp.asarray, case.train)
    begin, batches = jax.random.split(key)
    params = case.draw(begin)

    def step(state, key):
        params, speed = state
        rows = places[jax.random.randint(key, (case.batch,), 0, len(places))]
        slope = jax.grad(lambda p: loss_of(case, case.apply(p, x[rows]), y[rows]))(params)
        speed = jax.tree.map(lambda v, g: 0.9 * v + g, speed, slope)
        return (jax.tree.map(lambda p, v: p - case.step * v, params, speed), speed), None

    state = (params, jax.tree.map(jnp.zeros_like, params))
    return jax.lax.scan(step, state, jax.random.split(batches, case.steps))[0][0]


def trained(case, seeds, places):
    """Parameters of trainings, stacked: for each seed its own places, ``(r, h)``."""
    run = jax.jit(jax.vmap(lambda seed, rows: train(case, jax.random.key(seed), rows)))
    parts = [
        run(jnp.asarray(seeds[i : i + TOGETHER]), jnp.asarray(places[i : i + TOGETHER]))
        for i in range(0, len(seeds), TOGETHER)
    ]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)


def entries(stacked):
    """The parameters of each training."""
    count = len(jax.tree.leaves(stacked)[0])
    return [jax.tree.map(lambda leaf, i=i: leaf[i], stacked) for i in range(count)]
