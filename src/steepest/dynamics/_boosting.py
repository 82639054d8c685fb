"""AdaBoost: coordinate descent on the exponential loss over a dictionary of classifiers."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from steepest.core.errors import UserError
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


def adaboost(
    stumps: Stumps, y: Float[Array, " n"], steps: int, shrinkage: float | Array = 1.0
) -> Boosting:
    """Run AdaBoost over all decision stumps and their negatives: each step moves the coordinate of the largest edge.

    With weights ``q_i ∝ exp(-y_i f(x_i))`` the step is ``w_h += ν · ½ log((1 + γ)/(1 - γ))``: for ``ν = 1`` the exact
    minimum of the exponential loss along the coordinate, ``ν < 1`` is shrinkage. The q are a softmax of the scores, so
    that none overflows and their sum never underflows. Edges equal to 1e-12 are ties; the first classifier wins.
    scikit-learn's ``AdaBoostClassifier`` has the same path, if its base learner minimizes the weighted error (its own
    stumps minimize the Gini impurity, which is another choice): its ``estimator_weights_`` are twice the amounts here,
    its ``learning_rate`` is the shrinkage.

    Compiled as one scan; can be mapped over labels and shrinkages.

    Args:
        stumps: all stumps of the inputs, from ``decision_stumps(x)``.
        y: labels ±1, shape ``(n,)``.
        steps: how many steps.
        shrinkage: ν in (0, 1].

    Raises:
        UserError: if shapes do not match or a label is not ±1. A stump that separates the data on its own has edge 1
            and an infinite step: the risk is then 0, the log-risk and all later entries are not finite.

    Source: Freund and Schapire 1997; Telgarsky 2013 (margins, shrinkage).

    >>> from steepest.programs import decision_stumps
    >>> stumps = decision_stumps(jnp.array([[0.0], [1.0], [2.0]]))
    >>> path = adaboost(stumps, jnp.array([-1.0, 1.0, -1.0]), steps=1)
    >>> path.edge.round(6).tolist()  # two of three examples are right
    [0.333333]
    """
    y = check_labels(y)
    if y.shape[0] != stumps.rank.shape[1]:
        raise UserError(
            f"boosting: expected {stumps.rank.shape[1]} labels, got {y.shape[0]}; one for each example"
        )
    if steps < 1:
        raise UserError(f"boosting: steps must be at least 1, got {steps}")

    def step(state: tuple, _: None) -> tuple:
        scores, weights, norm = state
        edges = stumps.edges(jax.nn.softmax(-scores) * y)
        size = jnp.abs(edges)
        edge = size.max()
        chosen = jnp.argmax(size >= edge - _TIE)
        amount = shrinkage * jnp.sign(edges[chosen]) * jnp.arctanh(size[chosen])
        scores = scores + amount * y * stumps.column(chosen)
        norm = norm + jnp.abs(weights[chosen] + amount) - jnp.abs(weights[chosen])
        weights = weights.at[chosen].add(amount)
        log_risk = jax.nn.logsumexp(-scores) - jnp.log(y.size)
        return (scores, weights, norm), (chosen, amount, edge, scores.min() / norm, norm, log_risk)

    start = (jnp.zeros_like(y), jnp.zeros(stumps.size, y.dtype), jnp.zeros((), y.dtype))
    (scores, weights, _), (chosen, amount, edge, margin, norm, log_risk) = jax.lax.scan(
        step, start, None, steps
    )
    return Boosting(chosen, amount, edge, margin, norm, log_risk, scores, weights)
