"""Small two-layer ReLU networks, trained until their neurons have selected."""

import numpy as np

from steepest.claims.features.alignment_time.sets import Sets, sees_own, unit
from steepest.nn.types import Values

STEP = 0.005  # of the training, times the fastest rate of a neuron that still selects
LONGEST = 40_000  # steps of a training
TURN = 2.0  # the time ‖x₊‖ t over which neurons that have selected are watched


def train(
    sets: Sets, scale: float, *, turn: bool = False, every: bool = False
) -> tuple[np.ndarray, np.ndarray, float]:
    """Train a balanced two-layer ReLU network on each set, on the summed exponential loss by the midpoint rule.

    Args:
        sets: examples and directions of the start.
        scale: ε, the norm of every neuron at the start.
        turn: whether to go on until neurons that have selected have been watched for ``TURN``.
        every: whether neurons that see no own example are waited for too.

    Returns:
        When neurons have selected, infinite where they did not; the rate at which tan(θ/2) falls after that, zero
        where it was not watched, both ``(sets, neurons)``; and the share of awaited neurons that are done.
    """
    x, y, u, sign = sets
    w = scale * u
    v = scale * sign
    z = y[:, None, :] * sign[..., None]  # (sets, neurons, n)
    real = (np.abs(x).sum(-1) > 0)[:, None]
    awaited = np.ones(sign.shape, bool) if every else sees_own(sets)
    # x₊ = Σ x_i over the class: once all its gates are open, and no other is, w turns towards it
    pulls = np.einsum("sjn,snd->sjd", np.maximum(z, 0) * real, x)
    length = np.linalg.norm(pulls, axis=-1)
    target = pulls / np.maximum(length, 1e-300)[..., None]
    clock = np.zeros(len(x))
    selected = np.full(sign.shape, np.inf)
    first = np.zeros((2, *sign.shape))  # time and log tan(θ/2) at the first reading after selection
    rates = np.zeros(sign.shape)
    selected[_least(w, x, z, real) > 0] = 0.0
    left = awaited & np.isinf(selected)
    for _ in range(LONGEST):
        watched = awaited & (rates == 0) if turn else left
        going = watched.any(-1)
        if not going.any():
            break
        pull, grow = _forces(w, v, x, y)
        # ‖w'‖/‖w‖ of balanced neurons, which keep |v| = ‖w‖
        size = np.where(watched, np.linalg.norm(pull, axis=-1) / np.abs(v), 0.0).max(-1)
        step = np.where(going, STEP / np.maximum(size, 1e-300), 0.0)
        start = w
        w, v = _midpoint(w, v, pull, grow, step, x, y)
        least = _least(w, x, z, real)
        new = left & (least > 0)
        if new.any():
            within = np.minimum(_until(start, pull, x, z, real), step[:, None])
            selected = np.where(new, clock[:, None] + within, selected)
        clock = clock + step
        left &= ~new
        if turn:
            angle = _log_tangent(w, target)
            now = np.stack([np.broadcast_to(clock[:, None], sign.shape), angle])
            done = np.isfinite(selected)
            fresh = done & (first[0] == 0)
            first = np.where(fresh, now, first)
            elapsed = now[0] - first[0]
            end = done & ~fresh & (rates == 0) & (elapsed * length >= TURN)
            with np.errstate(invalid="ignore", divide="ignore"):
                rates = np.where(end, (first[1] - now[1]) / elapsed, rates)
    return selected, rates, 1 - (watched & awaited).sum() / awaited.sum()


def _forces(w: Values, v: Values, x: Values, y: Values) -> tuple[np.ndarray, np.ndarray]:
    """Return minus the gradients of the summed exponential loss, ``(sets, neurons, d)`` and ``(sets, neurons)``."""
    products = w @ np.swapaxes(x, -1, -2)
    outputs = np.maximum(products, 0)
    slopes = y * np.exp(-y * np.einsum("sj,sjn->sn", v, outputs))
    # −∂L/∂w_j = v_j Σ_i 1[⟨w_j, x_i⟩ > 0] y_i e^(−y_i f_i) x_i
    pull = v[..., None] * (((products > 0) * slopes[:, None]) @ x)
    return pull, np.einsum("sjn,sn->sj", outputs, slopes)


def _midpoint(
    w: Values, v: Values, pull: Values, grow: Values, step: Values, x: Values, y: Values
) -> tuple[np.ndarray, np.ndarray]:
    """Return both layers after a step of the midpoint rule, given the forces at its start."""
    # forces at the middle of the step, for an error of the third order in each
    half = step[:, None] / 2
    pull, grow = _forces(w + half[..., None] * pull, v + half * grow, x, y)
    return w + step[:, None, None] * pull, v + step[:, None] * grow


def _least(w: Values, x: Values, z: Values, real: Values) -> np.ndarray:
    """Return the least ⟨u, s_i⟩ of every neuron, ``(sets, neurons)``: positive from selection on."""
    products = np.where(real, z * (w @ np.swapaxes(x, -1, -2)), np.inf)
    return products.min(-1) / np.linalg.norm(w, axis=-1)


def _until(w: Values, pull: Values, x: Values, z: Values, real: Values) -> np.ndarray:
    """Return when the last gate is crossed, on a straight line from w: after it others pull, which is a kink."""
    across = np.swapaxes(x, -1, -2)
    products = z * (w @ across)
    rates = z * (pull @ across)
    waits = np.where(real & (products <= 0), -products / np.maximum(rates, 1e-300), 0.0)
    return waits.max(-1)


def _log_tangent(w: Values, target: Values) -> np.ndarray:
    """Return log tan(θ/2), θ the angle of every neuron to its target."""
    u = unit(w)
    # ‖u − t‖ = 2 sin(θ/2) and ‖u + t‖ = 2 cos(θ/2): exact at small angles, unlike the cosine
    near = np.linalg.norm(u - target, axis=-1)
    return np.log(np.maximum(near, 1e-300) / np.linalg.norm(u + target, axis=-1))
