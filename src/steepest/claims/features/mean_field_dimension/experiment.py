"""Tanh networks in several dimensions under one-pass SGD on labels that are noise."""

from collections.abc import Sequence

import numpy as np

from steepest import kit

LABELS = 0.5  # size of labels, which are fair signs
SMALLNESS = 0.2  # ε times the dimension
RUNS = 8  # networks in each group
POINTS = 64  # at which their outputs are read


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

    The number of examples is as for inputs of so many dimensions as the length says, and ε the time over it.
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
