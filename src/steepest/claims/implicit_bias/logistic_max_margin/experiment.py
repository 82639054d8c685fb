"""Gradient flow on the logistic risk of separable sets, far beyond what plain time reaches."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steepest import kit
from steepest.dynamics import FlowPath, flow
from steepest.nn.data import Dataset, breast_cancer, separable
from steepest.nn.losses import log_margin_risk, logistic, margin_risk
from steepest.programs import MarginProgram, hard_margin, linear_margin

READINGS = 40
SUPPORT = 1e-6
"""Relative distance from the margin up to which an example is a support vector: a solver's tolerance."""
PLAIN = np.log(1e6)
"""The log of the time that a million steps of size one come to."""


class Sets(NamedTuple):
    """Synthetic sets, one a seed, and breast cancer with a column of ones."""

    x: kit.Values  # (seeds, n, d)
    y: kit.Values  # (seeds, n)
    real: Dataset


def draw_sets(
    key: kit.Key, seeds: int, n: int, dimension: int, margin: float, flipped: float
) -> Sets:
    """Draw synthetic sets and flip labels; take breast cancer as it is."""
    for_data, for_flips = jax.random.split(key)

    def draw_set(k: kit.Key) -> tuple[jax.Array, jax.Array]:
        data = separable(k, n, dimension, margin)
        return data.x, data.y

    def draw(for_data: kit.Key, for_flips: kit.Key) -> tuple[jax.Array, jax.Array]:
        x, y = jax.vmap(draw_set)(kit.keys(for_data, seeds))
        return x, jnp.where(jax.random.uniform(for_flips, y.shape) < flipped, -y, y)

    x, y = (np.asarray(part) for part in kit.compiled(draw)(for_data, for_flips))
    cancer = breast_cancer()
    inputs = np.column_stack([np.asarray(cancer.x), np.ones(cancer.n)])
    return Sets(x, y, Dataset(inputs, np.asarray(cancer.y), "breast cancer with ones"))


def clear_sets(sets: Sets, count: int, clear: float) -> tuple[list[int], list[MarginProgram]]:
    """Return the first sets that are separable with no example near the margin, and their programs.

    Args:
        sets: candidates.
        count: how many are wanted; fewer are returned where there are not as many.
        clear: how far beyond the margin examples outside the support must be, by the margin.
    """
    chosen: list[int] = []
    programs: list[MarginProgram] = []
    for place, (x, y) in enumerate(zip(sets.x, sets.y, strict=True)):
        program = _solved(x, y)
        if program is not None and program.separable and beyond(x, y, program) >= clear:
            chosen.append(place)
            programs.append(program)
        if len(chosen) == count:
            break
    return chosen, programs


def _solved(x: NDArray, y: NDArray) -> MarginProgram | None:
    """Return the hard-margin program; None where the solver does not come to its end."""
    try:
        return hard_margin(x, y)
    except kit.UserError:
        return None


def beyond(x: NDArray, y: NDArray, program: MarginProgram) -> float:
    """Return θ − 1: how far beyond the margin the nearest example outside the support is, by the margin."""
    # θ − 1 of every example, which is zero on the support
    farther = y * (x @ program.direction) / program.margin - 1
    return float(farther[farther > SUPPORT].min(initial=np.inf))


def follow(x: jax.Array, y: jax.Array, end: float) -> FlowPath:
    """Follow the flow from zero, recorded forty times on the risk clock ``∫ R dt``; implicit, as it is stiff."""
    apply = lambda w, x: x @ w
    risk = margin_risk(logistic, apply, x, y)
    log_risk = log_margin_risk(logistic, apply, x, y)
    times = np.append(0.0, np.geomspace(0.1, end, READINGS - 1))
    look = {"w": lambda w: w, "margin": lambda w: linear_margin(w, x, y)}
    settings = {"solver": "stiff", "rtol": 1e-6, "atol": 1e-8, "max_steps": 20_000}
    return flow(risk, jnp.zeros(x.shape[1]), times, "risk", log_risk, look, **settings)


def synthetic_flows(sets: Sets, end: float, log_times: Sequence[float]) -> dict[str, Any]:
    """Return weights and log risk of every synthetic set, read at given log t: both are nearly straight in it."""
    over_sets = jax.vmap(lambda x, y: follow(x, y, end))
    path = kit.compiled(over_sets)(sets.x, sets.y)
    clocks = np.asarray(path.log_time)[:, 1:]  # the first is −∞
    read = lambda values: [
        [np.interp(log_times, clock, series) for series in of_set]
        for clock, of_set in zip(clocks, values, strict=True)
    ]
    weights = np.moveaxis(np.asarray(path.observed["w"])[:, 1:], -1, 1)  # (seeds, d, readings)
    log_risk = np.asarray(path.log_risk)[:, None, 1:]
    return {
        "reached": ("seed", clocks[:, -1]),
        "weights": ("seed unknown log_time", read(weights)),
        "log_risk": ("seed log_time", np.array(read(log_risk))[:, 0]),
    }


def real_flow(sets: Sets, end: float) -> dict[str, Any]:
    """Return the flow on breast cancer, reading by reading, its end, and where plain time would have come."""
    path = kit.compiled(lambda x, y: follow(x, y, end))(sets.real.x, sets.real.y)
    weights = np.asarray(path.observed["w"])[1:]
    log_time = np.asarray(path.log_time)[1:]  # the first is −∞
    log_risk = np.asarray(path.log_risk)[1:]
    margin = np.asarray(path.observed["margin"])[1:]
    plain = int(np.searchsorted(log_time, PLAIN)) - 1
    at = lambda reading: {
        "direction": ("feature", unit(weights[reading])),
        "margin": float(margin[reading]),
        "time_times_risk": float(np.exp(log_time[reading] + log_risk[reading])),
    }
    return {
        "real_clock": ("reading", np.asarray(path.clock)[1:]),
        "real_log_time": ("reading", log_time),
        "real_margins": ("reading", margin),
        **{f"real_{name}": value for name, value in at(-1).items()},
        **{f"plain_{name}": value for name, value in at(plain).items()},
    }


def unit(w: NDArray) -> NDArray:
    """Return a vector in length one."""
    return w / np.linalg.norm(w)
