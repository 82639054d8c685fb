"""AdaBoost: coordinate descent on the exponential loss over a dictionary of classifiers."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.losses import check_labels
from steepest.programs._decision_stumps import Stumps

# Edges this near to the largest are ties, and the first wins: so rounding does not choose.
_TIE = 1e-12


class Boosting(NamedTuple):
    """A run of AdaBoost, one entry a step; under ``vmap`` every array gains the mapped axis in front.

    Attributes:
        chosen: number of the classifier h, shape ``(steps,)``.
        amount: what is added to its weight, ``± shrinkage · ½ log((1 + γ)/(1 - γ))``: negative for ``-h``.
        edge: the largest edge ``γ = max_h |Σ_i q_i y_i h(x_i)|`` before the step.
        margin: ``min_i y_i f(x_i) / ‖w‖₁`` after the step.
        norm: ``‖w‖₁`` after the step.
        log_risk: logarithm of the mean of ``exp(-y_i f(x_i))`` after the step.
        scores: ``y_i f(x_i)`` at the end, shape ``(n,)``.
        weights: ``w`` at the end, one for every classifier, negative ones for ``-h``.
    """

    chosen: Int[Array, " steps"]
    amount: Float[Array, " steps"]
    edge: Float[Array, " steps"]
    margin: Float[Array, " steps"]
    norm: Float[Array, " steps"]
    log_risk: Float[Array, " steps"]
    scores: Float[Array, " n"]
    weights: Float[Array, " m"]


class _Votes(NamedTuple):
    """A dictionary that is given as its votes, in the form of ``Stumps``."""

    votes: Float[Array, "n m"]

    @property
    def size(self) -> int:
        return self.votes.shape[1]

    @property
    def examples(self) -> int:
        return self.votes.shape[0]

    def edges(self, signed: Float[Array, " n"]) -> Float[Array, " m"]:
        return signed @ self.votes

    def column(self, number: Int[Array, ""]) -> Float[Array, " n"]:
        return self.votes[:, number]


@checked
def adaboost(
    dictionary: Stumps | Float[Any, "n m"],
    y: Float[Array, " n"],
    steps: int,
    shrinkage: float | Array = 1.0,
) -> Boosting:
    """Run AdaBoost over a dictionary of classifiers and their negatives: each step moves the largest edge's coordinate.

    With weights ``q_i ∝ exp(-y_i f(x_i))`` the step is ``w_h += ν · ½ log((1 + γ)/(1 - γ))``: for ``ν = 1`` the exact
    minimum of the exponential loss along the coordinate, ``ν < 1`` is shrinkage. The q are a softmax of the scores, so
    that none overflows and their sum never underflows. Edges equal to 1e-12 are ties; the first classifier wins.
    scikit-learn's ``AdaBoostClassifier`` has the same path, if its base learner minimizes the weighted error (its own
    stumps minimize the Gini impurity, which is another choice): its ``estimator_weights_`` are twice the amounts here,
    its ``learning_rate`` is the shrinkage.

    Compiled as one scan; can be mapped over labels and shrinkages.

    Args:
        dictionary: all stumps of the inputs, from ``decision_stumps(x)``, whose edges cost one sum over sorted
            examples; or any classifiers, as a matrix of their votes ±1, shape ``(n, m)``.
        y: labels ±1, shape ``(n,)``.
        steps: how many steps.
        shrinkage: ν in (0, 1].

    Raises:
        UserError: if shapes do not match, or a label or a vote is not ±1. A classifier that separates the data on its
            own has edge 1 and an infinite step: the risk is then 0, the log-risk and all later entries are not finite.

    Source: Freund and Schapire 1997; Telgarsky 2013 (margins, shrinkage).

    >>> from steepest.programs import decision_stumps
    >>> stumps = decision_stumps(jnp.array([[0.0], [1.0], [2.0]]))
    >>> path = adaboost(stumps, jnp.array([-1.0, 1.0, -1.0]), steps=1)
    >>> path.edge.round(6).tolist()  # two of three examples are right
    [0.333333]

    Three classifiers, each wrong on one of three examples, are taken in turn for ever, with edges (√5 - 1)/2.

    >>> path = adaboost(jnp.ones((3, 3)) - 2 * jnp.eye(3), jnp.ones(3), steps=6000)
    >>> path.edge[-3:].round(6).tolist(), path.chosen[-3:].tolist(), path.margin[-1].round(3).tolist()
    ([0.618034, 0.618034, 0.618034], [0, 1, 2], 0.333)
    """
    y = check_labels(y)
    classifiers = dictionary if isinstance(dictionary, Stumps) else _votes(dictionary)
    if y.shape[0] != classifiers.examples:
        raise UserError(
            f"boosting: expected {classifiers.examples} labels, got {y.shape[0]}; one for each example"
        )
    if steps < 1:
        raise UserError(f"boosting: steps must be at least 1, got {steps}")

    def step(state: tuple, _: None) -> tuple:
        scores, weights, norm = state
        # γ_h = Σ_i q_i y_i h(x_i), one for each classifier, with q the softmax of -y_i f(x_i)
        edges = classifiers.edges(jax.nn.softmax(-scores) * y)
        size = jnp.abs(edges)
        edge = size.max()
        chosen = jnp.argmax(size >= edge - _TIE)
        # ½ log((1 + γ)/(1 - γ)) = artanh γ
        amount = shrinkage * jnp.sign(edges[chosen]) * jnp.arctanh(size[chosen])
        scores = scores + amount * y * classifiers.column(chosen)
        # ‖w‖₁ changes in one coordinate
        norm = norm + jnp.abs(weights[chosen] + amount) - jnp.abs(weights[chosen])
        weights = weights.at[chosen].add(amount)
        # log of the mean of exp(-y_i f(x_i))
        log_risk = jax.nn.logsumexp(-scores) - jnp.log(y.size)
        return (scores, weights, norm), (chosen, amount, edge, scores.min() / norm, norm, log_risk)

    start = (jnp.zeros_like(y), jnp.zeros(classifiers.size, y.dtype), jnp.zeros((), y.dtype))
    (scores, weights, _), (chosen, amount, edge, margin, norm, log_risk) = jax.lax.scan(
        step, start, None, steps
    )
    return Boosting(chosen, amount, edge, margin, norm, log_risk, scores, weights)


def _votes(matrix: Any) -> _Votes:
    """Return a matrix as a dictionary if its entries are ±1; inside ``jit`` only its shape can be seen."""
    votes = jnp.asarray(matrix, dtype=float)
    if votes.ndim != 2 or votes.size == 0:
        raise UserError(
            f"boosting: expected votes of shape (n, m), a row an example, not empty, got shape {votes.shape}"
        )
    if not isinstance(votes, Tracer) and (np.abs(np.asarray(votes)) != 1).any():
        raise UserError("boosting: expected votes -1 and +1, got others; take their signs")
    return _Votes(votes)
