"""Gradient descent as one compiled loop, with observers at a cadence."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from steepest.core.errors import UserError
from steepest.core.given import call, number
from steepest.core.signatures import checked
from steepest.nn.types import Key, Params, Risk

Observer = Callable[[Params], Any]
"""A pure function of the parameters whose value is recorded."""


class Trajectory(NamedTuple):
    """The record of a descent; under ``vmap`` every array gains the mapped axis in front.

    Attributes:
        steps: the steps recorded, shape ``(records,)``.
        risk: the full risk at those steps; NaN after a divergence.
        observed: each observer's values, with the records axis first.
        params: the parameters at the end, or at the last record before a divergence was noticed.
        diverged: whether the risk exceeded ``ceiling`` or was not finite.
        diverged_at: the first recorded step at which it did, or −1.
    """

    steps: Int[Array, " records"]
    risk: Float[Array, " records"]
    observed: dict[str, Any]
    params: Params
    diverged: Bool[Array, ""]
    diverged_at: Int[Array, ""]


@checked
def descend(
    risk: Risk,
    params: Params,
    optimizer: optax.GradientTransformation,
    steps: int,
    *,
    record: int | np.ndarray = 1,
    observe: Mapping[str, Observer] | None = None,
    stochastic: Callable[[Params, Key], Array] | None = None,
    key: Key | None = None,
    ceiling: float = 1e30,
) -> Trajectory:
    """Descend on a risk and record it, and any observers, at chosen steps.

    The loop is a ``scan`` over records around a loop over steps: it compiles once, holds only what is recorded, stops
    working when the descent has diverged, and can be mapped with ``jax.vmap`` over seeds, step sizes or initial
    parameters.

    Args:
        risk: the full-batch risk of the parameters, a scalar.
        params: where to start, any pytree.
        optimizer: any optax transformation; ``optax.sgd(lr)`` is gradient descent, and chained with
            ``optax.scale_by_backtracking_linesearch(20)`` it chooses its own steps.
        steps: how many steps.
        record: a cadence (every so many steps, the first and the last included) or an increasing array of steps.
        observe: functions of the parameters to record, by name.
        stochastic: a risk ``(params, key)`` whose gradient is followed instead of the full one, such as the risk of a
            random batch; ``risk`` is then only recorded.
        key: random key for ``stochastic``.
        ceiling: a recorded risk above this counts as divergence, as does one that is not finite.

    Raises:
        UserError: a negative number of steps, a cadence that is not positive, records that do not increase.

    >>> path = descend(lambda w: 0.5 * 3.0 * w**2, jnp.array(1.0), optax.sgd(0.1), steps=2)
    >>> path.risk.round(3).tolist()  # w is multiplied by 1 − 0.1·3 each step
    [1.5, 0.735, 0.36]
    """
    marks = schedule(steps, record)
    recorded = lambda w: number("risk", call("risk", risk, w))
    observers = {"risk": recorded, **(observe or {})}
    if stochastic is None:
        followed = lambda i: risk
    elif key is None:
        raise UserError("a stochastic descent needs a random key; pass key=jax.random.key(0)")
    else:
        followed = lambda i: partial(_drawn, stochastic, jax.random.fold_in(key, i))
    rule = optax.with_extra_args_support(optimizer)

    def step(i: Array, state: tuple[Params, Any]) -> tuple[Params, Any]:
        params, memory = state
        now, slope = jax.value_and_grad(followed(i))(params)
        # Line searches read the value and the risk itself; values that are not read are not computed.
        updates, memory = rule.update(
            slope, memory, params, value=now, grad=slope, value_fn=followed(i)
        )
        return optax.apply_updates(params, updates), memory

    return _record(step, (params, optimizer.init(params)), marks, observers, ceiling)


def _drawn(stochastic: Callable[..., Array], key: Key, params: Params) -> Array:
    return number("stochastic", stochastic(params, key))


def _record(
    step: Callable, state: tuple[Params, Any], marks: np.ndarray, observers: dict, ceiling: float
) -> Trajectory:
    """Advance to the next mark, observe and record; a descent that has diverged is left alone.

    The marks are scanned over, so that they stay plain numbers under ``vmap``; there the ``cond`` becomes a choice,
    and a lane that has diverged goes on computing values that are not read.
    """

    def look(params: Params) -> dict[str, Any]:
        return {name: observer(params) for name, observer in observers.items()}

    shapes = jax.eval_shape(look, state[0])
    blank = jax.tree.map(lambda s: jnp.full(s.shape, _blank(s.dtype), s.dtype), shapes)

    def advance(carry: tuple, mark: Array) -> tuple:
        last, state, diverged_at = carry

        def move() -> tuple:
            moved = jax.lax.fori_loop(last, mark, step, state)
            record = look(moved[0])
            lost = ~(record["risk"] <= ceiling)  # NaN compares false
            record = jax.tree.map(lambda new, empty: jnp.where(lost, empty, new), record, blank)
            return moved, record, jnp.where(lost, mark, diverged_at)

        state, record, diverged_at = jax.lax.cond(
            diverged_at < 0, move, lambda: (state, blank, diverged_at)
        )
        return (mark, state, diverged_at), record

    at = jnp.asarray(marks)
    start = (jnp.zeros((), at.dtype), state, jnp.full((), -1, at.dtype))
    (_, (params, _), diverged_at), records = jax.lax.scan(advance, start, at)
    return Trajectory(at, records.pop("risk"), records, params, diverged_at >= 0, diverged_at)


@checked
def schedule(steps: int, record: int | np.ndarray) -> np.ndarray:
    """List the steps at which to record: a cadence with both ends, or an array as it is.

    >>> schedule(10, 4).tolist()
    [0, 4, 8, 10]
    """
    if steps < 0:
        raise UserError(f"steps must be at least 0, got {steps}")
    if np.ndim(record) == 0:
        cadence = int(record)
        if cadence < 1:
            raise UserError(f"record must be a cadence of at least 1, got {cadence}")
        return np.unique(np.append(np.arange(0, steps + 1, cadence), steps))
    marks = np.asarray(record).astype(int)
    if (
        marks.ndim != 1
        or (marks != np.asarray(record)).any()
        or marks.size == 0
        or marks[0] < 0
        or np.any(np.diff(marks) <= 0)
        or marks[-1] > steps
    ):
        raise UserError(
            f"record must be increasing steps between 0 and {steps}, got {record}; try a cadence"
        )
    return marks


@checked
def logarithmic(steps: int, records: int) -> np.ndarray:
    """Return about ``records`` steps from 0 to ``steps``, evenly spaced in log(1 + step).

    >>> logarithmic(1000, 5).tolist()
    [0, 5, 31, 177, 1000]
    """
    return np.unique(np.round(np.expm1(np.linspace(0, np.log1p(steps), records))).astype(int))


@checked
def minibatch(
    loss: Callable[[Params, Array, Array], Array],
    x: Array,
    y: Array,
    size: int,
    *,
    independent: bool = False,
) -> Callable[..., Array]:
    """Return the risk of a random batch: ``(params, key) -> sum of loss over the batch / size``.

    Args:
        loss: per-example losses of parameters, inputs and targets, shape ``(inputs,)``.
        x: inputs, shape ``(n, d)``.
        y: targets, n of them.
        size: examples a batch, at most n.
        independent: whether each example joins by its own coin of probability size/n, so that ``size`` is the mean of
            the batch's size, rather than without replacement. All n losses are then computed.

    Raises:
        UserError: a batch larger than the data.
    """
    n = x.shape[0]
    if not 1 <= size <= n:
        raise UserError(f"a batch must hold between 1 and {n} examples, got {size}")

    def coins(params: Params, key: Key) -> Array:
        joins = jax.random.bernoulli(key, size / n, (n,))
        # over size, not over the number drawn: on average each weighs (size/n)/size = 1/n
        return jnp.where(joins, loss(params, x, y), 0.0).sum() / size

    if independent:
        return coins

    def risk(params: Params, key: Key) -> Array:
        chosen = jax.random.choice(key, n, (size,), replace=False)
        return loss(params, x[chosen], y[chosen]).mean()

    return risk


def _blank(dtype: Any) -> Any:
    return jnp.nan if jnp.issubdtype(dtype, jnp.inexact) else 0
