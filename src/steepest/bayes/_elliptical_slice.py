"""Elliptical slice sampling: posteriors under Gaussian priors, without a step size."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from steepest.core.errors import UserError
from steepest.nn.types import Key, Params

Likelihood = Callable[[Params], Array]
"""The logarithm of the likelihood of a state, a scalar, up to a constant."""


class Slices(NamedTuple):
    """The record of a chain; under ``vmap`` every array gains the mapped axis in front.

    Attributes:
        log_likelihood: after each recorded sweep, shape ``(records,)``.
        observed: each observer's values, with the records axis first.
        evaluations: of the likelihood, in all sweeps up to each record, shape ``(records,)``.
        state: where the chain ends.
    """

    log_likelihood: Float[Array, " records"]
    observed: dict[str, Any]
    evaluations: Int[Array, " records"]
    state: Params


def elliptical_slice(
    log_likelihood: Likelihood,
    sample_prior: Callable[[Key], Params],
    key: Key,
    sweeps: int,
    *,
    start: Params | None = None,
    observe: Mapping[str, Callable[[Params], Any]] | None = None,
    burn: int = 0,
    every: int = 1,
) -> Slices:
    """Sample a posterior whose prior is Gaussian with mean zero.

    A sweep draws another state from the prior and a height under the likelihood, then an angle on the ellipse
    through both states, f cos φ + g sin φ, from a bracket that shrinks until the likelihood is above the height. The
    posterior is invariant and nothing is tuned. The loop is pure: it can be compiled, and mapped over keys. Of the
    prior only draws are needed, where blackjax asks for mean and covariance; states are any pytrees.

    Args:
        log_likelihood: of a state; minus infinity where it vanishes, but not at the start.
        sample_prior: from a key to a state.
        key: random key.
        sweeps: how many sweeps.
        start: the first state; a draw from the prior where it is left out.
        observe: functions of the state to record, by name.
        burn: sweeps that are not recorded.
        every: sweeps from one record to the next.

    Raises:
        UserError: sweeps that are no records: fewer than ``burn + every``, a negative burn, or ``every`` below one.

    Source: Murray, Adams and MacKay 2010.

    >>> prior = lambda key: 2 * jax.random.normal(key)
    >>> likelihood = lambda x: -((x - 3) ** 2) / 2  # the posterior is N(12/5, 4/5)
    >>> chain = elliptical_slice(likelihood, prior, jax.random.key(0), 4000, observe={"x": lambda x: x})
    >>> bool(abs(chain.observed["x"].mean() - 2.4) < 0.1)
    True
    """
    if every < 1 or burn < 0 or sweeps < burn + every:
        raise UserError(
            f"elliptical_slice: expected sweeps ≥ burn + every, burn ≥ 0 and every ≥ 1, got sweeps = {sweeps}, "
            f"burn = {burn} and every = {every}; try sweeps=600, burn=100"
        )
    observers = observe or {}
    for_start, for_sweeps = jax.random.split(key)
    state = sample_prior(for_start) if start is None else start

    def sweep(i: Array, carry: tuple[Params, Array, Array]) -> tuple[Params, Array, Array]:
        state, height, evaluations = carry
        moved, above, tries = _move(
            log_likelihood, sample_prior, jax.random.fold_in(for_sweeps, i), state, height
        )
        return moved, above, evaluations + tries

    def advance(carry: tuple, mark: Array) -> tuple:
        last, chain = carry
        state, height, evaluations = jax.lax.fori_loop(last, mark, sweep, chain)
        looks = {name: observer(state) for name, observer in observers.items()}
        return (mark, (state, height, evaluations)), (height, looks, evaluations)

    marks = jnp.arange(burn + every, sweeps + 1, every)
    chain = (state, log_likelihood(state), jnp.ones((), int))
    # one loop for what is recorded and what is burnt: the compiler sees a sweep once
    carry, (heights, looks, evaluations) = jax.lax.scan(
        advance, (jnp.zeros((), marks.dtype), chain), marks
    )
    return Slices(heights, looks, evaluations, carry[1][0])


def _move(
    log_likelihood: Likelihood,
    sample_prior: Callable[[Key], Params],
    key: Key,
    state: Params,
    height: Array,
) -> tuple[Params, Array, Array]:
    """Return the next state, the logarithm of its likelihood, and how often that was evaluated."""
    for_other, for_height, for_angle, for_shrinking = jax.random.split(key, 4)
    other = sample_prior(for_other)
    level = height - jax.random.exponential(for_height, dtype=height.dtype)
    angle = jax.random.uniform(for_angle, dtype=height.dtype, maxval=2 * jnp.pi)

    def at(angle: Array) -> Params:
        return jax.tree.map(lambda f, g: f * jnp.cos(angle) + g * jnp.sin(angle), state, other)

    def below(carry: tuple) -> Array:
        return ~(carry[4] > level)

    def look(carry: tuple) -> tuple:
        """Evaluate at an angle, shrink the bracket to it, and draw the next."""
        angle, _, low, high, _, tries = carry
        low = jnp.where(angle < 0, angle, low)
        high = jnp.where(angle < 0, high, angle)
        draw = jax.random.fold_in(for_shrinking, tries)
        following = low + (high - low) * jax.random.uniform(draw, dtype=angle.dtype)
        return following, angle, low, high, log_likelihood(at(angle)), tries + 1

    # the first angle is an end of its bracket, [φ − 2π, φ]
    start = (
        angle,
        angle,
        angle - 2 * jnp.pi,
        angle,
        jnp.full_like(height, -jnp.inf),
        jnp.zeros((), int),
    )
    _, angle, _, _, above, tries = jax.lax.while_loop(below, look, start)
    return at(angle), above, tries
