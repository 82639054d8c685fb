"""Sampling of many random ReLU networks at once: columns of the Jacobian, and the tangent kernel, at one input.

The networks are those of ``_relu_paths``: no biases, ``W = √(2/fan-in) Ŵ``, gates 1{z > 0}.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.core.fields import Count
from steepest.core.signatures import checked
from steepest.nn.networks._relu_paths import KURTOSIS, check_law, check_widths
from steepest.nn.types import Key


class Columns(NamedTuple):
    """Columns ∂/∂x_p of the Jacobians of many networks, in every layer.

    Attributes:
        norms: ``(n_0/n_l) ‖∂σ(z^(l))/∂x_p‖²``, of mean one, for l = 1, …, L: shape ``(networks, L, columns)``.
        squares: mean over neurons and columns of ``(∂z^(l)_q/∂x_p)²``, l = 1, …, L + 1: shape ``(networks, L + 1)``.
            Row l is what a network of l − 1 hidden layers has at its outputs.
        fourths: the same of the fourth powers.
    """

    norms: Array
    squares: Array
    fourths: Array


@checked
def sample_columns(
    key: Key,
    networks: Count,
    widths: Sequence[int],
    x: Float[Array, " n_0"],
    law: str = "gaussian",
    *,
    columns: int = 1,
    gates: str = "real",
) -> Columns:
    """Sample the first columns of every layer's Jacobian at x in many random ReLU networks, with explicit weights.

    Layers are padded to the widest and run in one compiled loop, so that depth costs no compile time.

    Args:
        key: random key.
        networks: how many independent networks.
        widths: n_0, …, n_{L+1}, at least one hidden layer.
        x: the input, which sets the precision of the computation.
        law: of the weights, as in :func:`derivative_moments`.
        columns: how many of the n_0 coordinates of x are differentiated, from the first.
        gates: ``"real"``, 1{z > 0} of the forward pass at x, or ``"coin"``, fair coins as in the notes' corollary.

    Raises:
        UserError: widths, law, gates, columns or the shape of x are not as above.

    >>> columns = sample_columns(jax.random.key(0), 5, (3, 8, 8, 2), jnp.ones(3), "uniform")
    >>> columns.norms.shape, columns.fourths.shape
    ((5, 2, 1), (5, 3))
    """
    widths = check_widths(widths, 3)
    x = jnp.asarray(x, jnp.result_type(x, jnp.float32))
    check_law(law)
    if x.shape != (widths[0],) or not 1 <= columns <= widths[0]:
        raise UserError(
            f"the input needs shape ({widths[0]},) and columns 1 to {widths[0]}, got {x.shape} and {columns}"
        )
    if gates not in ("real", "coin"):
        raise UserError(f"gates are 'real' or 'coin', got {gates!r}")
    return _sample_columns(
        key, networks, widths, x, list(KURTOSIS).index(law), columns, gates == "coin"
    )


@partial(jax.jit, static_argnums=(1, 2, 5, 6))
def _sample_columns(key, networks, widths, x, law, columns, coin):
    size = max(widths)
    n_0 = widths[0]
    fan_in = jnp.asarray(widths[:-1], x.dtype)
    fan_out = jnp.asarray(widths[1:], x.dtype)
    start = (
        jnp.zeros((size, 1 + columns), x.dtype)
        .at[:n_0]
        .set(jnp.concatenate([x[:, None], jnp.eye(n_0, columns, dtype=x.dtype)], axis=1))
    )

    def layer(signals, step):  # (size, 1 + columns): the signal, then the columns
        key, fan_in, width = step
        w = jnp.sqrt(2 / fan_in) * _draw(key, (size, size), law, x.dtype)
        z = jnp.where((jnp.arange(size) < width)[:, None], w @ signals, 0)
        on = jax.random.bernoulli(jax.random.fold_in(key, 1), 0.5, (size,)) if coin else z[:, 0] > 0
        signals = jnp.where(on[:, None], z, 0)
        slopes = z[:, 1:]
        squares, fourths = (jnp.sum(slopes**power) / (width * columns) for power in (2, 4))
        return signals, Columns(
            n_0 / width * jnp.sum(signals[:, 1:] ** 2, axis=0), squares, fourths
        )

    def one(key):
        _, columns_by_layer = jax.lax.scan(
            layer, start, (jax.random.split(key, len(widths) - 1), fan_in, fan_out)
        )
        # the last layer has no gates
        return columns_by_layer._replace(norms=columns_by_layer.norms[:-1])

    return _batched(one, jax.random.split(key, networks), 64)


@checked
def tilted_ntk_moments(
    key: Key,
    particles: int,
    widths: Sequence[int] | Float[Array, " L+1"],
    x: Float[Array, " n_0"],
    power: float | Array = 2.0,
    largest: int | None = None,
) -> Float[Array, " L"]:
    """Estimate ``log E Θ(x, x)^k`` of random ReLU networks of 1, …, L hidden layers, where plain means miss the tail.

    Given the network, the derivative of its output in a Gaussian direction of all Ŵ is N(0, Θ). It goes forward as a
    pair of vectors, ``a' = D W a`` and ``b' = D (W b + √(2/n) V̂ a)`` with D = 1{W a > 0}, from (x, 0), and given these
    the last layer makes it N(0, ϑ) with ``ϑ = (2/n_l) (‖a‖² + ‖b‖²)`` after l layers. So ``E Θ^k = E ϑ^k`` for k = 1,
    2, …. Particles (a, b) are moved through a layer, weighed by the growth of ϑ^k and resampled: they follow the law
    tilted by ϑ^k, under which the tail is typical, and the product of the mean weights has the mean E Θ^k at every
    number of particles. Neurons are drawn one by one, with the gates that they have; since W is Gaussian only ‖a‖²,
    a·b and ‖b‖² matter to the next layer.

    Args:
        key: random key.
        particles: how many networks are followed at once; the relative variance is about ``10 k² β / particles`` with
            β = Σ 1/n_l, and half of that is how far the mean of the logarithm is too low.
        widths: n_0, …, n_L, without the output; at least one hidden layer. An array of them is not checked, and
            networks of different widths then share one compiled program.
        x: the input.
        power: k, positive.
        largest: at least the largest hidden width; needed where widths are an array.

    Raises:
        UserError: for fewer than two widths, an input of another shape, or a power that is not positive.

    Source: our derivation; sequential Monte Carlo as in Del Moral, Feynman-Kac formulae, 2004.

    >>> logs = tilted_ntk_moments(jax.random.key(0), 4000, (4, 10, 10), jnp.ones(4), power=1.0)
    >>> bool(jnp.allclose(jnp.exp(logs), jnp.array([4.0, 6.0]), rtol=0.05))  # E Θ = 2 (L + 1) ‖x‖²/n_0
    True
    """
    if not isinstance(widths, jax.Array):
        widths = check_widths(widths, 2)
        largest = max(widths[1:])
        if jnp.shape(x) != (widths[0],):
            raise UserError(
                f"the input needs shape ({widths[0]},), the first width, got {jnp.shape(x)}"
            )
    if not isinstance(power, jax.Array) and not power > 0:
        raise UserError(f"the power of the kernel must be positive, got {power}; try 2")
    if largest is None:
        raise UserError("an array of widths needs a bound; give largest, the largest hidden width")
    x = jnp.asarray(x, jnp.result_type(x, jnp.float32))
    return _tilted(key, particles, largest, jnp.asarray(widths, x.dtype), x, power)


@partial(jax.jit, static_argnums=(1, 2))
def _tilted(key, particles, size, widths, x, power):
    # aa = ‖a‖² and ab = a·b, in units of ‖a‖² + ‖b‖²
    def layer(pairs, step):
        key, width = step
        aa, ab = pairs
        for_neurons, for_slots = jax.random.split(key)
        noise = jax.random.normal(for_neurons, (2, size, particles), x.dtype)
        length = jnp.sqrt(aa)
        along = ab / jnp.where(length > 0, length, 1)
        # V̂ a beside the part of W b that is not along W a
        across = jnp.sqrt(jnp.maximum(1 - aa - along**2, 0) + aa)
        # W a = ‖a‖ noise_0, whose sign is the gate
        open_gates = (noise[0] > 0) & (jnp.arange(size) < width)[:, None]
        a = jnp.where(open_gates, length * noise[0], 0)
        b = jnp.where(open_gates, along * noise[0] + across * noise[1], 0)
        squares = jnp.stack([jnp.sum(a**2, 0), jnp.sum(a * b, 0)])
        total = squares[0] + jnp.sum(b**2, 0)
        # ϑ_l/ϑ_{l−1} = (2/n_l) total: the 2/n_{l−1} of ϑ_{l−1} is the variance of the weights read
        weights = (2 * total / width) ** power
        # systematic: particle i gets the slots j with (j + u)/particles between its bounds in the summed weights
        bounds = jnp.cumsum(weights)
        whole = jnp.where(bounds[-1] > 0, bounds[-1], 1)
        bounds = bounds / whole * particles - jax.random.uniform(for_slots, (), x.dtype)
        ends = jnp.ceil(bounds).astype(int)
        chosen = jnp.cumsum(jnp.zeros(particles, int).at[ends].add(1, mode="drop"))
        # Sums round, so that a dead particle may seem to have a slot: the last living one before it takes it.
        living = jax.lax.cummax(jnp.where(weights > 0, jnp.arange(particles), -1))
        chosen = living[jnp.minimum(chosen, particles - 1)]
        chosen = jnp.where(chosen < 0, jnp.argmax(weights), chosen)
        aa, ab = (squares / jnp.where(total > 0, total, 1))[:, chosen]
        return (aa, ab), jnp.log(jnp.mean(weights))

    start = (jnp.ones(particles, x.dtype), jnp.zeros(particles, x.dtype))
    _, growth = jax.lax.scan(layer, start, (jax.random.split(key, len(widths) - 1), widths[1:]))
    # ϑ_0^k with ϑ_0 = (2/n_0) ‖x‖², then the mean growth of each layer
    return power * jnp.log(2 * jnp.sum(x**2) / widths[0]) + jnp.cumsum(growth)


def _batched(one, keys: Key, batch: int):
    """Map ``one`` over every key, a batch at a time; the last batch is filled up, so that one shape is compiled."""
    count = len(keys)
    keys = keys[jnp.arange(-(-count // batch) * batch) % count].reshape(-1, batch)
    samples = jax.lax.map(jax.vmap(one), keys)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:count], samples)


def _draw(key: Key, shape: tuple[int, ...], law: Array, dtype) -> Array:
    """Draw independent numbers of unit variance from a law of KURTOSIS, by index: one compilation for all."""
    u = jax.random.uniform(key, shape, dtype, -1, 1)
    inside = jnp.maximum(u, jnp.nextafter(jnp.asarray(-1, dtype), 0))  # erfinv(−1) is infinite
    laws = {
        "gaussian": lambda: math.sqrt(2) * jax.scipy.special.erfinv(inside),
        "rademacher": lambda: jnp.where(u < 0, -1, 1).astype(dtype),
        "uniform": lambda: math.sqrt(3) * u,
    }
    return jax.lax.switch(law, [laws[name] for name in KURTOSIS])


@checked
def sample_ntk(
    key: Key, networks: Count, widths: Sequence[int], x: Float[Array, " n_0"]
) -> Float[Array, " networks"]:
    """Sample Θ(x, x) of many random ReLU networks with one output, Gaussian weights and real gates.

    ``Θ = Σ_k (2/n_{k−1}) ‖a^(k−1)‖² ‖δ^(k)‖²`` with a^(0) = x, a^(k) = σ(z^(k)) and δ^(k) = ∂z^(L+1)/∂z^(k): the sum of
    squared derivatives by the Ŵ of unit variance. Forward, ``z = W a`` is Gaussian given a. Backward, W given
    ``z = W a`` is ``z aᵀ/‖a‖²`` plus Gaussian noise on the complement of a, so ``Wᵀδ = a (z·δ)/‖a‖² + √(2/n) ‖δ‖ P ε``.
    This is exactly the law of the network, at the cost of its neurons instead of its weights.

    Raises:
        UserError: for fewer than three widths, an output width other than one, or an input of another shape.

    >>> sample_ntk(jax.random.key(0), 4, (3, 8, 8, 1), jnp.ones(3)).shape
    (4,)
    """
    widths = check_widths(widths, 3)
    x = jnp.asarray(x, jnp.result_type(x, jnp.float32))
    if widths[-1] != 1 or x.shape != (widths[0],):
        raise UserError(
            f"one output and an input of shape ({widths[0]},) are needed, got {widths[-1]} and {x.shape}"
        )
    return _sample_ntk(key, networks, widths, x)


@partial(jax.jit, static_argnums=(1, 2))
def _sample_ntk(key, networks, widths, x):
    n_0, *hidden, _ = widths
    size = max(hidden)
    x_squared = jnp.sum(x**2)
    fan_in = jnp.asarray((n_0, *hidden[:-1]), x.dtype)
    width = jnp.asarray(hidden, x.dtype)

    # square = ‖a‖²: with z = √(2/n) ‖a‖ ε nothing else of a matters to the next layer
    def forward(square, step):
        noise, fan_in, width = step
        z = jnp.sqrt(2 * square / fan_in) * noise
        a = jnp.where(jnp.arange(size) < width, jnp.maximum(z, 0), 0)
        return jnp.sum(a**2), a

    def backward(delta, step):  # from δ^(k+1), a^(k) and z^(k+1) = W a^(k) to δ^(k)
        noise, a, z, width = step
        length = jnp.linalg.norm(a)
        length = jnp.where(length > 0, length, 1)
        noise = jnp.sqrt(2 / width) * jnp.linalg.norm(delta) * noise
        # Wᵀδ = P noise + a (z·δ)/‖a‖²: along a it is known from z = W a
        along = (z @ delta - a @ noise) / length
        delta = jnp.where(a > 0, noise + along * a / length, 0)
        return delta, jnp.sum(delta**2)

    def one(key):
        noise = jax.random.normal(key, (2 * len(hidden) + 1, size), x.dtype)
        ahead = noise[: len(hidden)]
        back = noise[len(hidden) : -1]
        unit = jnp.zeros(size, x.dtype).at[0].set(1)
        square, a = jax.lax.scan(forward, x_squared, (ahead, fan_in, width))  # a: (L, size)
        output = jnp.sqrt(2 * square / hidden[-1]) * noise[-1] * unit
        # δ is zero behind closed gates, and behind open ones z = a
        after = jnp.concatenate([a[1:], output[None]])
        _, deltas = jax.lax.scan(backward, unit, (back, a, after, width), reverse=True)
        signals = jnp.concatenate([x_squared[None] / n_0, jnp.sum(a**2, axis=1) / width])
        # Σ_k (2/n_{k−1}) ‖a^(k−1)‖² ‖δ^(k)‖², δ of the output being one
        return 2 * signals @ jnp.append(deltas, 1)

    return _batched(one, jax.random.split(key, networks), 256)
