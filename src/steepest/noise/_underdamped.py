"""Langevin dynamics with momentum: the BAOAB scheme, and how fast it forgets on a quadratic."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.dynamics import schedule
from steepest.nn.types import Key, Values
from steepest.noise._walkers import floats, positive, scalar


class UnderdampedWalk(NamedTuple):
    """The record of one walker; under ``vmap`` every array gains the mapped axis in front.

    Attributes:
        steps: the steps recorded, shape ``(records,)``; so many gradients had been evaluated there, and one more.
        places: at those steps, records first.
        velocities: at those steps, records first.
        observed: each observer's values, with the records axis first.
    """

    steps: Int[Array, " records"]
    places: Array
    velocities: Array
    observed: dict[str, Any]


@checked
def underdamped(
    f: Callable[[Array], Array],
    x: Array,
    v: Array,
    step: Array | float,
    friction: Array | float,
    beta: Array | float,
    steps: int,
    key: Key,
    *,
    record: int | np.ndarray = 1,
    observe: Mapping[str, Callable[[Array], Any]] | None = None,
) -> UnderdampedWalk:
    """Walk by dx = v dt, dv = −∇f dt − γv dt + √(2γ/β) dW, in steps of the BAOAB scheme.

    Half a kick by the slope (B), half a drift (A), the exact law of friction and noise v → cv + √((1 − c²)/β) ξ with
    c = e^{−γh} (O), then A and B again: one gradient a step, since the last kick's slope is the next step's first. On a
    quadratic places have the law exp(−βf) exactly at every stable step; velocities are off by a factor 1 − h²λ/4 in
    variance.

    One walker: map over starts and keys with ``jax.vmap``. diffrax has solvers for this equation that follow the
    Brownian path to a higher order, in continuous time and for step sizes that a controller chooses; here the law of
    the scheme at one fixed step is the object. Leimkuhler and Matthews 2013 have the scheme.

    Args:
        f: value at a place, a scalar; its gradient is followed.
        x: where to start, any shape.
        v: velocity to start with, of the same shape.
        step: h, positive.
        friction: γ, not negative; zero is Hamiltonian motion by leapfrogs.
        beta: inverse temperature β, positive; infinity is motion with friction and without noise.
        steps: how many.
        key: random key.
        record: a cadence (every so many steps, the first and the last included) or an increasing array of steps.
        observe: functions of the place to record, by name.

    Raises:
        UserError: places and velocities of different shapes or not of floats, a vector-valued f, numbers that are not
            positive, records that do not increase.

    >>> walk = lambda key: underdamped(
    ...     lambda x: x**2 / 2, jnp.array(0.0), jnp.array(0.0), 1.5, 1.0, 4.0, 200, key
    ... )
    >>> x = jax.vmap(walk)(jax.random.split(jax.random.key(0), 500)).places[:, 20:]
    >>> bool(abs(x.var() - 1 / 4) < 0.01)  # 1/(βλ), although the step is long
    True
    """
    marks = schedule(steps, record)
    x = floats("underdamped", "x", x)
    v = floats("underdamped", "v", v)
    if x.shape != v.shape:
        raise UserError(
            f"underdamped: expected a velocity for each place, got shapes {v.shape} and {x.shape}; "
            "jnp.zeros_like(x) starts at rest"
        )
    scalar("underdamped", f, x)
    positive("underdamped", "a step", step)
    positive("underdamped", "a beta", beta, endless=True)
    positive("underdamped", "a friction", friction, zero=True)
    slope = jax.grad(f)
    keeps = jnp.exp(-friction * step)  # c = e^{−γh}
    # what keeps velocities at the variance 1/β: c²/β + (1 − c²)/β
    noise = jnp.sqrt((1 - keeps**2) / beta)
    observers = dict(observe or {})

    def move(i: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, v, force = state
        v = v - 0.5 * step * force  # B
        x = x + 0.5 * step * v  # A
        # O: exact; keeps the law N(0, 1/β)
        v = keeps * v + noise * jax.random.normal(jax.random.fold_in(key, i), v.shape, v.dtype)
        x = x + 0.5 * step * v  # A
        force = slope(x)
        return x, v - 0.5 * step * force, force  # B

    def advance(carry: tuple, mark: Array) -> tuple:
        last, state = carry
        state = jax.lax.fori_loop(last, mark, move, state)
        records = {name: observer(state[0]) for name, observer in observers.items()}
        return (mark, state), (state[0], state[1], records)

    at = jnp.asarray(marks)
    start = (jnp.zeros((), at.dtype), (x, v, slope(x)))
    _, (places, velocities, records) = jax.lax.scan(advance, start, at)
    return UnderdampedWalk(at, places, velocities, records)


@checked
def baoab_rate(eigenvalues: Values, step: float, friction: float) -> float:
    """Return the spectral radius of a BAOAB step's mean on a quadratic with these eigenvalues.

    Along an eigenvector of eigenvalue λ the mean of (x, v) is multiplied by a matrix with determinant c = e^{−γh} and
    trace (1 + c)(1 − h²λ/2): the radius is √c where that has complex eigenvalues. The same polynomial μ² − (1 + c)(1
    − h²λ/2)μ + c belongs to Polyak's heavy ball of momentum c and step (1 + c)h²/2. The mean forgets as the radius to
    the power of the steps; it converges if and only if h < 2/√λ_max and γ > 0.

    Args:
        eigenvalues: λ > 0 of the Hessian, any number.
        step: h.
        friction: γ.

    Raises:
        UserError: eigenvalues or a step that are not positive, a friction that is negative.

    >>> kappa = 100.0
    >>> radius = baoab_rate([1 / kappa, 1.0], 1.0, 2 / kappa**0.5)
    >>> round(float(-1 / np.log(radius)), 9)  # √κ steps to fall by a factor e
    10.0
    """
    spectrum = np.atleast_1d(np.asarray(eigenvalues, float))
    if not (spectrum.size and np.all(spectrum > 0)):
        raise UserError(
            f"baoab_rate: expected eigenvalues above zero, got {spectrum}; leave flat directions out"
        )
    positive("baoab_rate", "a step", step)
    positive("baoab_rate", "a friction", friction, zero=True)
    keeps = np.exp(-friction * step)
    half_trace = (1 + keeps) * (1 - step**2 * spectrum / 2) / 2  # half of (1 + c)(1 − h²λ/2)
    root = np.sqrt(half_trace.astype(complex) ** 2 - keeps)  # the roots of μ² − trace μ + c
    return float(np.maximum(np.abs(half_trace + root), np.abs(half_trace - root)).max())
