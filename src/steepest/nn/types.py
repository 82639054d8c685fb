"""The vocabulary that every room shares: keys, parameters, networks.

A *key* is a JAX random key (``jax.random.key(0)``); nothing in the library draws randomness from anywhere else.
*Parameters* are any pytree of arrays. A *network* is a pair of pure functions, ``init`` and ``apply``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar

Key = PRNGKeyArray
# The stubs of JAX refuse NumPy's arrays where JAX takes them, so that checkers are told nothing.
Values = Any if TYPE_CHECKING else jax.Array | np.ndarray
"""Numbers on the device or in NumPy: what is made once needs no program of JAX's."""
Params = PyTree
Risk = Callable[[Any], Scalar]
"""The mean loss over the examples as a function of the parameters alone."""


@dataclass(frozen=True)
class Network:
    """A family of functions with a law for its initial parameters.

    Attributes:
        init: draws the initial parameters from a key.
        apply: maps parameters and inputs of shape ``(..., d)`` to outputs of shape ``(..., k)``, or ``(...,)``
            for networks with one scalar output.
        name: how pages and tables call it.
    """

    init: Callable[[Key], Params]
    apply: Callable[[Params, Float[Array, "... d"]], Array]
    name: str = "network"


def count(params: Params) -> int:
    """Count the scalar parameters.

    >>> import jax.numpy as jnp
    >>> count({"w": jnp.zeros((2, 3)), "b": jnp.zeros(3)})
    9
    """
    return sum(leaf.size for leaf in jax.tree.leaves(params))
