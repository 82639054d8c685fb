"""Two-layer networks of ReLU and of its square, trained with weight decay towards zero or towards the start."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.nn.data import digits, signs
from steepest.nn.types import Values


class Setting(NamedTuple):
    """Images of two digits and their signs, with step sizes and decays for each power of the ReLU."""

    x: Values  # unit rows in the space that they span, (n, n)
    y: Values  # (n,)
    rates: Values  # η, (powers,)
    decays: Values  # λ, (powers,)


class Lanes(NamedTuple):
    """Networks of one width: power of the ReLU, step size, decay, and the share of the start that weights decay to."""

    power: Values
    rate: Values
    decay: Values
    towards: Values


class Trained(NamedTuple):
    """Networks of one width along their training.

    Attributes:
        outputs: after each of equally many steps, shape ``(lanes, records, n)``.
        kernel: tangent kernel along that of the start, ⟨Θ_t, Θ_0⟩/⟨Θ_0, Θ_0⟩, shape ``(lanes, records)``.
    """

    outputs: np.ndarray
    kernel: np.ndarray


def draw_images(key: kit.Key, classes: tuple[int, int], count: int) -> tuple[Values, Values]:
    """Return centred images of two digits, of unit length, turned into the space that they span."""
    data = signs(digits(classes, count, key))
    pixels = np.asarray(data.x, float)
    # Xᵀ = QR: rows of Rᵀ have the inner products of the images, in n coordinates
    turned = np.linalg.qr((pixels - pixels.mean(0)).T)[1].T
    return turned / np.linalg.norm(turned, axis=1, keepdims=True), np.asarray(data.y, float)


def train(
    key: kit.Key, setting: Setting, lanes: Lanes, *, width: int, records: int, between: int
) -> Trained:
    """Train networks of one width by descent on the mean of ½(f − y)², with a number of steps between records.

    Each is two copies of n^(−1/2) Σ v_j relu(⟨w_j, x⟩)^p with opposite signs, over √2: outputs start at zero, and the
    kernel is that of one.
    """
    x = jnp.asarray(setting.x)
    y = jnp.asarray(setting.y)
    dimension = x.shape[1]

    def follow(of_lane: tuple[jax.Array, Lanes]) -> tuple[jax.Array, jax.Array]:
        key, lane = of_lane

        def output(params: dict[str, jax.Array]) -> jax.Array:
            # (copies, examples, width)
            active = jnp.maximum(jnp.einsum("cnd,id->cin", params["w"], x), 0)
            active = jnp.where(lane.power == 2, active**2, active)
            plus, minus = jnp.einsum("cin,cn->ci", active, params["v"]) / jnp.sqrt(width)
            return (plus - minus) / jnp.sqrt(2)

        risk = lambda params: 0.5 * jnp.mean((output(params) - y) ** 2)
        for_w, for_v = jax.random.split(key)
        w = jax.random.normal(for_w, (width, dimension))
        v = jax.random.normal(for_v, (width,))
        start = {"w": jnp.stack([w, w]), "v": jnp.stack([v, v])}

        def step(params: dict[str, jax.Array], _: None) -> tuple[dict[str, jax.Array], None]:
            slope = jax.grad(risk)(params)
            # decay is the gradient of (λ/2) ‖θ − s θ₀‖², with s the share of the start
            moved = lambda p, g, p0: p - lane.rate * (g + lane.decay * (p - lane.towards * p0))
            return jax.tree.map(moved, params, slope, start), None

        def kernel(params: dict[str, jax.Array]) -> jax.Array:
            slopes = jax.jacrev(output)(params)
            rows = jnp.concatenate([slopes[name].reshape(len(y), -1) for name in slopes], 1)
            return rows @ rows.T

        first = kernel(start)

        def record(params: dict[str, jax.Array], _: None) -> tuple[dict[str, jax.Array], tuple]:
            params, _ = jax.lax.scan(step, params, None, length=between)
            along = (kernel(params) * first).sum() / (first**2).sum()
            return params, (output(params), along)

        return jax.lax.scan(record, start, None, length=records)[1]

    follow_all = kit.compiled(lambda *lanes: jax.lax.map(follow, lanes))
    return Trained(*map(np.asarray, follow_all(kit.keys(key, len(lanes.power)), lanes)))
