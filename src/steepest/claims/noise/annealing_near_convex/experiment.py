"""Functions within δ of f = ‖x‖²/2, walkers that sample them by values alone, and descent among their ripples."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import brentq
from scipy.special import gammainc, gammaincc

from steepest import kit
from steepest.kit.points import equal
from steepest.noise import metropolis

REACH = 8.0  # starts have the height of the mean over |x_i| ≤ 8, 32/3 a coordinate
FARTHEST = 10.0  # coordinate of a start
STEEP = 12.0  # slope of the ripples: they hold against the slope of f wherever |x_i| < 12
PROPOSAL = 2.4  # times √(T/d): the best scale for a normal law
NEEDLE = 6.0  # each coordinate of the needle's place
THIN = 2e-4  # twice the variance of the needle's shape: too thin to be met on the way down, in two dimensions too
OUTSET = 4.0  # times √T, of descents with noise
DEPTH = 25.0  # times d, of the needle of the walkers who have one: there F is −7d, up to δ


class Bumps(NamedTuple):
    """What is added to f = ‖x‖²/2; all zero, it is f itself. Arrays of one shape, mapped over.

    Attributes:
        dimension: d; coordinates beyond it are zero and stay so.
        ripple: amplitude of each coordinate's cos(frequency · x_i); d times that is δ.
        frequency: of the ripples.
        jump: δ of the worst function, F = f + δ below the threshold of f and f − δ above.
        threshold: where it jumps.
        needle: depth of a thin hole.
    """

    dimension: kit.Values
    ripple: kit.Values
    frequency: kit.Values
    jump: kit.Values
    threshold: kit.Values
    needle: kit.Values


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


def worst_mean(dimension: int, ratio: float) -> float:
    """Return the largest mean of f = ‖x‖²/2 under exp(−F/T) over all F within δ of f, in units of dT/2.

    The mean is E[f w]/E[w] under exp(−f/T) with a weight w between e^{−δ/T} and e^{δ/T}. It is largest where w is
    largest exactly where f exceeds that very mean R; f/T has the Gamma law of shape d/2, and R is the fixed point.
    The general bound e^{2δ/T} is far above it: R tends to one with growing dimension.

    Args:
        dimension: d.
        ratio: δ/T.

    >>> round(worst_mean(2, 1.0), 3), round(worst_mean(1024, 1.0), 3), round(float(np.exp(2.0)), 3)
    (1.929, 1.035, 7.389)
    """
    half = dimension / 2
    weight = np.exp(-2 * ratio)  # of heights below R, over the weight of heights above

    def excess(threshold: float) -> float:
        # f/T = s ~ Γ(d/2): E[s; s < t] = (d/2) P(d/2 + 1, t), P regularized incomplete Γ
        mean = weight * gammainc(half + 1, threshold) + gammaincc(half + 1, threshold)
        mass = weight * gammainc(half, threshold) + gammaincc(half, threshold)
        return half * mean / mass - threshold

    return float(np.asarray(brentq(excess, 0.0, half * np.exp(2 * ratio) + 1))) / half


def ripples(dimension: kit.Values, delta: float) -> tuple[kit.Values, kit.Values]:
    """Return amplitude and frequency of ripples of total height δ and slope ``STEEP``."""
    amplitude = delta / dimension
    return amplitude, STEEP / amplitude


def walk(
    bumps: Bumps, start: Array, temperatures: Array, marks: np.ndarray, key: kit.Key
) -> tuple[Float[Array, " records"], Array]:
    """Run one walker; return f at the marks and the share of proposals accepted in all."""
    mine = jnp.arange(len(start)) < bumps.dimension
    scale = jnp.where(mine, PROPOSAL / jnp.sqrt(1.0 * bumps.dimension), 0.0)
    path = metropolis(
        lambda x: bumpy(bumps, x),
        jnp.where(mine, start, 0.0),
        temperatures,
        scale,
        len(temperatures),
        key,
        record=marks,
        observe={"height": height},
    )
    spans = np.diff(marks, prepend=0)
    return path.observed["height"], (path.accepted * spans).sum() / marks[-1]


def far_starts(rng: np.random.Generator, count: int, dimension: int) -> kit.Values:
    """Return starts of one height, so that walkers of a dimension arrive together, within ``FARTHEST``."""
    starts = np.full((count, dimension), np.inf)
    while (far := np.abs(starts).max(1) > FARTHEST).any():
        draws = rng.uniform(-REACH, REACH, (far.sum(), dimension))
        radius = np.linalg.norm(draws, axis=1, keepdims=True)
        # to ‖x‖² = d REACH²/3, the mean over the cube
        starts[far] = draws * REACH * np.sqrt(dimension / 3) / radius
    return starts


def fall(
    start: kit.Values, dimension: int, delta: float, steps: int, lr: float | None = None
) -> tuple[kit.Values, float]:
    """Descend on the rippled F from each start; return where it ends and the largest slope left there.

    F is a sum over coordinates, so that each coordinate descends on its own.

    Args:
        start: of each coordinate.
        dimension: d.
        delta: δ.
        steps: how many.
        lr: the step; half of one over the largest curvature if left out.
    """
    amplitude, frequency = ripples(dimension, delta)
    lr = lr or 0.5 / (1 + amplitude * frequency**2)
    x = start.copy()
    for _ in range(steps):
        x -= lr * (x - amplitude * frequency * np.sin(frequency * x))
    slope = x - amplitude * frequency * np.sin(frequency * x)
    return x, float(np.abs(slope).max())


def langevin_steps(
    rng: np.random.Generator,
    ratio: float,
    frequency: float,
    groups: int,
    walkers: int,
    *,
    smooth: bool = False,
) -> kit.Values:
    """Return the step at which the mean of x over walkers has fallen by e, for descent with noise, ``(groups,)``.

    F = x²/2 + a cos(ωx) in one dimension, in units of T: x in √T, and a by its ratio to T. Steps are 1/2L, and
    the walk ends after e^{2a/T} times as many as take two units of time.

    Args:
        rng: of starts and noise.
        ratio: a/T.
        frequency: ω √T.
        groups: how many.
        walkers: of each group.
        smooth: whether ripples are left out, at the same steps.
    """
    lr = 0.5 / (1 + ratio * frequency**2)
    period = 2 * np.pi / frequency
    x = (OUTSET + period * (rng.random((groups, walkers)) - 0.5)).astype(np.float32)
    keep = np.float32(1 - lr)
    push = np.float32(0 if smooth else lr * ratio * frequency)
    kick = np.float32((2 * lr) ** 0.5)  # √(2η T) at T = 1
    steps = np.full(groups, np.nan)
    for step in range(int(2 * np.exp(2 * ratio) / lr)):
        before = x.mean(1)
        x = keep * x + push * np.sin(np.float32(frequency) * x)
        x += kick * rng.standard_normal(x.shape, np.float32)
        after = x.mean(1)
        arrived = np.isnan(steps) & (after < OUTSET / np.e)
        share = (before[arrived] - OUTSET / np.e) / (before[arrived] - after[arrived])
        steps[arrived] = step + share
        if not np.isnan(steps).any():
            break
    return steps


def valley(start: kit.Values, dimension: int, delta: float) -> tuple[kit.Values, kit.Values]:
    """Return the minimum of the valley of F in which each start lies, and the minimum that is nearest to it.

    Minima and maxima of x²/2 + a cos(ωx) are the roots of x = aω sin(ωx): in u = ωx, of sin u = u/(aω²). There is one
    minimum beside each u = (2k + 1)π, and one maximum beside each u = 2kπ.
    """
    amplitude, frequency = ripples(dimension, delta)
    u = frequency * start
    steep = amplitude * frequency**2  # of sin u against u
    k = np.round(u / (2 * np.pi))
    top = _root(2 * np.pi * k, steep, 1.0)
    k = np.where(u >= top, k, k - 1)  # of the maximum on the left
    own = _root((2 * k + 1) * np.pi, steep, -1.0)
    others = [_root((2 * (k + shift) + 1) * np.pi, steep, -1.0) for shift in (-1, 1)]
    choices = np.stack([own, *others])
    nearest = np.take_along_axis(choices, np.abs(choices - u).argmin(0)[None], 0)[0]
    return own / frequency, nearest / frequency


def _root(center: kit.Values, steep: float, sign: float) -> kit.Values:
    """Return the root of sin u = u/steep beside a multiple of π, where sin u = sign · sin(u − center)."""
    u = center
    for _ in range(60):
        # fixed point of slope ±1/(steep cos u), which is below one where ripples bend more than f
        u = center + sign * np.arcsin(np.clip(u / steep, -1, 1))
    return u


@dataclass(frozen=True)
class AnnealingPoint(kit.Point):
    """The mean of f under the worst function within δ, at one temperature in one dimension."""

    ratios: kit.Positive
    dimensions: kit.Count
    walkers: kit.Seeds
    hold: kit.Count

    batched = ("ratios",)
    diagram = {"ratios": "linear:0.25:3:12", "dimensions": "1,2,4,8,16"}
    base = {"walkers": 100, "hold": 600}
    labels = {"excess": "E f / (dT/2)"}
    contours = {"excess_predicted": (1.5, "predicted: 1.5 times the mean without bumps")}
    diagram_remarks = (
        "F = f ± δ with the sign that makes the mean of f largest, which the general bound limits to "
        "e^{2δ/T}: 20 at δ/T = 1.5, 400 at 3.",
    )

    def setting(self, key):
        return jnp.asarray(worst_mean(self.dimensions, self.ratios) * self.dimensions / 2)

    def predict(self, setting):
        return kit.Prediction(excess=worst_mean(self.dimensions, self.ratios))

    def observe(self, setting, key):
        # in units of T: f, F and δ over T
        d = self.dimensions
        bumps = Bumps(d, 0.0, 0.0, self.ratios, setting, 0.0)
        steps = 2 * self.hold
        marks = np.arange(self.hold, steps + 1, 5)
        for_start, for_walk = jax.random.split(key)
        # starts of the law without bumps
        starts = jax.random.normal(for_start, (self.walkers, d))
        one = lambda start, key: walk(bumps, start, jnp.ones(steps), marks, key)[0]
        heights = jax.vmap(one)(starts, kit.keys(for_walk, self.walkers))
        return {"excess": heights.mean(1) / (d / 2)}

    def run_conditions(self, observed):
        yield kit.assume("walkers", len(observed["excess"]), ">=", 3)

    def judge(self, predicted, observed):
        # the interval is 2 to 8 %
        yield equal("excess", predicted["excess"], observed["excess"], 0.1)
