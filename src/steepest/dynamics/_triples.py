"""Risks of fresh random triples: an example, another of its class, and one of any class."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Key, Params


@checked
def triples(
    loss: Callable[[Params, Array, Array, Array], Array],
    examples: Float[Array, "C n d"],
    size: int,
    shares: Float[Array, " C"] | None = None,
) -> Callable[[Params, Key], Array]:
    """Return the risk of fresh triples, ``(params, key) -> mean of loss over them``, to follow in ``descend``.

    Two classes are drawn independently, and may be the same; x and x⁺ are independent examples of the first, x⁻ is one
    of the second.

    Args:
        loss: of parameters, x, x⁺ and x⁻, each ``(size, d)``; per triple, shape ``(size,)``.
        examples: n of each class.
        size: triples in a batch.
        shares: ρ of the classes; all alike where it is left out.

    Raises:
        UserError: no triple, examples that are not ``(C, n, d)``, or shares of another number.

    >>> numbers = jnp.arange(6.0).reshape(2, 3, 1)  # class 0 holds 0, 1, 2
    >>> gap = lambda params, x, positive, negative: ((x - positive) ** 2)[:, 0]
    >>> bool(triples(gap, numbers, 50)(0.0, jax.random.key(0)) <= 4)  # never across classes
    True
    """
    classes, n = examples.shape[:2] if examples.ndim == 3 else (0, 0)
    weights = jnp.ones(classes) if shares is None else jnp.asarray(shares)
    if size < 1 or classes < 1 or weights.shape != (classes,):
        raise UserError(
            "triples: expected at least one triple, examples (C, n, d) and a share a class, got size = "
            f"{size}, examples {tuple(examples.shape)} and shares {tuple(weights.shape)}"
        )

    def risk(params: Params, key: Key) -> Array:
        for_classes, for_examples = jax.random.split(key)
        # rows: the class of x and x⁺, the class of x⁻
        chosen = jax.random.choice(for_classes, classes, (2, size), p=weights / weights.sum())
        which = jax.random.randint(for_examples, (3, size), 0, n)
        x = examples[chosen[0], which[0]]
        positive = examples[chosen[0], which[1]]
        negative = examples[chosen[1], which[2]]
        return loss(params, x, positive, negative).mean()

    return risk
