"""Many descents at once: every seed at every step size."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from steepest.core.given import key
from steepest.core.signatures import checked
from steepest.dynamics._descend import Trajectory
from steepest.nn.types import Key


@checked
def grid(one: Callable[[Key, Array], Trajectory], seeds: Array, values: Sequence[float]) -> Any:
    """Run ``one(key, value)`` for every key and value as one compiled computation.

    Args:
        one: a descent, or any pure function, of a key and a scalar such as a step size.
        seeds: keys, shape ``(seeds,)``.
        values: scalars, shape ``(values,)``.

    Returns:
        What ``one`` returns, with axes ``(seeds, values)`` in front of every array.

    >>> grid(lambda key, value: 2 * value, jax.random.split(jax.random.key(0), 2), (1.0, 3.0)).tolist()
    [[2.0, 6.0], [2.0, 6.0]]
    """
    return jax.jit(jax.vmap(jax.vmap(one, (None, 0)), (0, None)))(
        key("seeds", seeds), jnp.asarray(values, float)
    )


@checked
def stability_bracket(
    step_sizes: Float[np.ndarray, " values"] | Sequence[float],
    diverged: Bool[np.ndarray, "seeds values"],
) -> Float[np.ndarray, "seeds 2"]:
    """Find the last step size that stays and the first that diverges, one pair a seed.

    NaN where the first step size already diverges or none does: then the grid does not bracket the threshold.

    >>> stability_bracket((1.0, 2.0, 4.0), np.array([[False, False, True], [False, False, False]])).tolist()
    [[2.0, 4.0], [nan, nan]]
    """
    sizes = np.asarray(step_sizes, float)
    lost = np.asarray(diverged)
    first = lost.argmax(1)  # the first that is true; 0 also where none is
    bracketed = lost.any(1) & (first > 0)
    return np.where(bracketed[:, None], np.stack([sizes[first - 1], sizes[first]], 1), np.nan)


@checked
def stability_threshold(
    step_sizes: Float[np.ndarray, " values"] | Sequence[float],
    diverged: Bool[np.ndarray, "seeds values"],
) -> Float[np.ndarray, " seeds"]:
    """Return the middle between the last step size that stays and the first that diverges; NaN without a bracket.

    >>> stability_threshold((1.0, 2.0, 4.0), np.array([[False, False, True], [False, False, False]])).tolist()
    [3.0, nan]
    """
    return stability_bracket(step_sizes, diverged).mean(1)
