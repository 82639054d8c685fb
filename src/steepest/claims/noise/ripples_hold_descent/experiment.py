"""Where descent among ripples ends, and how long descent with noise takes among them."""

import numpy as np

from steepest import kit
from steepest.claims.noise._rippled_bowl import ripples

OUTSET = 4.0  # times √T, of descents with noise


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
    reached = _root((2 * k + 1) * np.pi, steep, -1.0)
    others = [_root((2 * (k + shift) + 1) * np.pi, steep, -1.0) for shift in (-1, 1)]
    choices = np.stack([reached, *others])
    nearest = np.take_along_axis(choices, np.abs(choices - u).argmin(0)[None], 0)[0]
    return reached / frequency, nearest / frequency


def _root(center: kit.Values, steep: float, sign: float) -> kit.Values:
    """Return the root of sin u = u/steep beside a multiple of π, where sin u = sign · sin(u − center)."""
    u = center
    for _ in range(60):
        # fixed point of slope ±1/(steep cos u), which is below one where ripples bend more than f
        u = center + sign * np.arcsin(np.clip(u / steep, -1, 1))
    return u


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

    F = x²/2 + a cos(ωx) in one dimension, in units of T: the ratio is a/T, the frequency ω√T. Steps are 1/2L, on the
    smooth bowl too. The walk ends after e^{2a/T} times as many as take two units of time.
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
