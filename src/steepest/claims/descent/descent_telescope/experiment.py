"""Descent of two-layer networks on two digits, of one example, and of logistic regression."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import descend, telescope
from steepest.nn.losses import logistic

REFERENCES = (
    "8 downhill from the start",
    "8 from the start, at random",
    "after one step",
    "after ten steps",
    "the end",
    "trained on the start's features",
)
FROZEN = 5  # the last of them
FROZEN_LR = 4.0  # of the training on frozen features, whose risk has curvature ¼ at most
LATE = 10  # steps
MARGINS = np.linspace(-4.0, 4.0, 161)
"""Margins of the one example at the start."""
ASIDE = np.array([-0.01, 0.01, 0.1, 1.0])
"""References of the one example: how far they are from the start."""

NETWORKS = {
    "left": "seed step_size reference step",
    "inner": "seed step_size reference step",
    "squares": "seed step_size reference step",
    "risk": "seed step_size step",
    "reference_risk": "seed step_size reference step",
    "distance": "seed step_size reference",
}


class Setting(NamedTuple):
    """Unit inputs ``(n, d)``, labels ±1 ``(n,)`` and one key a network."""

    x: np.ndarray
    y: np.ndarray
    keys: kit.Key


def follow_networks(
    setting: Setting, width: int, steps: int, step_sizes: Sequence[float]
) -> dict[str, tuple[str, np.ndarray]]:
    """Train the inner layer of networks of ReLUs, and of tanh neurons, at each step size from one start each.

    Arrays are those of ``NETWORKS``, and the same with ``tanh_`` before their names.
    """
    signs_out = np.where(np.arange(width) % 2, -1.0, 1.0) / np.sqrt(width)
    x = setting.x
    labels = jnp.asarray(setting.y)

    def network(w: jax.Array, smooth: jax.Array) -> jax.Array:
        """Return the outputs of one network, of tanh neurons where ``smooth`` and of ReLUs elsewhere."""
        before = x @ w.T
        return jnp.where(smooth, jnp.tanh(before), jax.nn.relu(before)) @ signs_out

    def follow(seed: kit.Key) -> dict[str, jax.Array]:
        for_start, for_reference = jax.random.split(seed)
        start = jax.random.normal(for_start, (width, x.shape[1]))
        aside = jax.random.normal(for_reference, start.shape)
        fitted = _fit_frozen(start, x, labels, signs_out, steps)

        def lane(choice: tuple[jax.Array, jax.Array]) -> dict[str, jax.Array]:
            lr, smooth = choice
            risk = lambda w: logistic(labels * network(w, smooth)).mean()
            path = descend(risk, start, optax.sgd(lr), steps, observe={"w": lambda w: w})
            points = path.observed["w"]
            references = _references(start, aside, points, fitted)
            sums = jax.vmap(lambda reference: telescope(risk, points, reference))(references)

            def linearized(point: jax.Array) -> jax.Array:
                """Return the risks of all references on the features at one point, ``(references,)``."""
                # ⟨∇f(W_t), ·⟩: ReLU is of degree one in W, so that its expansion has no other term
                tangent = jax.linearize(lambda w: network(w, smooth), point)[1]
                return jax.vmap(lambda w: logistic(labels * tangent(w)).mean())(references)

            return {
                "left": sums.left,
                "inner": sums.inner,
                "squares": sums.squares,
                "risk": path.risk[:-1],
                "reference_risk": jax.lax.map(linearized, points[:-1]).T,
                "distance": ((start - references) ** 2).sum((1, 2)),
            }

        lanes = (
            jnp.tile(jnp.asarray(step_sizes), 2),
            jnp.repeat(jnp.array([False, True]), len(step_sizes)),
        )
        return jax.lax.map(lane, lanes)

    lanes = kit.compiled(lambda seeds: jax.lax.map(follow, seeds))(setting.keys)
    count = len(step_sizes)
    arrays = {name: np.asarray(values) for name, values in lanes.items()}
    relu = {name: (dims, arrays[name][:, :count]) for name, dims in NETWORKS.items()}
    tanh = {f"tanh_{name}": (dims, arrays[name][:, count:]) for name, dims in NETWORKS.items()}
    return relu | tanh


def _fit_frozen(
    start: jax.Array, x: np.ndarray, labels: jax.Array, signs_out: np.ndarray, steps: int
) -> jax.Array:
    """Train a layer of ReLUs on the features of its start."""
    active = x @ start.T > 0
    risk = lambda w: logistic(labels * ((active * (x @ w.T)) @ signs_out)).mean()
    return descend(risk, start, optax.sgd(FROZEN_LR), steps, record=steps).params


def _references(
    start: jax.Array, aside: jax.Array, points: jax.Array, fitted: jax.Array
) -> jax.Array:
    """Return the layers that ``REFERENCES`` names, from a descent and a random direction."""
    downhill = start - points[1]
    late = min(LATE, len(points) - 1)
    return jnp.stack(
        [
            start - 8 * downhill / jnp.linalg.norm(downhill),
            start + 8 * aside / jnp.linalg.norm(aside),
            points[1],
            points[late],
            points[-1],
            fitted,
        ]
    )


def least_of_one_example(lr: float, length: float) -> float:
    """Return the largest a with ‖W₁ − W̄‖² + aηR(W₀) ≤ ‖W₀ − W̄‖² + 2ηR(W̄) in one step from every margin.

    Args:
        lr: η.
        length: ‖x‖ of the example. The network is one linear neuron, f = ⟨w, x⟩, and moves along x alone.
    """
    start = MARGINS[:, None] / length
    reference = start + ASIDE
    risk = lambda w: np.logaddexp(0.0, -length * w)
    after = start + lr * length / (1 + np.exp(length * start))  # σ(−‖x‖w), minus the slope
    # the a at which both sides are equal is this over ηR(W₀)
    gained = (start - reference) ** 2 - (after - reference) ** 2 + 2 * lr * risk(reference)
    return float((gained / (lr * risk(start))).min())


def regress(x: np.ndarray, y: np.ndarray, steps: int, slowdown: float) -> np.ndarray:
    """Descend on logistic regression with η ≤ 1/β, and compare with references W̄ on its own path.

    Returns:
        For W̄ after 2, …, T steps the smallest (‖W_0 − W̄‖² − ‖W_t − W̄‖²)/(ηt (R(W_t) − R(W̄))) over the t before
        it, shape ``(T − 1,)``.
    """
    z = y[:, None] * x
    # η = 1/β: the logistic loss has curvature ¼ at most, so that β ≤ λ_max(zᵀz/n)/4
    lr = 4 / np.linalg.eigvalsh(z.T @ z / len(z))[-1] / slowdown
    points = [np.zeros(x.shape[1])]
    for _ in range(steps):
        points.append(points[-1] + lr * (z / (1 + np.exp(z @ points[-1]))[:, None]).mean(0))
    path = np.array(points)
    risk = np.logaddexp(0, -path @ z.T).mean(1)
    squares = (path**2).sum(1)
    distance = squares[:, None] + squares - 2 * path @ path.T  # ‖W_s − W_t‖², (T + 1, T + 1)
    t = np.arange(1, steps + 1)[:, None]
    gained = distance[:1] - distance[1:]
    lower = risk[1:, None] - risk
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(t < np.arange(steps + 1), gained / (lr * t * lower), np.inf)
    return ratio.min(0)[2:]
