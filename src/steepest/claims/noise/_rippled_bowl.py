"""The bowl f = ‖x‖²/2 with bumps, walkers that sample it by values only, and descent among ripples."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest import kit
from steepest.noise import metropolis

DELTA = kit.between(0.3, 0.7, "at larger ones the starts are low where T is high")
DIMENSIONS = kit.choices((2, 4, 8, 16), (2, 5, 12))
RATIOS = kit.choices(
    (0.25, 0.5, 1.0), (0.3, 0.6, 1.0), why="colder walkers need not arrive in polynomial time"
)
REACH = 8.0  # starts have the height of the mean over |x_i| ≤ 8, 32/3 a coordinate
FARTHEST = 10.0  # coordinate of a start
STEEP = 12.0  # slope of the ripples: they hold against the slope of f wherever |x_i| < 12
PROPOSAL = 2.4  # times √(T/d): the best scale for a normal law
NEEDLE = 6.0  # each coordinate of the needle's place
THIN = 2e-4  # twice the variance of the needle's shape: too thin to be met on the way down, in two dimensions too
NEAR = 3.0  # a mean height of so many times dT/2 counts as arrived
GROUPS = 10  # of walkers, whose mean height arrives at one step
COLD = 1e-3  # of the temperature, from the first step on: a changed world
RIPPLE, QUENCH, HIDDEN, WORST = range(
    4
)  # lanes; the worst bumps have the last and all lanes after it


class Bumps(NamedTuple):
    """What is added to f = ‖x‖²/2; all zero, it is f itself. Arrays of one shape, mapped over."""

    dimension: kit.Values  # d; coordinates beyond it are zero and stay so
    ripple: kit.Values  # amplitude of each coordinate's cos(frequency · x_i); d times that is δ
    frequency: kit.Values  # of the ripples
    jump: kit.Values  # δ of the worst function, F = f + δ below the threshold of f and f − δ above
    threshold: kit.Values  # where it jumps
    needle: kit.Values  # depth of a thin hole


class Walks(NamedTuple):
    """Starts of the walkers, and the functions that they walk on."""

    starts: kit.Values  # (lanes, dimensions, walkers, widest), zero beyond each dimension
    bumps: dict[int, Bumps]  # by lane, fields of shape (dimensions,)


def height(x: Array) -> Array:
    """Return the convex f at a point."""
    return 0.5 * (x**2).sum()


def bumpy(bumps: Bumps, x: Array) -> Array:
    """Return F at a point, shape ``(widest,)``, of which the first ``dimension`` coordinates count."""
    mine = jnp.arange(len(x)) < bumps.dimension
    f = height(x)
    ripples = bumps.ripple * jnp.where(mine, jnp.cos(bumps.frequency * x), 0.0).sum()
    distance = jnp.where(mine, (x - NEEDLE) ** 2, 0.0).sum()
    hole = bumps.needle * jnp.exp(-distance / THIN)
    return f + ripples + bumps.jump * jnp.sign(bumps.threshold - f) - hole


def ripples(dimension: kit.Values, delta: float) -> tuple[kit.Values, kit.Values]:
    """Return amplitude and frequency of ripples of total height δ and slope ``STEEP``."""
    amplitude = delta / dimension
    return amplitude, STEEP / amplitude


def rippled(dimensions: tuple[int, ...], delta: float, needle: float) -> Bumps:
    """Return ripples in each dimension, and a needle of a depth of so many times d."""
    d = np.array(dimensions)
    return Bumps(d, *ripples(d, delta), 0.0 * d, 0.0 * d, needle * d)


def walk(
    bumps: Bumps, start: Array, temperatures: Array, marks: np.ndarray, key: kit.Key
) -> Float[Array, " records"]:
    """Run one walker, and return f at the marks."""
    mine = jnp.arange(len(start)) < bumps.dimension
    path = metropolis(
        lambda x: bumpy(bumps, x),
        jnp.where(mine, start, 0.0),
        temperatures,
        jnp.where(mine, PROPOSAL / jnp.sqrt(1.0 * bumps.dimension), 0.0),
        len(temperatures),
        key,
        record=marks,
        observe={"height": height},
    )
    return path.observed["height"]


def far_starts(rng: np.random.Generator, count: int, dimension: int) -> kit.Values:
    """Return starts of one height, so that walkers of a dimension arrive together, within ``FARTHEST``."""
    starts = np.full((count, dimension), np.inf)
    while (far := np.abs(starts).max(1) > FARTHEST).any():
        draws = rng.uniform(-REACH, REACH, (far.sum(), dimension))
        radius = np.linalg.norm(draws, axis=1, keepdims=True)
        # to ‖x‖² = d REACH²/3, the mean over the cube
        starts[far] = draws * REACH * np.sqrt(dimension / 3) / radius
    return starts


def starts(key: kit.Key, lanes: int, dimensions: tuple[int, ...], walkers: int) -> kit.Values:
    """Return starts ``(lanes, dimensions, walkers, widest)``, zero beyond each dimension."""
    rng = kit.numpy_generator(key)
    drawn = np.zeros((lanes, len(dimensions), walkers, max(dimensions)))
    for lane in drawn:
        for walkers_of, dimension in zip(lane, dimensions, strict=True):
            walkers_of[:, :dimension] = far_starts(rng, walkers, dimension)
    return drawn


def marks(dimensions: tuple[int, ...], hold: int) -> np.ndarray:
    """Return the steps at which heights are recorded: all of them until the walkers have arrived."""
    dense = min(20 * max(dimensions), hold)
    return np.append(np.arange(0, dense), np.arange(dense, 2 * hold + 1, 10))


def heights(
    walks: Walks, temperatures: dict[int, kit.Values], at: np.ndarray, key: kit.Key
) -> dict[int, kit.Values]:
    """Return f along the walks of some lanes, by lane, ``(dimensions, walkers, records)`` each."""
    lanes = np.array(list(temperatures))
    single = partial(np.asarray, dtype=np.float32)

    def every(bumps: Bumps, starts: Array, temperatures: Array, key: kit.Key) -> Array:
        from_start = lambda bumps, start, T, key: walk(bumps, start, T, at, key)
        walkers = jax.vmap(from_start, (None, 0, None, 0))
        dimensions = jax.vmap(walkers, (0, 0, None, 0))
        # a lane has the same keys whichever other lanes there are
        keys = jax.random.split(key, (lanes.max() + 1, *starts.shape[1:3]))[lanes]
        return jax.vmap(dimensions)(bumps, starts, temperatures, keys)

    bumps = jax.tree.map(lambda *fields: np.stack(fields), *(walks.bumps[i] for i in lanes))
    args = (bumps, walks.starts[lanes], np.stack([*temperatures.values()]))
    return dict(
        zip(
            lanes,
            np.asarray(kit.compiled(every)(*jax.tree.map(single, args), key), float),
            strict=True,
        )
    )


def arrivals(heights: kit.Values, marks: np.ndarray) -> kit.Values:
    """Return the step at which the mean height of a group of walkers falls to ``NEAR``, ``(groups, dimensions)``.

    Heights are in units of dT/2, ``(dimensions, walkers, records)``.
    """
    groups = min(GROUPS, heights.shape[1])
    size = heights.shape[1] // groups
    means = heights[:, : groups * size].reshape(len(heights), groups, size, -1).mean(2)
    at = (means <= NEAR).argmax(-1)
    height_at = lambda place: np.take_along_axis(means, place[..., None], -1)[..., 0]
    share = (height_at(at - 1) - NEAR) / (height_at(at - 1) - height_at(at))
    steps = marks[at - 1] + share * (marks[at] - marks[at - 1])
    return np.where(at > 0, steps, np.nan).T


def have_arrived(arrival: kit.Values, dimensions: tuple[int, ...], hold: int) -> kit.Hypothesis:
    """Return the condition that walkers arrive within the steps that are left out of means."""
    late = arrival + 4 * np.array(dimensions)  # from 3 · dT/2 a way of 4d steps leaves a hundredth
    over = float(np.nan_to_num(late, nan=np.inf).max()) / (hold // 3)
    name = (
        f"the last group's steps to {NEAR:g} · dT/2 and 4d more, over the steps left out of means"
    )
    return kit.assume(name, over, "<=", 1, "walkers must have arrived: raise --hold")


def start_far(temperature: float) -> kit.Hypothesis:
    """Return the hypothesis that walkers have a way to go, at the highest temperature."""
    high = REACH**2 / 3 / temperature
    why = "walkers must have a way to go: take smaller bumps, or a larger δ/T"
    return kit.assume("least height of the starts in units of dT/2", high, ">=", 2 * NEAR, why)


def fall(
    start: kit.Values, dimension: int, delta: float, steps: int, lr: float | None = None
) -> tuple[kit.Values, float]:
    """Descend on the rippled F from each start; return where it ends and the largest slope left there.

    F is a sum over coordinates, so that each coordinate descends by itself. The step is half of one over the largest
    curvature if it is left out.
    """
    amplitude, frequency = ripples(dimension, delta)
    lr = lr or 0.5 / (1 + amplitude * frequency**2)
    slope = lambda x: x - amplitude * frequency * np.sin(frequency * x)
    x = start.copy()
    for _ in range(steps):
        x -= lr * slope(x)
    return x, float(np.abs(slope(x)).max())
