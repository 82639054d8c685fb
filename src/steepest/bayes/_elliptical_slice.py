"""Elliptical slice sampling: posteriors under Gaussian priors, without a step size."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Key, Params

Likelihood = Callable[[Params], Array]
"""The logarithm of the likelihood of a state, a scalar, up to a constant."""

TRIES = 200
"""Of one sweep at most; after so many the bracket is below rounding, and the state stays."""


class Slices(NamedTuple):
    """The record of a chain; under ``vmap`` every array gains the mapped axis in front.

    Attributes:
        log_likelihood: after each recorded sweep, shape ``(records,)``.
        observed: each observer's values, with the records axis first.
        evaluations: of the likelihood, in all sweeps up to each record, shape ``(records,)``.
        state: where the chain ends.
        capped: sweeps up to each record that found no state above the height in 200 tries and stayed, shape
            ``(records,)``. Zero for a chain in order; else the likelihood vanishes, or is not a number, at the start.
    """

    log_likelihood: Float[Array, " records"]
    observed: dict[str, Any]
    evaluations: Int[Array, " records"]
    state: Params
    capped: Int[Array, " records"]


@checked
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
        log_likelihood: of a state; minus infinity where it vanishes, but not at the start. What is not a number
            counts as minus infinity.
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

    def likelihood(state: Params) -> Array:
        value = jnp.asarray(log_likelihood(state))
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    def sweep(i: Array, carry: tuple) -> tuple:
        state, height, evaluations, capped = carry
        moved, above, tries, stays = _move(
            likelihood, sample_prior, jax.random.fold_in(for_sweeps, i), state, height
        )
        return moved, above, evaluations + tries, capped + stays

    def advance(carry: tuple, mark: Array) -> tuple:
        last, chain = carry
        chain = jax.lax.fori_loop(last, mark, sweep, chain)
        state, height, evaluations, capped = chain
        looks = {name: observer(state) for name, observer in observers.items()}
        return (mark, chain), (height, looks, evaluations, capped)

    marks = jnp.arange(burn + every, sweeps + 1, every)
    chain = (state, likelihood(state), jnp.ones((), int), jnp.zeros((), int))
    # one loop for what is recorded and what is burnt: the compiler sees a sweep once
    carry, (heights, looks, evaluations, capped) = jax.lax.scan(
        advance, (jnp.zeros((), marks.dtype), chain), marks
    )
    return Slices(heights, looks, evaluations, carry[1][0], capped)


def _move(
    log_likelihood: Likelihood,
    sample_prior: Callable[[Key], Params],
    key: Key,
    state: Params,
    height: Array,
) -> tuple[Params, Array, Array, Array]:
    """Return the next state, the logarithm of its likelihood, how often that was evaluated, and whether in vain."""
    for_other, for_height, for_angle, for_shrinking = jax.random.split(key, 4)
    other = sample_prior(for_other)
    # log(u L) for uniform u: −log u is exponential
    level = height - jax.random.exponential(for_height, dtype=height.dtype)
    angle = jax.random.uniform(for_angle, dtype=height.dtype, maxval=2 * jnp.pi)

    def at(angle: Array) -> Params:
        # cos² + sin² = 1: for independent f, g ~ N(0, Σ) the point on the ellipse is N(0, Σ) again
        return jax.tree.map(lambda f, g: f * jnp.cos(angle) + g * jnp.sin(angle), state, other)

    def below(carry: tuple) -> Array:
        return ~(carry[4] > level) & (carry[5] < TRIES)

    def look(carry: tuple) -> tuple:
        """Evaluate at an angle, shrink the bracket to it, and draw the next."""
        angle, _, low, high, _, tries = carry
        # angle 0, the present state, is above the height and never leaves the bracket
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
    stays = ~(above > level)
    moved = jax.tree.map(lambda old, new: jnp.where(stays, old, new), state, at(angle))
    return moved, jnp.where(stays, height, above), tries, stays.astype(int)
