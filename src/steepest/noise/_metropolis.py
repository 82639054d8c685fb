"""Metropolis walkers: a law known up to a constant, sampled by values alone, under a schedule of temperatures."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.dynamics import schedule
from steepest.nn.types import Key
from steepest.noise._walkers import floats, positive, scalar


class MetropolisWalk(NamedTuple):
    """The record of one walker; under ``vmap`` every array gains the mapped axis in front.

    Attributes:
        steps: the steps recorded, shape ``(records,)``.
        value: f at those steps, shape ``(records,)``.
        observed: each observer's values, with the records axis first.
        x: where the walker ends.
        accepted: share of the proposals that were accepted, between one record and the next, shape ``(records,)``;
            zero in a record at step 0.
    """

    steps: Int[Array, " records"]
    value: Float[Array, " records"]
    observed: dict[str, Any]
    x: Array
    accepted: Float[Array, " records"]


@checked
def metropolis(
    f: Callable[[Array], Array],
    x: Array,
    temperatures: Array | np.ndarray | float,
    scale: Array | np.ndarray | float,
    steps: int,
    key: Key,
    *,
    record: int | np.ndarray = 1,
    observe: Mapping[str, Callable[[Array], Any]] | None = None,
) -> MetropolisWalk:
    """Walk by Metropolis's rule towards exp(−f/T), with proposals x + scale √T ξ, ξ ~ N(0, I).

    A proposal is accepted with the chance min(1, exp(−(f(x') − f(x))/T)). At a fixed temperature the law exp(−f/T) is
    stationary exactly, whatever the scale; a falling schedule of T is simulated annealing. Only values of f are used,
    no slope. For a quadratic f in d dimensions with curvature one a scale of 2.4/√d is the best (Roberts, Gelman and
    Gilks 1997: about a quarter of the proposals is accepted).

    One walker: map over starts and keys with ``jax.vmap``. blackjax has a random-walk Metropolis kernel too, for one
    fixed density and state by state; here it is a loop that holds only what is recorded, with a temperature for each
    step.

    Args:
        f: value at a point, a scalar.
        x: where to start, any shape.
        temperatures: T of all steps, or of each, shape ``(steps,)``; positive.
        scale: standard deviation of the proposals at T = 1; broadcasts against ``x``, and is zero in directions that
            must not move.
        steps: how many proposals.
        key: random key.
        record: a cadence (every so many steps, the first and the last included) or an increasing array of steps.
        observe: functions of the point to record, by name.

    Raises:
        UserError: a start that is no array of floats or where f is NaN, a vector-valued f, temperatures
            that are not one a step or not positive, a cadence that is not positive, records that do not increase.

    >>> walk = lambda key: metropolis(lambda x: x**2 / 2, jnp.array(0.0), 0.5, 2.4, 3000, key)
    >>> values = jax.vmap(walk)(jax.random.split(jax.random.key(0), 20)).value
    >>> bool(abs(values.mean() - 0.5 / 2) < 0.01)  # of f = x²/2 the mean is T/2
    True
    """
    marks = schedule(steps, record)
    ladder = _temperatures(temperatures, steps)
    observers = {"value": f, **(observe or {})}
    x = floats("metropolis", "x", x)
    scalar("metropolis", f, x)
    first = f(x)
    # under vmap or jit its value is not known yet
    if not isinstance(first, Tracer) and np.isnan(first):
        raise UserError(
            "metropolis: expected a start where f is a number, got f(x) = nan; no proposal could be compared with it: "
            "start elsewhere"
        )

    def step(i: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, value, accepted = state
        for_move, for_choice = jax.random.split(jax.random.fold_in(key, i))
        T = ladder[i]
        # symmetric, so that its density cancels from the ratio
        elsewhere = x + scale * jnp.sqrt(T) * jax.random.normal(for_move, x.shape, x.dtype)
        proposed = f(elsewhere)
        # −T log u > f(x') − f(x); a value that is not finite is never accepted
        accept = proposed - value < T * jax.random.exponential(for_choice, dtype=x.dtype)
        return (
            jnp.where(accept, elsewhere, x),
            jnp.where(accept, proposed, value),
            accepted + accept,
        )

    def advance(carry: tuple, mark: Array) -> tuple:
        last, x, value = carry
        x, value, accepted = jax.lax.fori_loop(last, mark, step, (x, value, jnp.zeros(())))
        records = {name: observer(x) for name, observer in observers.items()}
        return (mark, x, value), (records, accepted / jnp.maximum(mark - last, 1))

    at = jnp.asarray(marks)
    start = (jnp.zeros((), at.dtype), x, first)
    (_, end, _), (records, accepted) = jax.lax.scan(advance, start, at)
    return MetropolisWalk(at, records.pop("value"), records, end, accepted)


def _temperatures(temperatures: Any, steps: int) -> Array:
    """Return a temperature for each step, after a look at their number and, where they are known, their signs."""
    shape = np.shape(temperatures)
    if shape not in ((), (steps,)):
        raise UserError(
            f"metropolis: expected one temperature, or {steps} of them, one a step; got shape {shape}; "
            "np.repeat makes a schedule out of a few stages"
        )
    positive("metropolis", "temperatures", temperatures, tip="; to descend, use a small one")
    return jnp.broadcast_to(jnp.asarray(temperatures), (steps,))
