"""Walkers with and without momentum on quadratics, the steps of the library as matrices, and their exact means."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from steepest import kit
from steepest.noise import underdamped

AWAY = 100.0  # starts are so many standard deviations of the stationary law from the bottom
FALL = 0.05  # of the mean, along the slowest direction


class Lane(NamedTuple):
    """One quadratic and how walkers move on it; arrays of one shape where there are several.

    Attributes:
        slow: smallest eigenvalue.
        fast: largest eigenvalue.
        step: h of the walkers with momentum.
        friction: γ.
    """

    slow: kit.Values
    fast: kit.Values
    step: kit.Values
    friction: kit.Values


def one_step(lane: Lane) -> Float[jax.Array, "2 2 2"]:
    """Return the library's step without noise as a matrix on (x, v), along the slowest and the fastest direction."""

    def move(state: jax.Array, eigenvalue: jax.Array, lane: Lane) -> jax.Array:
        walk = underdamped(
            lambda x: 0.5 * eigenvalue * x**2,
            state[0],
            state[1],
            lane.step,
            lane.friction,
            jnp.inf,
            1,
            jax.random.key(0),
            record=1,
        )
        return jnp.stack([walk.places[-1], walk.velocities[-1]])

    def matrices(lane: Lane) -> jax.Array:
        of_one = lambda eigenvalue: jax.jacfwd(move)(jnp.zeros(2), eigenvalue, lane)
        return jax.vmap(of_one)(jnp.stack([lane.slow, lane.fast]))

    return matrices(lane)


class Radii:
    """The spectral radius of the library's step on a quadratic, compiled once for all numbers."""

    def __init__(self) -> None:
        self.matrices = kit.compiled(jax.vmap(one_step))

    def __call__(
        self, slow: kit.Values, fast: kit.Values, step: kit.Values, friction: kit.Values
    ) -> kit.Values:
        """Return the radius for arrays of one shape, ``(cases,)``."""
        arrays = np.broadcast_arrays(*(np.asarray(a, float) for a in (slow, fast, step, friction)))
        matrices = np.asarray(self.matrices(Lane(*arrays)))  # (cases, directions, 2, 2)
        return np.abs(np.linalg.eigvals(matrices)).max((-1, -2))

    def best(self, slow: float, fast: float) -> kit.Values:
        """Return step, friction and radius where the radius is least, by a grid and a search around its best point.

        All calls have one number of cases, so that one program serves.
        """
        cases = 25
        # γ = 2√λ_min damps the slowest direction critically; h√λ_max = 1 is half of Verlet's limit
        middle = np.array([fast**-0.5, 2 * slow**0.5])
        width = np.log(4.0)
        radius = np.inf
        for _ in range(60):
            grid = np.linspace(-width, width, 5)
            steps, frictions = (a.ravel() for a in np.meshgrid(grid, grid))
            steps = middle[0] * np.exp(steps)
            frictions = middle[1] * np.exp(frictions)
            radii = self(np.full(cases, slow), np.full(cases, fast), steps, frictions)
            at = int(radii.argmin())
            radius = float(radii[at])
            middle = np.array([steps[at], frictions[at]])
            width *= 0.75
        return np.array([*middle, radius])

    def threshold(self, slow: float, fast: float, friction: float) -> float:
        """Return the step at which the radius passes one, by nested grids."""
        cases = 25
        low = 0.1 * fast**-0.5
        high = 10 * fast**-0.5
        for _ in range(12):
            steps = np.linspace(low, high, cases)
            radii = self(
                np.full(cases, slow), np.full(cases, fast), steps, np.full(cases, friction)
            )
            first = int(np.argmax(radii > 1 + 1e-9))
            low = float(steps[max(first - 1, 0)])
            high = float(steps[first])
        return (low + high) / 2


def with_momentum(
    lanes: Lane, beta: float, groups: int, walkers: int, steps: int, key: kit.Key
) -> dict:
    """Run walkers with momentum from rest, along the slowest and the fastest direction of each lane.

    Returns:
        ``mean`` of the slow coordinate over its start, shape ``(lanes, groups, steps + 1)``; ``place`` and
        ``velocity``, variances of the fast coordinate over the later half, times βλ and β, shape ``(lanes, groups)``.
    """

    def of_lane(lane: Lane, key: kit.Key) -> dict:
        eigenvalues = jnp.stack([lane.slow, lane.fast])
        deviation = 1 / jnp.sqrt(beta * eigenvalues)  # of the stationary law, 1/√(βλ)

        def one(key: kit.Key) -> tuple[jax.Array, jax.Array]:
            walk = underdamped(
                lambda x: 0.5 * (eigenvalues * x**2).sum(),
                AWAY * deviation,
                jnp.zeros(2),
                lane.step,
                lane.friction,
                beta,
                steps,
                key,
            )
            return walk.places, walk.velocities

        x, v = jax.vmap(jax.vmap(one))(jax.random.split(key, (groups, walkers)))
        late = steps // 2
        return {
            "mean": x[..., 0].mean(1) / (AWAY * deviation[0]),
            "place": x[:, :, late:, 1].var((1, 2)) * beta * lane.fast,
            "velocity": v[:, :, late:, 1].var((1, 2)) * beta,
        }

    run = lambda lanes, key: jax.vmap(of_lane)(lanes, jax.random.split(key, len(lanes.slow)))
    observed = kit.compiled(run)(lanes, key)
    return {name: np.asarray(values) for name, values in observed.items()}


def without_momentum(
    rng: np.random.Generator, lanes: Lane, beta: float, groups: int, walkers: int, steps: int
) -> dict:
    """Run overdamped walkers x' = x − ελx + √(2ε/β) ξ at ε = 1/λ_max, as :func:`with_momentum` does."""
    eigenvalues = np.stack([lanes.slow, lanes.fast], -1)[:, None, None]  # (lanes, 1, 1, 2)
    step = 1 / eigenvalues[..., 1:]
    deviation = 1 / np.sqrt(beta * eigenvalues)
    x = np.broadcast_to(AWAY * deviation, (len(lanes.slow), groups, walkers, 2)).copy()
    mean = np.ones((len(lanes.slow), groups, steps + 1))
    squares = np.zeros(mean.shape[:2])
    for n in range(1, steps + 1):
        x += -step * eigenvalues * x + np.sqrt(2 * step / beta) * rng.standard_normal(x.shape)
        mean[:, :, n] = x[..., 0].mean(-1)
        squares += (x[..., 1] ** 2).mean(-1) * (n > steps // 2)
    mean[:, :, 1:] /= AWAY * deviation[:, :, :, 0]
    late = steps - steps // 2
    return {"mean": mean, "place": squares / late * beta * lanes.fast[:, None]}


def in_data(
    hessian: kit.Values,
    lane: Lane,
    beta: float,
    groups: int,
    walkers: int,
    steps: int,
    key: kit.Key,
) -> Float[np.ndarray, "groups steps+1"]:
    """Run walkers with momentum on ½ wᵀHw in the data's own coordinates; return the mean along the slowest one."""
    slowest = np.linalg.eigh(hessian)[1][:, 0]
    start = AWAY / np.sqrt(beta * lane.slow) * slowest

    def one(key: kit.Key) -> jax.Array:
        walk = underdamped(
            lambda w: 0.5 * w @ hessian @ w,
            start,
            jnp.zeros_like(start),
            lane.step,
            lane.friction,
            beta,
            steps,
            key,
        )
        return walk.places @ slowest

    run = lambda key: jax.vmap(jax.vmap(one))(jax.random.split(key, (groups, walkers))).mean(1)
    return np.asarray(kit.compiled(run)(key)) / (start @ slowest)


def exact_mean(eigenvalue: float, step: float, friction: float, steps: int) -> kit.Values:
    """Return the mean of x over its start, from rest, by the five matrices of a step; shape ``(steps + 1,)``."""
    # BAOAB (Leimkuhler and Matthews 2013): half a kick, half a drift, the decay, and back
    kick = np.array([[1.0, 0.0], [-0.5 * step * eigenvalue, 1.0]])
    drift = np.array([[1.0, 0.5 * step], [0.0, 1.0]])
    damp = np.diag([1.0, np.exp(-friction * step)])
    matrix = kick @ drift @ damp @ drift @ kick
    state = np.array([1.0, 0.0])
    means = [1.0]
    for _ in range(steps):
        state = matrix @ state
        means.append(state[0])
    return np.array(means)


def arrival(means: kit.Values) -> kit.Values:
    """Return the step, interpolated, at which each course of means first falls to ``FALL``; NaN where it never does."""
    courses = np.reshape(means, (-1, np.shape(means)[-1]))
    steps = np.full(len(courses), np.nan)
    for i, course in enumerate(courses):
        below = np.flatnonzero(course <= FALL)
        if below.size and below[0] > 0:
            at = below[0]
            steps[i] = at - (FALL - course[at]) / (course[at - 1] - course[at])
    return steps.reshape(np.shape(means)[:-1])
