"""One point of the edge of stability: full-batch descent at one step size, with its sharpness."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray

from steepest import kit
from steepest.claims.descent._digits_network import (
    MARGIN,
    Setting,
    relative_sharpness,
    tanh_on_digits,
)
from steepest.dynamics import Observer, Trajectory, descend, flow
from steepest.kit.points import Arrays, equal
from steepest.nn.types import Params, Risk

Measured = dict[str, jax.Array]  # sharpness and residual, by name
RECORDS = 25  # points of each path at which the sharpness is measured


@dataclass(frozen=True)
class EdgePoint(kit.Point):
    """The late sharpness in units of 2/η, which theory wants to be one, over step size and width."""

    lr: kit.Positive
    steps: kit.Count
    width: kit.Count
    depth: kit.Count
    c_w: kit.Positive
    n: kit.Count
    seeds: kit.Seeds
    products: kit.Count

    precision = "float32"
    batched = ("lr",)
    diagram = {"lr": "log:0.1:2:14", "width": "16,32,64"}
    base = {"steps": 725}
    labels = {"start_sharpness": "sharpness at the start / (2/η)"}
    contours = {"start_sharpness_measured": (1.0, "the start is at 2/η")}
    diagram_remarks = (
        "Every step size takes the same number of steps, so that small ones end at an earlier flow time η × steps, "
        "while the sharpness is still rising to 2/η: such points are out of range, and say how many steps would do.",
        "Points leave the range beyond the line, where the sharpness at the start, in the mean over seeds, is 2/η. "
        "That sharpness is measured: the limit kernel alone gives 1.9, while at widths 16 to 64 it is 3.6 to 2.6.",
    )

    def networks(self, key: kit.Key) -> Setting:
        """Return the network, its risk on centred digits and the keys of its initial points."""
        return tanh_on_digits(
            key, self.seeds, n=self.n, width=self.width, depth=self.depth, c_w=self.c_w
        )

    def predict(self, setting):
        return kit.Prediction(sharpness=2 / self.lr)

    def observe(self, setting, key):
        start = self.networks(key)
        look = {"sharpness": partial(self.sharpness, start.risk)}
        descent = lambda seed: self.path(start, start.net.init(seed), self.lr, look)
        path = jax.vmap(descent)(start.keys)
        return {"risk": path.risk, **path.observed["sharpness"]}

    def path(
        self,
        setting: Setting,
        start: Params,
        lr: jax.Array | float,
        observe: Mapping[str, Observer],
    ) -> Trajectory:
        """Descend with one step size from one initial point, and look at the records."""
        return descend(
            setting.risk,
            start,
            optax.sgd(lr),
            self.steps,
            record=max(1, self.steps // RECORDS),
            observe=observe,
        )

    def sharpness(self, risk: Risk, params: Params) -> dict[str, jax.Array]:
        """Return the sharpness and its residual relative to it."""
        return relative_sharpness(risk, params, self.products)

    def run_conditions(self, observed):
        in_units = observed["value"] * self.lr / 2
        yield from starts_below_the_edge(in_units[:, 0], observed["residual"])
        yield had_time(in_units, self.steps)

    def judge(self, predicted, observed):
        late = late_mean(observed["value"]) / predicted["sharpness"]
        yield equal("late_sharpness", 1.0, late, MARGIN, label="late sharpness / (2/η)")

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        start = observed["value"][:, 0].mean() / predicted["sharpness"]
        return {"start_sharpness": float(start)}


def follow_descents_and_flow(
    point: EdgePoint, setting: Setting, step_sizes: Sequence[float]
) -> kit.Observation:
    """Descend with every step size from every initial network, and follow gradient flow as long as the slowest."""
    times = np.linspace(0, point.steps * min(step_sizes), 16)
    visited = {"params": lambda params: params}

    def follow(seed: kit.Key) -> tuple[Trajectory, Measured, Measured]:
        """Descend with every step size, follow the flow, then measure the sharpness of all that was visited."""
        start = setting.net.init(seed)
        descend_at = lambda lr: point.path(setting, start, lr, visited)
        paths = jax.lax.map(descend_at, jnp.array(step_sizes))
        # with 1e-3 the sharpness at its end was 8 to 9 % low; from 1e-4 on it is that of Euler's small steps
        limit = flow(setting.risk, start, times, observe=visited, rtol=1e-4, atol=1e-7)
        descents = paths.observed.pop("params")
        shape = paths.risk.shape
        join = lambda a, b: jnp.concatenate([a.reshape(-1, *b.shape[1:]), b])
        points = jax.tree.map(join, descents, limit.observed["params"])
        measured = jax.lax.map(partial(point.sharpness, setting.risk), points)
        cut = math.prod(shape)
        of_descents = {name: value[:cut].reshape(shape) for name, value in measured.items()}
        return paths, of_descents, {name: value[cut:] for name, value in measured.items()}

    every = kit.compiled(lambda seeds: jax.lax.map(follow, seeds))(setting.keys)
    paths, of_descents, of_flow = jax.tree.map(np.asarray, every)
    return kit.Observation(
        step=("record", paths.steps[0, 0], "steps"),
        risk=("seed step_size record", paths.risk),
        sharpness=("seed step_size record", of_descents["value"]),
        residual=("seed step_size record", of_descents["residual"]),
        flow_time=("time", times),
        flow_sharpness=("seed time", of_flow["value"]),
    )


def starts_below_the_edge(start: np.ndarray, residual: np.ndarray) -> list[kit.Hypothesis]:
    """Check the sharpness at the start, in units of 2/η, and the residuals of all sharpnesses."""
    lower = "choose a smaller --lr or --c_w"
    largest = np.nanmax(residual)
    return [
        kit.assume("largest sharpness at the start / (2/η)", start.max(), "<", 1, lower),
        kit.assume(
            "largest relative residual of a sharpness", largest, "<=", 0.2, "raise --products"
        ),
    ]


def had_time(sharpness: np.ndarray, steps: int) -> kit.Hypothesis:
    """Check that no descent ended while its sharpness, in units of 2/η, was still rising below one.

    Args:
        sharpness: shape ``(..., records)``; NaN where a descent diverged, which is no lack of time.
        steps: how many were taken.
    """
    fifth = _fifth(sharpness)
    now = late_mean(sharpness)
    rise = now - sharpness[..., -2 * fifth : -fifth].mean(-1)
    early = (sharpness.max(-1) < 1) & (rise > 0.01 * now)
    # at the rise of the last fifth, so many fifths more of the run to the edge
    fifths = np.divide(1 - now, rise, out=np.zeros_like(now), where=early)
    needed = steps * (1 + 0.2 * fifths.max())
    return kit.assume(
        "descents that ended before they could reach 2/η",
        early.mean(),
        "==",
        0,
        f"at the pace of the end about --steps {10 * round(needed / 10)} would do",
    )


def had_time_to_stay(sharpness: np.ndarray, steps: int) -> kit.Hypothesis:
    """Check that no descent was still rising below the edge when the last two fifths began, where it is to stay.

    Args:
        sharpness: in units of 2/η, shape ``(..., records)``; NaN where a descent diverged.
        steps: how many were taken.
    """
    before = max(2, sharpness.shape[-1] - 2 * _fifth(sharpness))
    name = "descents that had yet to reach 2/η at three fifths of the run"
    return replace(had_time(sharpness[..., :before], steps), name=name)


def flow_goes_on(sharpness: np.ndarray, beyond: float, steps: int) -> kit.Hypothesis:
    """Check that every flow ends beyond the edge, where a descent that follows it could not be.

    Args:
        sharpness: in units of 2/η, shape ``(seeds, times)``.
        beyond: what each must reach in the same units: more than what counts as the edge.
        steps: of the descent, as long as which it was followed.
    """
    end = sharpness[:, -1]
    rise = end - sharpness[:, -1 - _fifth(sharpness)]
    early = (end < beyond) & (rise > 0.01 * end)
    fifths = np.divide(beyond - end, rise, out=np.zeros_like(end), where=early)
    needed = steps * (1 + 0.2 * fifths.max())
    longer = f"at the pace of the end about --steps {10 * math.ceil(needed / 10)} would do"
    larger = "it levels off at the edge: choose a larger --lr or --width"
    remedy = longer if early.any() else larger
    return kit.assume("least sharpness that a flow ends at / (2/η)", end.min(), ">", beyond, remedy)


def last_fifth(sharpness: xarray.DataArray, before: int = 0) -> xarray.DataArray:
    """Return the mean over the last fifth of the records, or over a fifth so many fifths before."""
    fifth = _fifth(sharpness.values)
    end = sharpness.sizes["record"] - before * fifth
    return sharpness.isel(record=slice(end - fifth, end)).mean("record", skipna=False)


def last_two_fifths(sharpness: xarray.DataArray, step: xarray.DataArray) -> xarray.DataArray:
    """Return the records of the last two fifths along an axis of their steps."""
    along = sharpness.assign_coords(record=step.values).rename(record="step")
    return along.isel(step=slice(-2 * _fifth(sharpness.values), None))


def late_mean(sharpness: np.ndarray) -> np.ndarray:
    """Return the mean over the last fifth of the records, ``(..., records)``."""
    return sharpness[..., -_fifth(sharpness) :].mean(-1)


def _fifth(sharpness: np.ndarray) -> int:
    """Return how many records a fifth of them is: one at least, as ``--steps 1`` leaves two."""
    return max(1, sharpness.shape[-1] // 5)
