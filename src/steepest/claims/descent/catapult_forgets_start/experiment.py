"""ReLU networks of one hidden layer, many at a time: their training at two step sizes, and their test errors."""

import numpy as np

from steepest.nn.types import Values

LAZY_STEP = 1.5  # γλ₀ of lazy networks
STEPS = 100  # of all networks; thrown ones are read at the same time η · steps too


def forward(u: Values, v: Values, x: Values) -> tuple[Values, Values, Values]:
    """Return the hidden layer before and after its ReLU, and the outputs √(2/m) v·relu(√(2/d) U x).

    Args:
        u: first layers of several networks, shape ``(networks, m, d)``.
        v: second layers, shape ``(networks, m)``.
        x: images of each network, shape ``(networks, images, d)``.
    """
    before = (2 / x.shape[2]) ** 0.5 * x @ u.swapaxes(1, 2)
    active = np.maximum(before, 0)
    return before, active, (2 / v.shape[1]) ** 0.5 * (active @ v[..., None])[..., 0]


def relu_slopes(u: Values, v: Values, x: Values, y: Values) -> tuple[Values, Values]:
    """Return the gradients of ½ mean (z − y)² by both layers, by hand."""
    before, active, outputs = forward(u, v, x)
    # derivative with respect to Σ_j v_j relu(·): the residual over n, times √(2/m)
    error = (outputs - y) * (2 / v.shape[1]) ** 0.5 / x.shape[1]
    back = ((before > 0) * error[..., None]).swapaxes(1, 2) @ x
    return (2 / x.shape[2]) ** 0.5 * back * v[..., None], (error[:, None] @ active)[:, 0]


def relu_tops(u: Values, v: Values, x: Values) -> Values:
    """Return the largest eigenvalue of the tangent kernel over the number of images, ``(networks,)``."""
    before, active, _ = forward(u, v, x)
    gates = (before > 0) * v[:, None]
    gram = lambda rows: rows @ rows.swapaxes(1, 2)
    # Θ = (2/m)[Σ_j σ_jσ_j' + (2/d) x·x' Σ_j v_j² g_jg_j'], the parts of v and of U
    kernel = 2 / v.shape[1] * (gram(active) + 2 / x.shape[2] * gram(x) * gram(gates))
    return np.linalg.eigvalsh(kernel / x.shape[1])[:, -1]


def errors_of_steps(
    rng: np.random.Generator,
    images: Values,
    labels: Values,
    shape: tuple[int, int, int],
    multiple: float,
    *,
    silent: bool = False,
) -> tuple[Values, Values]:
    """Train ReLU networks on images that are drawn, and return shares of the others that they get wrong.

    Lazy networks, ``(networks,)``, and catapulted ones of the same start after as many steps, and after as long a time
    η · steps, ``(networks, 2)``.

    Args:
        rng: of images and starts.
        images: all of them, shape ``(n, d)``.
        labels: ±1, shape ``(n,)``.
        shape: networks, their width, and training images of each.
        multiple: γλ₀ of catapulted networks.
        silent: whether neurons start in pairs of opposite output weights, so that networks put out nothing.
    """
    networks, width, count = shape
    order = np.stack([rng.permutation(len(images)) for _ in range(networks)])
    images = images.astype(np.float32)[order]
    labels = labels.astype(np.float32)[order]
    x = images[:, :count]
    y = labels[:, :count]
    start_u = rng.standard_normal((networks, width, x.shape[2]), np.float32)
    start_v = rng.standard_normal((networks, width), np.float32)
    if silent:
        start_u[:, width // 2 :] = start_u[:, : width // 2]
        start_v[:, width // 2 :] = -start_v[:, : width // 2]
    tops = relu_tops(start_u, start_v, x)

    def wrong(multiple: float, reads: tuple[int, ...]) -> Values:
        u = start_u.copy()
        v = start_v.copy()
        lr = (multiple / tops).astype(np.float32)
        shares = {}
        for step in range(1, max(reads) + 1):
            by_u, by_v = relu_slopes(u, v, x, y)
            u -= lr[:, None, None] * by_u
            v -= lr[:, None] * by_v
            if step in reads:
                outputs = forward(u, v, images[:, count:])[2]
                # what is not finite is wrong too
                shares[step] = 1 - (outputs * labels[:, count:] > 0).mean(1)
        return np.stack([shares[step] for step in reads], 1)

    in_time = round(STEPS * LAZY_STEP / multiple)
    with np.errstate(over="ignore", invalid="ignore"):  # narrow networks may diverge
        return wrong(LAZY_STEP, (STEPS,))[:, 0], wrong(multiple, (STEPS, in_time))
