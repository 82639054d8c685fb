"""Updates of the optimizers that people use, those of optax, on noise and on batches of digits."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.nn.data import digits
from steepest.nn.losses import cross_entropy
from steepest.nn.networks import mlp
from steepest.nn.types import Network, Params, Values
from steepest.optimizers import Moments, Muon, spread_of_second_moment

EPSILON = 1e-12
REPEATED = 4  # times that a batch comes in a row, in the changed world
SURE = 0.1  # variance of v over its square up to which the first order is enough
FEW = 20  # steps of a full batch, whose updates are all alike


class Setting(NamedTuple):
    """Images with labels, networks, one a seed, and the moments of their gradients over the images."""

    x: Values  # (n, 64)
    y: Values  # (n,)
    params: Params  # arrays (seeds, out, in)
    moments: tuple[Moments, ...]  # of each layer, (seeds, out, in)


def network(width: int) -> Network:
    """Return the network of two hidden layers that reads digits."""
    return mlp((64, width, width, 10), "tanh", c_w=2.0, bias=False)


def draw(key: kit.Key, images: int, width: int, seeds: int) -> Setting:
    """Draw images and networks, and find the moments of each weight's gradient from one image."""
    of_images, of_networks = kit.keys(key, 2)
    data = digits(n=images, key=of_images)
    labels = jnp.argmax(data.y, 1)
    net = network(width)

    def gradients(keys: Any) -> tuple[Params, Params]:
        params = jax.vmap(net.init)(keys)
        of_one = lambda params, x, y: jax.grad(risk)(params, net, x[None], y[None])
        over_images = jax.vmap(of_one, (None, 0, 0))
        return params, jax.lax.map(lambda params: over_images(params, data.x, labels), params)

    params, of_images = kit.compiled(gradients)(jax.random.split(of_networks, seeds))
    moments = []
    for layer in of_images:
        values = np.asarray(layer["w"], float)
        mean = values.mean(1)
        # central moments over images
        away = values - mean[:, None]
        moments.append(Moments(mean, *((away**power).mean(1) for power in (2, 3, 4))))
    return Setting(np.asarray(data.x), np.asarray(labels), params, tuple(moments))


def risk(params: Params, net: Network, x: jax.Array, y: jax.Array) -> jax.Array:
    """Return the mean cross-entropy."""
    return cross_entropy(net.apply(params, x), y).mean()


def told(moments: Moments, batch: int, beta2: float, step: int) -> Values:
    """Mark the weights whose v varies little enough for the first order.

    A weight that few images reach has gradients that are mostly zero, and a v that hangs on the last one that was not.
    """
    of_batch = moments.of_means(batch)
    size = (of_batch.mean**2 + of_batch.variance) ** 2
    return (size > 0) & (spread_of_second_moment(beta2, step) * of_batch.spread <= SURE * size)


def on_noise(
    key: kit.Key, lanes: Sequence[Values], weights: int, steps: int, repeated: int
) -> jax.Array:
    """Return the root mean square of Adam's updates over the last half of steps, for each lane.

    Args:
        key: of the noise.
        lanes: β₁, β₂ and the mean of the gradients, whose noise has variance one, each ``(lanes,)``.
        weights: how many.
        steps: how many.
        repeated: in how many steps in a row the noise is the same.
    """
    beta1, beta2, mean = (jnp.asarray(values) for values in lanes)

    def adam(b1: jax.Array, b2: jax.Array) -> Any:
        return optax.scale_by_adam(b1, b2, EPSILON)

    start = jax.vmap(lambda b1, b2: adam(b1, b2).init(jnp.zeros(weights)))(beta1, beta2)

    def step(state: tuple[Any, jax.Array], number: jax.Array) -> tuple[tuple[Any, jax.Array], None]:
        moments, sums = state
        noise = jax.random.normal(jax.random.fold_in(key, number // repeated), (weights,))
        update = lambda b1, b2, mu, state: adam(b1, b2).update(mu + noise, state)
        updates, moments = jax.vmap(update)(beta1, beta2, mean, moments)
        late = number >= steps // 2
        return (moments, sums + late * (updates**2).mean(1)), None

    sums = jnp.zeros(len(beta1))
    (_, sums), _ = jax.lax.scan(step, (start, sums), jnp.arange(steps))
    return jnp.sqrt(sums / (steps - steps // 2))


def on_digits(
    key: kit.Key,
    setting: Setting,
    params: Params,
    masks: Sequence[jax.Array],
    net: Network,
    batch: int,
    betas: tuple[float, float],
    steps: int,
) -> jax.Array:
    """Return the root mean square of Adam's updates at weights that stay, over the last half of steps.

    Args:
        key: of the batches, drawn with replacement; all images in each step if ``batch`` is zero.
        setting: images and labels.
        params: of one network.
        masks: the weights of each layer that count.
        net: the network.
        batch: examples of a batch.
        betas: β₁ and β₂.
        steps: how many.
    """
    x = jnp.asarray(setting.x)
    y = jnp.asarray(setting.y)
    adam = optax.scale_by_adam(*betas, EPSILON)

    def step(state: tuple[Any, jax.Array], number: jax.Array) -> tuple[tuple[Any, jax.Array], None]:
        moments, sums = state
        chosen = jax.random.randint(jax.random.fold_in(key, number), (batch,), 0, len(x))
        shown = (x[chosen], y[chosen]) if batch else (x, y)
        gradient = jax.grad(risk)(params, net, *shown)
        updates: Any
        updates, moments = adam.update(gradient, moments)
        squares = [
            (layer["w"] ** 2 * mask).sum() for layer, mask in zip(updates, masks, strict=True)
        ]
        return (moments, sums + (number >= steps // 2) * sum(squares)), None

    (_, sums), _ = jax.lax.scan(step, (adam.init(params), jnp.zeros(())), jnp.arange(steps))
    count = sum(mask.sum() for mask in masks)
    return jnp.sqrt(sums / (steps - steps // 2) / count)


def muon(gradients: Values) -> Values:
    """Return the root mean square of Muon's updates, ``(seeds,)``, for gradients ``(seeds, matrices, m, n)``.

    It divides by the Frobenius norm, and brings singular values near one by five products of matrices.
    """
    rule = Muon()
    a, b, c = rule.coefficients
    update = gradients / np.linalg.norm(gradients, axis=(-2, -1), keepdims=True)
    for _ in range(rule.iterations):
        square = update @ update.swapaxes(-2, -1)
        # singular values s become as + bs³ + cs⁵
        update = a * update + (b * square + c * square @ square) @ update
    return np.sqrt((update**2).mean((1, 2, 3)))
