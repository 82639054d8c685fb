"""Gradients of linear quadratic control that costs of rollouts estimate, and descents with them."""

import jax
import jax.numpy as jnp

from steepest import kit
from steepest.claims.descent._lqr import gradient_step
from steepest.landscapes import Lqr


def rollout_gradients(
    system: Lqr, K: jax.Array, key: kit.Key, count: int, length: int, radius: float
) -> tuple[jax.Array, jax.Array]:
    """Estimate ∇C from costs c of rollouts at K ± U, U uniform on the sphere of this radius; ``(count, k, n)`` each.

    The first is (D/r²) ½ (c(K+U) − c(K−U)) U, D = kn, where both rollouts have one Gaussian start; the second
    (D/r²) c(K+U) U, of one rollout, as the source has it.
    """
    for_directions, for_starts = jax.random.split(key)
    normal = jax.random.normal(for_directions, (count, *K.shape))
    directions = radius * normal / jnp.sqrt((normal**2).sum((1, 2), keepdims=True))
    starts = jax.random.split(for_starts, count)

    def costs(sign: jax.Array) -> jax.Array:
        rollout = lambda U, key: system.rollouts(K + sign * U, key, 1, length)[0]
        return jax.vmap(rollout)(directions, starts)

    above, below = jax.vmap(costs)(jnp.array([1.0, -1.0]))
    # on a sphere E UUᵀ = (r²/D) I, so that E (D/r²)⟨∇C, U⟩U = ∇C
    scaled = K.size / radius**2 * directions
    return scaled * ((above - below) / 2)[:, None, None], scaled * above[:, None, None]


def rollout_descent(
    system: Lqr,
    key: kit.Key,
    sided: jax.Array,
    steps: int,
    count: int,
    length: int,
    radius: float,
) -> jax.Array:
    """Return (C − C*)/C* along a descent from K = 0 by estimates of rollouts only, ``(steps + 1,)``.

    ``sided`` is 0 for differences of two rollouts, 1 for single ones. Each step has ``count`` directions of its own.
    """
    optimum = system.optimum
    start = jnp.zeros((system.B.shape[1], system.B.shape[0]))
    # noise takes one system in sixty out of stability at twice this step
    lr = gradient_step(system, start) / 2

    def step(K: jax.Array, key: kit.Key) -> tuple[jax.Array, jax.Array]:
        two_sided, one_sided = rollout_gradients(system, K, key, count, length, radius)
        gradient = jnp.where(sided == 0, two_sided.mean(0), one_sided.mean(0))
        return K - lr * gradient, system.excess(K, optimum) / optimum.cost

    return jax.lax.scan(step, start, jax.random.split(key, steps + 1))[1]
