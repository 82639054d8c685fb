"""Tanh networks of several widths under gradient flow and one-pass SGD, by automatic differentiation of their risk."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import descend, flow

Networks = tuple[jax.Array, ...]
"""Neurons of one network of each width, (N, 2) each: together they compile once."""
Power = float | jax.Array
MEAN: Power = 1.0
"""Power of N that outputs are divided by, where they are means over neurons."""
KERNEL = 0.5
"""The same power in the kernel regime."""
BATCH = 20
"""Starts that are trained at a time; what a batch leaves over, of some other number of starts, compiles once more."""
LABELS = 0.5
"""Size of labels that are fair signs, for networks in several dimensions."""
SMALLNESS = 0.2
"""ε times the dimension, of their steps."""
RUNS = 8
"""Of them, in each group."""
POINTS = 64
"""At which their outputs are read."""


class Setting(NamedTuple):
    """The examples, which are the population: one-pass SGD draws one of them at each step."""

    x: kit.Values  # (n, 2)
    y: kit.Values  # (n,)


def draw_examples(key: kit.Key, examples: int, radius: float, height: float) -> Setting:
    """Draw examples on a circle, with an odd target, as networks of tanh are odd in the mean."""
    angle = 2 * np.pi * kit.numpy_generator(key).random(examples)
    x = radius * np.stack([np.cos(angle), np.sin(angle)], 1)
    return Setting(x, height * (np.tanh(2 * x[:, 0]) - np.tanh(2 * x[:, 1])))


def output(w: jax.Array, x: jax.Array, power: Power = MEAN) -> jax.Array:
    """Return the outputs of a network at examples, ``(..., n)``."""
    return jnp.tanh(w @ x.T).sum(0) / len(w) ** power


def outputs_of(networks: Networks, data: Setting, power: Power = MEAN) -> jax.Array:
    """Return the outputs of every network at the examples, ``(widths, n)``."""
    return jnp.stack([output(w, data.x, power) for w in networks])


def risk_of(networks: Networks, data: Setting, power: Power = MEAN) -> jax.Array:
    """Return the risks ½ mean (f − y)², in the time of each width, summed over networks that do not see each other."""
    risks = [
        # the tangent kernel Σ_j ∇_j f ∇_j fᵀ is ∝ N^(1 − 2·power): this makes it of order one
        len(w) ** (2 * power - 1) * 0.5 * jnp.mean((output(w, data.x, power) - data.y) ** 2)
        for w in networks
    ]
    return jnp.stack(risks).sum()


def risk_of_draws(networks: Networks, key: kit.Key, data: Setting) -> jax.Array:
    """Return the same of one example for each network, drawn anew."""
    drawn = jax.random.randint(key, (len(networks),), 0, len(data.y))
    risks = [
        risk_of((w,), Setting(data.x[i][None], data.y[i]))
        for w, i in zip(networks, drawn, strict=True)
    ]
    return jnp.stack(risks).sum()


def draw_networks(key: kit.Key, widths: Sequence[int]) -> Networks:
    """Draw the networks of one start, of Gaussian weights."""
    return tuple(jax.random.normal(jax.random.fold_in(key, N), (N, 2)) for N in widths)


def follow_flow(
    key: kit.Key, power: jax.Array, data: Setting, widths: Sequence[int], times: kit.Values
) -> dict[str, jax.Array]:
    """Follow the gradient flow of one start: its outputs and how far its neurons have moved, (times, widths, …)."""
    start = draw_networks(key, widths)
    moved = lambda networks: jnp.stack(
        [((w - w0) ** 2).sum(1).mean() ** 0.5 for w, w0 in zip(networks, start, strict=True)]
    )
    risk = partial(risk_of, data=data, power=power)
    quantities = {"outputs": partial(outputs_of, data=data, power=power), "moved": moved}
    return flow(risk, start, times, observe=quantities, rtol=1e-4, atol=1e-6).observed


def descend_at_rates(
    key: kit.Key,
    data: Setting,
    widths: Sequence[int],
    times: kit.Values,
    rates: Sequence[float],
    *,
    drawn: bool,
) -> jax.Array:
    """Descend from the start of the flow at every rate, with drawn examples or with all, (rates, times, …)."""
    ends = []
    for i, lr in enumerate(rates):
        at = np.round(times / lr).astype(int)
        path = descend(
            partial(risk_of, data=data),
            draw_networks(key, widths),
            optax.sgd(lr),
            int(at[-1]),
            record=at,
            observe={"outputs": partial(outputs_of, data=data)},
            stochastic=partial(risk_of_draws, data=data) if drawn else None,
            key=jax.random.fold_in(key, i),
        )
        ends.append(path.observed["outputs"])
    return jnp.stack(ends)


def train_all(
    setting: Setting,
    key: kit.Key,
    *,
    widths: Sequence[int],
    times: Sequence[float],
    rates: Sequence[float],
    seeds: int,
    starts: int,
) -> dict[str, tuple[str, kit.Values]]:
    """Train every start by gradient flow and by SGD, and the first of each seed also in worlds that are no limit."""
    readings = np.array(times)

    def every(keys: kit.Key, data: Setting) -> tuple:
        over = partial(jax.lax.map, batch_size=BATCH)
        powers = jnp.repeat(jnp.array([MEAN, KERNEL]), np.array([keys.size, len(keys)]))
        follow = lambda of: follow_flow(*of, data=data, widths=widths, times=readings)
        flows = over(follow, (jnp.concatenate([keys.ravel(), keys[:, 0]]), powers))
        step = partial(descend_at_rates, data=data, widths=widths, times=readings, rates=rates)
        steps = over(partial(step, drawn=True), keys.ravel())
        whole = over(partial(step, drawn=False), keys[:, 0])
        return flows, steps, whole

    keys = kit.keys(key, seeds * starts).reshape(seeds, starts)
    trained = jax.tree.map(np.asarray, kit.compiled(every)(keys, setting))
    paths, steps, whole = trained
    flows = {name: values[: keys.size] for name, values in paths.items()}
    kernel = {name: values[keys.size :] for name, values in paths.items()}
    of_starts = lambda values: values.reshape(seeds, starts, *values.shape[1:])
    return {
        "flows": ("seed start time width example", of_starts(flows["outputs"])),
        "moved": ("seed start time width", of_starts(flows["moved"])),
        "sgd": ("seed start rate time width example", of_starts(steps)),
        "kernel": ("seed time width example", kernel["outputs"]),
        "kernel_moved": ("seed time width", kernel["moved"]),
        "whole": ("seed rate time width example", whole),
    }


def examples_for(dimension: int, time: float) -> int:
    """Return how many examples one-pass SGD takes in a time, at a step in inverse proportion to the dimension."""
    return round(time * dimension / SMALLNESS)


def on_sphere(rng: np.random.Generator, shape: Sequence[int], dimension: int) -> kit.Values:
    """Draw points on the sphere of length √D, in single precision, ``(*shape, D)``."""
    points = rng.standard_normal((*shape, dimension), dtype=np.float32)
    return points * np.float32(dimension**0.5) / np.linalg.norm(points, axis=-1, keepdims=True)


def paired_start(rng: np.random.Generator, runs: int, neurons: int, dimension: int) -> kit.Values:
    """Draw networks of neurons ±w with w ~ N(0, I/D), whose outputs vanish, ``(runs, neurons, D)``."""
    half = rng.standard_normal((runs, neurons // 2, dimension), dtype=np.float32)
    half /= np.float32(dimension**0.5)
    return np.concatenate([half, -half], 1)


def slope_of_square(w: kit.Values, x: kit.Values, y: kit.Values) -> kit.Values:
    """Return the gradient of ½(f(x) − y)² of one example for each network, times N, by hand, ``(runs, neurons, D)``."""
    active = np.tanh((w @ x[:, :, None])[..., 0])
    error = active.mean(1) - y
    return (error[:, None] * (1 - active**2))[..., None] * x[:, None]


def train_on_noise(
    rng: np.random.Generator,
    runs: int,
    neurons: int,
    dimension: int,
    times: Sequence[float],
    length: int,
) -> kit.Values:
    """Train networks by one-pass SGD on labels that are fair signs, and return mean f²/ε, ``(runs, times)``.

    Args:
        rng: of starts, examples, labels and points.
        runs: networks.
        neurons: of each, even.
        dimension: of the examples, which are uniform on a sphere.
        times: at which outputs are read.
        length: the number of examples is as for so many dimensions, and ε the time over it.
    """
    w = paired_start(rng, runs, neurons, dimension)
    points = on_sphere(rng, (runs, POINTS), dimension)
    lr = np.float32(SMALLNESS / length)
    reads = [examples_for(length, time) for time in times]
    squares = []
    for step in range(reads[-1]):
        x = on_sphere(rng, (runs,), dimension)
        y = np.float32(LABELS) * rng.choice(np.array([-1, 1], np.float32), runs)
        w -= lr * slope_of_square(w, x, y)
        if step + 1 in reads:
            outputs = np.tanh(w @ points.swapaxes(1, 2)).mean(1)
            # labels have mean zero, and the limit stays at zero: f² is the squared distance from it
            squares.append((outputs**2).mean(1) / lr)
    return np.stack(squares, 1)


def noise_in_dimensions(
    rng: np.random.Generator,
    *,
    seeds: int,
    dimensions: Sequence[int],
    neurons: Sequence[int],
    times: Sequence[float],
) -> dict[str, tuple[str, kit.Values]]:
    """Train groups of networks on noise, in every dimension, and as often in the fewest for as many examples."""
    fewest = min(dimensions)

    def in_world(dimension: int, length: int) -> kit.Values:
        squares = [
            train_on_noise(rng, seeds * RUNS, number, dimension, times, length)
            for number in neurons
        ]
        return np.stack(squares, 1).reshape(seeds, RUNS, len(neurons), len(times))

    in_each = [in_world(dimension, dimension) for dimension in dimensions]
    flat = [in_world(fewest, dimension) for dimension in dimensions]
    axes = "seed draw neurons time dimension"
    return {"sampling": (axes, np.stack(in_each, -1)), "flat": (axes, np.stack(flat, -1))}
