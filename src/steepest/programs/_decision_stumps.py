"""All decision stumps of a data set, with their edges in one pass over the sorted examples."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from steepest.core.errors import UserError
from steepest.core.signatures import checked


class Stumps(NamedTuple):
    """Every classifier ``h(x) = sign(x_j - t)`` that differs on the data; negatives are left to the sign of a weight.

    Thresholds lie midway between neighbouring values of a feature. Two features may cut the examples alike; both stumps
    are kept.

    Attributes:
        feature: j of each stump, features in order, shape ``(m,)``.
        threshold: t of each stump, rising within a feature, in its unit, shape ``(m,)``.
        cut: place of the last example at or below t in the feature's sorted order, shape ``(m,)``.
        order: the examples sorted by each feature, shape ``(d, n)``.
        rank: the place of each example in that order, shape ``(d, n)``.
    """

    feature: Int[Array, " m"]
    threshold: Float[Array, " m"]
    cut: Int[Array, " m"]
    order: Int[Array, "d n"]
    rank: Int[Array, "d n"]

    @property
    def size(self) -> int:
        """Count the stumps."""
        return self.feature.shape[-1]

    @property
    def examples(self) -> int:
        """Count the examples."""
        return self.rank.shape[-1]

    def edges(self, signed: Float[Array, " n"]) -> Float[Array, " m"]:
        """Return ``Σ_i s_i h(x_i)`` of every stump, by one sum over the sorted examples of each feature.

        Args:
            signed: ``s_i = q_i y_i``, shape ``(n,)``.
        """
        below = jnp.cumsum(signed[self.order], axis=1)
        # above minus below: all minus twice what is below
        return signed.sum() - 2 * below[self.feature, self.cut]

    def column(self, number: Int[Array, ""] | int) -> Float[Array, " n"]:
        """Return ``h(x_i)`` of one stump on every example, ±1."""
        return jnp.where(self.rank[self.feature[number]] > self.cut[number], 1.0, -1.0)

    def matrix(self, numbers: Int[Any, " k"] | None = None) -> Float[np.ndarray, "n k"]:
        """Return ``h_k(x_i)`` of the chosen stumps, or of all, as a dense NumPy matrix."""
        chosen = np.arange(self.size) if numbers is None else np.asarray(numbers, int)
        feature = np.asarray(self.feature)[chosen]
        cut = np.asarray(self.cut)[chosen]
        return np.where(np.asarray(self.rank)[feature] > cut[:, None], 1.0, -1.0).T

    def classify(self, number: int, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Return ``h(x)`` of one stump on new inputs."""
        return jnp.where(x[:, self.feature[number]] > self.threshold[number], 1.0, -1.0)


@checked
def decision_stumps(x: Float[Any, "n d"]) -> Stumps:
    """Build all decision stumps of a data set.

    Args:
        x: inputs, shape ``(n, d)``.

    Raises:
        UserError: if x is not a matrix of finite numbers, or all its examples are equal.

    >>> stumps = decision_stumps([[0.0, 5.0], [2.0, 5.0], [2.0, 7.0]])
    >>> stumps.feature.tolist(), stumps.threshold.tolist()
    ([0, 1], [1.0, 6.0])
    """
    values = np.asarray(x, dtype=float)
    if values.ndim != 2 or values.size == 0 or not np.isfinite(values).all():
        raise UserError(
            f"stumps: expected finite inputs of shape (n, d), not empty, got shape {values.shape}"
        )
    order = np.argsort(values, axis=0, kind="stable").T
    ranked = np.take_along_axis(values.T, order, axis=1)
    feature, cut = np.nonzero(np.diff(ranked, axis=1) > 0)
    if not len(feature):
        raise UserError(
            "stumps: expected examples that differ in some feature, got equal ones; nothing can be cut"
        )
    threshold = 0.5 * (ranked[feature, cut] + ranked[feature, cut + 1])
    rank = np.argsort(order, axis=1, kind="stable")  # the argsort of a permutation is its inverse
    whole = lambda numbers: jnp.asarray(numbers, jnp.int32)
    return Stumps(whole(feature), jnp.asarray(threshold), whole(cut), whole(order), whole(rank))
