"""Attention: values are mixed by weights of each input, alike in all heads or drawn."""

from abc import abstractmethod
from typing import NamedTuple, TypeVar

import jax.numpy as jnp
import numpy as np

from steepest.core.precision import arithmetic
from steepest.kernels.wide._rule import (
    ROUNDING,
    Computed,
    Diagonal,
    Local,
    Pairs,
    Step,
    Values,
    everywhere,
    of_variances,
    rule_for,
)
from steepest.kernels.wide.nodes._weights import Weighing, weighed
from steepest.nn.layers._nodes import Attend, AttendAtRandom, AttendEntrywise, AttendLinearly

A = TypeVar("A", Attend, AttendEntrywise)


class Attending(Weighing[A]):
    """``ζ K ζ'ᵀ`` and ``ζ Θ ζ'ᵀ``, with weights ζ of the keys' own covariance."""

    def numbers(self, step: Step) -> list[Values]:
        """Return ζ, ``(keys, *space, n)``."""
        exists = None
        if step.exists is not None:
            shape = (-1, *(1 for _ in step.space), step.exists.shape[-1])
            exists = step.exists.reshape(shape)
        return [self.weigh(step.products(), exists, step.xp)]

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Mix means, and bounds."""
        (values, _) = step.read
        (weights,) = numbers
        behind = Diagonal(*step.itself(), weighed(weights, values.mean, step.xp))
        if not step.bounded:
            return behind
        g, h = self.bounds(step, weights)
        return behind._replace(g=g, h=h, v=g)

    @abstractmethod
    def weigh(self, products: Values, exists: Values | None, xp) -> Values:
        """Return ζ of the scaled products, ``(keys, *space, n)``; keys that do not exist weigh nothing.

        Args:
            products: ``(keys, *space, n)``.
            exists: which keys do, ``(keys, 1, …, n)``; None where all do.
            xp: NumPy or JAX's twin of it.
        """

    @abstractmethod
    def bounds(self, step: Step, weights: Values) -> tuple[Values, Values]:
        """Return g and h behind the node."""


@rule_for(Attend)
class OfAttention(Attending[Attend]):
    """Weights that add up to one: the softmax of all products with a query."""

    def degree(self, read):
        """Keep the degree of values where all weights are equal; others depend on norms."""
        return None if self.node.sharpness else read[0]

    def weigh(self, products, exists, xp):
        """Divide exponentials by their sum."""
        logits = products if exists is None else xp.where(exists, products, -xp.inf)
        # softmax is the same with any number subtracted; without it exponentials may overflow
        exponentials = xp.exp(logits - logits.max(0, keepdims=True))
        return exponentials / exponentials.sum(0, keepdims=True)

    def bounds(self, step, weights):
        """Bound the errors: ζ is off by a factor 1 + δ at most, as its logits are by |s| max g.

        ``|Δ(ζKζ'ᵀ)| ≤ (1 + δ)² (ζ√g)(ζ'√g') + ((1 + δ)² − 1)(ζ√k)(ζ'√k')``, which is of rank one by Cauchy and Schwarz.
        """
        values, keys = step.read
        # logits off by |s| max g at most: numerator and sum of softmax by e^{±|s| max g} each
        off = np.expm1(2 * abs(self.node.sharpness) * keys.g.max()) + ROUNDING * step.eps
        square = (1 + off) ** 2

        def bound(errors: Values, sizes: Values) -> Values:
            mixed = [weighed(weights, np.sqrt(part), np) ** 2 for part in (errors, sizes)]
            return square * mixed[0] + (square - 1) * mixed[1]

        return bound(values.g, values.k), bound(values.h, values.theta)


@rule_for(AttendEntrywise)
class OfEntrywiseAttention(Attending[AttendEntrywise]):
    """Weights that are a function of one product each."""

    def degree(self, read):
        """Keep the degree of values where all weights are equal; others depend on norms."""
        return None if self.node.sharpness else read[0]

    def weigh(self, products, exists, xp):
        """Apply the function; keys that do not exist weigh nothing, whatever it is at zero."""
        if xp is np:
            with arithmetic(double=True):
                weights = np.asarray(self.node.activation(jnp.asarray(products)))
        else:
            weights = self.node.activation(products)
        return weights if exists is None else xp.where(exists, weights, 0)

    def bounds(self, step, weights):
        """Bound the errors: ζ is off by what its function changes over the error of its product, δ.

        With ``z = |ζ| + δ``, ``|Δ(ζKζ'ᵀ)| ≤ (z√g)(z'√g') + (z√k)(z'√k') − (|ζ|√k)(|ζ'|√k')``.
        """
        values, keys = step.read
        products = step.products()
        error = (
            abs(self.node.sharpness) * keys.g.max() + ROUNDING * step.eps * np.abs(products).max()
        )
        above, below = (self.weigh(products + sign * error, None, np) for sign in (1, -1))
        plain = self.weigh(products, None, np)
        off = np.maximum(np.abs(above - plain), np.abs(below - plain))
        off = off + ROUNDING * step.eps * np.abs(weights)

        def bound(errors: Values, sizes: Values) -> Values:
            mixed = weighed(np.abs(weights) + off, np.sqrt(errors), np) ** 2
            size = weighed(np.abs(weights), np.sqrt(sizes), np)
            moved = weighed(off, np.sqrt(sizes), np)
            # of a product (a + b)(a' + b') − a a' = a b' + b a' + b b'
            return mixed + 2 * of_variances(moved, size, step.typical) + moved**2

        return bound(values.g, values.k), bound(values.h, values.theta)


class Sized(NamedTuple):
    """A kernel of each input with itself, ``(*space, n)``, and the bound of its error, of rank one.

    Attributes:
        size: its diagonal.
        error: g.
    """

    size: Values
    error: Values

    def times(self, other: "Sized") -> "Sized":
        """Multiply two kernels entry by entry: the error is ``(k + g)(k' + g') − k k'`` at most."""
        error = self.size * other.error + self.error * other.size + self.error * other.error
        return Sized(self.size * other.size, error)

    def total(self) -> "Sized":
        """Sum over all pairs of positions: ``Σ √(k_q k'_q') = (Σ √k_q)(Σ √k'_q')``."""
        axes = tuple(range(self.size.ndim - 1))
        sums = [np.sqrt(part).sum(axes, keepdims=True) ** 2 for part in self]
        return Sized(*sums)


@rule_for(AttendLinearly)
class OfLinearAttention(Local[AttendLinearly]):
    """Means over heads whose weights are products of random queries and keys."""

    meets = True
    whole = True

    def degree(self, read):
        """Add the degrees of values, queries and keys."""
        return read[0] + 2 * read[1]

    def needs(self, behind, shape):
        """Read all displacements."""
        return everywhere(behind, shape)

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Take kernels from pairs; values have mean zero, and products give the bounds."""
        values, queries = step.read
        behind = Diagonal(*step.itself(), 0 * values.mean)
        if not step.bounded:
            return behind
        square = self.node.sharpness**2
        rounding = ROUNDING * step.eps
        value = Sized(values.k, values.g)
        query = Sized(queries.k, queries.g)
        trained_value = Sized(values.theta, values.h)
        trained_query = Sized(queries.theta, queries.h)
        both = query.times(value).total()
        k = query.times(both)
        terms = (
            query.times(query.times(trained_value).total()),
            trained_query.times(both),
            query.times(trained_query.times(value).total()),
        )
        g = square * (k.error + rounding * k.size)
        h = square * sum(term.error + rounding * term.size for term in terms)
        return behind._replace(g=g, h=h, v=g)

    def pairs(self, read, index, layout, one, two, pairing) -> Pairs:
        """Multiply kernels of queries by sums over all pairs of positions of both inputs."""
        values, queries = read
        space = layout.plan.limit.spaces[index]
        axes = tuple(range(2 * len(space)))
        total = lambda a, b: (a * b).sum(axes)
        both = total(queries.k, values.k)
        square = self.node.sharpness**2
        k = square * queries.k * both
        # the derivatives of values, of queries and of keys, which have the law of queries
        through = total(queries.k, values.theta) + total(queries.theta, values.k)
        return Pairs(k, square * (queries.k * through + queries.theta * both))


@rule_for(AttendAtRandom)
class OfRandomAttention(Computed[AttendAtRandom]):
    """Means over heads, which ``_heads.py`` draws: there is no kernel of pairs without them."""

    meets = True
    whole = True
    drawn = True

    def needs(self, behind, shape):
        """Read all displacements."""
        return everywhere(behind, shape)

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Take kernels from the draw; values have mean zero, and heads that are drawn no bound."""
        values = step.read[0]
        nothing = 0 * values.mean
        return Diagonal(*step.itself(), nothing, nothing, nothing, nothing)
