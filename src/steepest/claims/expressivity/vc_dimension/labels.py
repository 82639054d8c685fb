"""Random labels that training fits, and labels that weights on frozen features separate."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy.optimize import linprog

from steepest import kit
from steepest.dynamics import descend
from steepest.nn.types import Values

FROZEN_INPUTS = 5
"""Dimensions of the inputs of frozen features."""


def shallow_weights(width: int, dimension: int) -> int:
    """Return the number of weights and biases of a ReLU network of one hidden layer."""
    return (dimension + 2) * width + 1


def fitted(points: Values, labels: Values, sizes: Values, starts: Values, steps: int) -> Values:
    """Say which labellings Adam fits with a ReLU network of one hidden layer, from the best of its starts.

    Neurons that start at zero stay there, so that narrower networks are trained beside wider ones.

    Args:
        points: of all draws, shape ``(draws, most, d)``; the set of size m is the first m.
        labels: ±1, shape ``(draws, most)``.
        sizes: m of each set, shape ``(networks, sizes)``.
        starts: first weights of each neuron, its offset and its weight in the output, shape ``(networks, draws,
            starts, width, d + 2)``.
        steps: of each descent on the logistic loss.

    Returns:
        whether all m labels are right in the end, shape ``(networks, sizes, draws)``.
    """
    _, most, d = points.shape

    def one(x: jax.Array, signs: jax.Array, start: jax.Array, size: jax.Array) -> jax.Array:
        present = jnp.arange(most) < size

        def outputs(params: tuple[jax.Array, jax.Array]) -> jax.Array:
            neurons, offset = params
            hidden = jax.nn.relu(x @ neurons[:, :d].T + neurons[:, d])
            return hidden @ neurons[:, d + 1] + offset

        risk = lambda params: jnp.where(
            present, jax.nn.softplus(-signs * outputs(params)), 0.0
        ).sum()
        end = descend(risk, (start, jnp.zeros(())), optax.adam(0.03), steps, record=steps).params
        return jnp.where(present, signs * outputs(end) > 0, True).all()

    over_starts = jax.vmap(one, (None, None, 0, None))
    over_draws = jax.vmap(over_starts, (0, 0, 0, None))
    over_sizes = jax.vmap(over_draws, (None, None, None, 0))
    train = kit.compiled(jax.vmap(over_sizes, (None, None, 0, 0)))
    return np.asarray(train(points, labels, starts, sizes)).any(-1)


def separated(features: Values, labels: Values) -> bool:
    """Say whether some weights give all examples their signs, by a linear program.

    Args:
        features: shape ``(n, p)``.
        labels: ±1, shape ``(n,)``.
    """
    signed = features * labels[:, None]
    p = features.shape[1]
    answer = linprog(np.zeros(p), A_ub=-signed, b_ub=-np.ones(len(signed)), bounds=(None, None))
    return answer.status == 0


def separated_features(
    rng: np.random.Generator, weights: Sequence[int], ratios: Sequence[float], draws: int, kind: str
) -> Values:
    """Say which random labels weights on frozen features separate, as zeros and ones ``(weights, ratios, draws)``.

    Args:
        rng: draws normal inputs of ``FROZEN_INPUTS`` dimensions, features and labels.
        weights: numbers p of features.
        ratios: of the numbers of points to p.
        draws: of each size.
        kind: ``"tanh"`` of random linear functions, or these as they are, ``"linear"``.
    """
    separable = np.zeros((len(weights), len(ratios), draws))
    for i, p in enumerate(weights):
        for j, ratio in enumerate(ratios):
            for draw in range(draws):
                x = rng.standard_normal((round(ratio * p), FROZEN_INPUTS))
                features = x @ rng.standard_normal((FROZEN_INPUTS, p)) + rng.standard_normal(p)
                if kind == "tanh":
                    features = np.tanh(features)
                separable[i, j, draw] = separated(features, rng.choice([-1.0, 1.0], len(x)))
    return separable
