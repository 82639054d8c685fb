"""Langevin walkers: noisy descent on a potential, watched at a cadence or until each leaves a region."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.dynamics import schedule
from steepest.nn.types import Key, Values
from steepest.noise._walkers import positive, scalar

SHRINK = 4  # by which the number of walkers shrinks once so many have left
FEWEST = 200  # walkers that are not worth shrinking


class LangevinWalk(NamedTuple):
    """The record of Langevin walkers; under ``vmap`` every array gains the mapped axis in front.

    Attributes:
        steps: the steps recorded, shape ``(records,)``.
        observed: each observer's values, with the records axis first.
        x: where the walkers are at the end, shape ``(walkers, *d)``.
    """

    steps: Int[Array, " records"]
    observed: dict[str, Any]
    x: Float[Array, "walkers *d"]


class Exits(NamedTuple):
    """When and where walkers left a region.

    Attributes:
        steps: the first step after which each was outside, shape ``(walkers,)``; the cap where it never was.
        left: whether it was, shape ``(walkers,)``.
        lost: whether it overflowed before it was seen outside, shape ``(walkers,)``; such a walker has not left.
    """

    steps: Int[Array, " walkers"]
    left: Bool[Array, " walkers"]
    lost: Bool[Array, " walkers"]


@checked
def langevin(
    f: Callable[[Array], Array],
    x: Float[Values, "walkers *d"],
    step: float | Array,
    beta: float | Array,
    steps: int,
    key: Key,
    *,
    record: int | np.ndarray | None = None,
    observe: Mapping[str, Callable[[Array], Any]] | None = None,
) -> LangevinWalk:
    """Walk ``X' = X − ε∇f(X) + √(2ε/β) ξ``, the discretized Langevin equation, and record observers at chosen steps.

    The loop compiles once, holds only what is recorded, and can be mapped with ``jax.vmap`` over ε, β, keys and starts.

    Args:
        f: the potential at one walker's place, of shape ``(*d,)``; a scalar.
        x: where the walkers start, ``(walkers, *d)``.
        step: ε.
        beta: β, the inverse temperature.
        steps: how many steps.
        key: random key.
        record: a cadence or an increasing array of steps; the end alone where left out.
        observe: functions of all walkers' places, ``(walkers, *d)``, to record, by name.

    Raises:
        UserError: ε, β or steps that are not positive, steps that are no whole number, records that do not increase, a
            potential that is no scalar.

    Where a potential does not confine, as −x⁴, or a step overshoots, walkers run away: their places are then infinite
    or NaN, and nothing is said. Observe ``jnp.isfinite(x).all()`` where that may be.

    Source: Raginsky, Rakhlin and Telgarsky 2017. blackjax's ``sgld`` makes the same step of one chain,
    one call a step; records and walkers that leave are not there.

    >>> path = langevin(lambda x: x**2 / 2, np.zeros(2000), 0.5, 1.0, 20, jax.random.key(0))
    >>> abs(float(path.x.var()) - 4 / 3) < 0.15  # 1/(β(1 − ε/2)), and not 1/β
    True
    """
    _check("langevin", step, beta, steps, "number of steps")
    marks = schedule(steps, np.array([steps]) if record is None else record)
    watch = dict(observe or {})
    move = _mover("langevin", f, jnp.asarray(x, float), step, beta, key)

    def advance(carry: tuple[Array, Array], mark: Array) -> tuple[tuple[Array, Array], dict]:
        last, places = carry
        places = jax.lax.fori_loop(last, mark, move, places)
        return (mark, places), {name: observer(places) for name, observer in watch.items()}

    at = jnp.asarray(marks)
    start = (jnp.zeros((), at.dtype), jnp.asarray(x, float))
    (_, places), records = jax.lax.scan(advance, start, at)
    return LangevinWalk(at, records, places)


@checked
def langevin_exits(
    f: Callable[[Array], Array],
    x: Float[Values, "walkers *d"],
    step: float | Array,
    beta: float | Array,
    inside: Callable[[Array], Array],
    cap: int,
    key: Key,
    shrinks: int = 2,
) -> Exits:
    """Walk as :func:`langevin` does until each walker has left a region, and say after how many steps.

    Walkers are looked at after whole steps, so that excursions between two steps are not seen. Once three quarters have
    left, the others are moved together and go on alone, since the last to leave takes many times the mean. Call it in a
    compiled function. A walker whose place is no finite number any more, since steps are too large for the potential,
    is lost, and has not left. One that starts outside counts as leaving with the first step, unless this leads inside.

    Args:
        f: the potential at one walker's place, of shape ``(*d,)``; a scalar.
        x: where the walkers start, inside, ``(walkers, *d)``.
        step: ε.
        beta: β, the inverse temperature.
        inside: whether one walker's place is in the region.
        cap: steps after which those that are still inside are given up.
        key: random key.
        shrinks: how many times they are moved together at most; each is a loop more to compile. None where few leave.

    Raises:
        UserError: ε, β or cap that are not positive, a cap that is no whole number, a potential that is no scalar.

    >>> out = langevin_exits(lambda x: 0.0 * x, np.zeros(500), 0.01, 1.0, lambda x: abs(x) < 1, 5000, jax.random.key(0))
    >>> bool(out.left.all()), abs(0.01 * float(out.steps.mean()) - 0.5) < 0.15  # Brownian motion: β/2
    (True, True)
    """
    _check("langevin_exits", step, beta, cap, "cap")
    places = jnp.asarray(x, float)
    move = _mover("langevin_exits", f, places, step, beta, key)
    seen = jax.vmap(inside)
    walkers = places.shape[0]
    alive = jnp.ones(walkers, bool)
    exits = jnp.full(walkers, cap + 1)
    overflown = cap + 2  # in place of a step
    who = jnp.arange(walkers)
    now = jnp.zeros((), int)
    for shrink in range(shrinks, -1, -1):
        size = len(who)
        fewer = size // SHRINK if shrink and size // SHRINK >= FEWEST else 0

        def going(state: tuple, fewer: int = fewer) -> Array:
            now, _, alive, _ = state
            return (now < cap) & (alive.sum() > fewer)

        def go(state: tuple) -> tuple:
            now, places, alive, times = state
            places = move(now, places)
            finite = jnp.isfinite(places).reshape(places.shape[0], -1).all(1)
            still = alive & finite & seen(places)
            times = jnp.where(alive & ~still, jnp.where(finite, now + 1, overflown), times)
            return now + 1, places, still, times

        start = (now, places, alive, exits[who])
        now, places, alive, times = jax.lax.while_loop(going, go, start)
        exits = exits.at[who].set(times)
        if not fewer:
            break
        # those that are alive first; the few that are not, if time is over, have their times already
        chosen = jnp.argsort(~alive)[:fewer]  # false sorts before true
        places = places[chosen]
        alive = alive[chosen]
        who = who[chosen]
    return Exits(jnp.minimum(exits, cap), exits <= cap, exits == overflown)


def _mover(
    name: str,
    f: Callable[[Array], Array],
    x: Array,
    step: float | Array,
    beta: float | Array,
    key: Key,
) -> Callable[[Array, Array], Array]:
    """Return one step of all walkers, from the number of the step, which its noise depends on, and their places."""
    scalar(name, f, jax.ShapeDtypeStruct(x.shape[1:], x.dtype))
    slope = jax.vmap(jax.grad(f))
    scale = jnp.sqrt(2 * step / beta)  # standard deviation of √(2ε/β) ξ

    def move(i: Array, places: Array) -> Array:
        noise = jax.random.normal(jax.random.fold_in(key, i), places.shape, places.dtype)
        return places - step * slope(places) + scale * noise

    return move


def _check(name: str, step: float | Array, beta: float | Array, steps: int, count: str) -> None:
    """Refuse what is not positive."""
    positive(name, "a step ε", step)
    positive(name, "a β", beta)
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise UserError(f"{name}: expected a {count} above zero, a whole number, got {steps}")
