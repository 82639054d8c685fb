"""Networks of squares trained by noisy descent, by automatic differentiation of their regularized risk."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.nn.types import Values

DIMENSION = 4


class Lanes(NamedTuple):
    """Networks that are trained side by side.

    Attributes:
        target: A, shape ``(lanes, D, D)``.
        start: a root R of the starting M = R Rᵀ, shape ``(lanes, D, D)``.
        temperature: τ, shape ``(lanes,)``.
        shared: whether all neurons have the same noise, shape ``(lanes,)``.
    """

    target: Values
    start: Values
    temperature: Values
    shared: Values


class Trained(NamedTuple):
    """What is measured of each network.

    Attributes:
        risk: regularized risk before each step, shape ``(lanes, steps)``.
        moments: (1/N) Σ θθᵀ, mean over the last third of the steps, ``(lanes, D, D)``.
        middle: the same at 3/5 of the steps, ``(lanes, D, D)``.
    """

    risk: np.ndarray
    moments: np.ndarray
    middle: np.ndarray


def nodes(dimension: int) -> tuple[Values, Values]:
    """Return inputs and weights that average polynomials of degree five over N(0, I), one of each pair ±x.

    √(D/2 + 1)(±e_i ± e_j), √(D + 2) e_i and zero, where a network of squares is zero: it is left out.
    Source: Stroud 1971, E_n^{r²} 5–4 up to scale.
    """
    pairs = [
        np.sqrt(dimension / 2 + 1) * (np.eye(dimension)[i] + sign * np.eye(dimension)[j])
        for i in range(dimension)
        for j in range(i)
        for sign in (-1, 1)
    ]
    axes = np.sqrt(dimension + 2) * np.eye(dimension)
    # E x_i² = 2(D − 1)/(D + 2) of the pairs + (4 − D)/(D + 2) of the axes = 1
    square = (dimension + 2) ** 2
    weights = np.repeat([2 / square, (4 - dimension) / square], [len(pairs), dimension])
    return np.concatenate([pairs, axes]), weights


def train(
    key: kit.Key, lanes: Lanes, neurons: int, decay: float, step: float, steps: int
) -> Trained:
    """Train all networks by descent with noise of variance 2τh a step."""
    x, weights = nodes(DIMENSION)

    def risk(theta: jax.Array, target: jax.Array) -> jax.Array:
        outputs = ((theta @ x.T) ** 2).mean(0)
        wanted = jnp.einsum("ni,ij,nj->n", x, target, x)
        return 0.5 * weights @ (outputs - wanted) ** 2 + 0.5 * decay * (theta**2).sum(1).mean()

    slopes = jax.vmap(jax.value_and_grad(risk))

    def run(key: jax.Array, lanes: Lanes) -> tuple[jax.Array, ...]:
        for_start, for_noise = jax.random.split(key)
        shape = (len(lanes.temperature), neurons, DIMENSION)
        size = jnp.sqrt(2 * step * lanes.temperature)[:, None, None]

        def descend(theta: jax.Array, i: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
            value, slope = slopes(theta, lanes.target)
            noise = jax.random.normal(jax.random.fold_in(for_noise, i), shape)
            noise = jnp.where(lanes.shared[:, None, None], noise[:, :1], noise)
            moment = jnp.einsum("lni,lnj->lij", theta, theta) / neurons
            # in time multiplied by N, as neurons move by 1/N of the slope
            return theta - step * neurons * slope + size * noise, (value, moment)

        # θ = R g with g ~ N(0, I) has the second moment R Rᵀ
        theta = jnp.einsum("lni,lji->lnj", jax.random.normal(for_start, shape), lanes.start)
        _, (values, moments) = jax.lax.scan(descend, theta, jnp.arange(steps))
        return values.T, moments[-steps // 3 :].mean(0), moments[3 * steps // 5]

    return Trained(*map(np.asarray, kit.compiled(run)(key, lanes)))
