"""The flows of logistic-ray, and what is read from their paths."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.dynamics import flow
from steepest.nn.data import Dataset
from steepest.nn.losses import logistic, margin_risk
from steepest.nn.types import Values
from steepest.programs import LogisticSplit

LATE = 8  # readings at the end over which velocities are fitted
FINE = 1e-9  # tolerance of the sets' flows: the distance to the offset falls to 1e-9 where it is fitted
COARSE = 1e-6  # of the digits' flow, which is asked for less


class Setting(NamedTuple):
    """Synthetic sets, one a seed, the real set, all in the coordinates of their splits (real one last)."""

    x: Values  # (seeds, n, d), the first coordinates those in S
    y: Values  # (seeds, n)
    part: Values  # (seeds, n)
    real: Dataset
    splits: list[LogisticSplit]

    @property
    def inside(self) -> list[int]:
        """Return the dimension of S of every set, which are the first coordinates."""
        return [split.basis.shape[1] for split in self.splits]


class Paths(NamedTuple):
    """Flows of several sets at the same readings."""

    weights: Values  # (sets, readings, d)
    arrived: Values  # whether the flow reached the horizon, (sets,)


def follow(x: Values, y: Values, times: Values, rtol: float) -> Paths:
    """Follow the flow from zero on the logistic risk of sets ``(sets, n, d)``, one after the other.

    Implicit, because the rest is stiff on the logarithmic clock. Not mapped: no set waits for the slowest.
    """
    settings = {"solver": "stiff", "rtol": rtol, "atol": rtol / 1000, "max_steps": 20_000}

    def one(lane: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        x, y = lane
        risk = margin_risk(logistic, lambda w, x: x @ w, x, y)
        path = flow(risk, jnp.zeros(x.shape[1]), times, "log", None, {"w": lambda w: w}, **settings)
        return path.observed["w"], path.ok

    return Paths(*map(np.asarray, kit.compiled(lambda x, y: jax.lax.map(one, (x, y)))(x, y)))


def velocity(log_time: Values, weights: Values) -> Values:
    """Return the slope of the weights in log t over the last readings, ``(..., d)``."""
    # least squares: Σ (s − s̄)w/Σ (s − s̄)² with s = log t
    late = log_time[-LATE:] - log_time[-LATE:].mean()
    return np.einsum("r,...rd->...d", late, weights[..., -LATE:, :]) / (late**2).sum()


def excess(setting: Setting, weights: Values) -> Values:
    """Return the risk of the separable part at every reading, ``(seeds, readings)``."""
    outputs = np.einsum("snd,srd->srn", setting.x, weights)
    risks = np.logaddexp(0, -setting.y[:, None] * outputs)
    return (risks * setting.part[:, None]).mean(-1)
