"""The experiment of funk-hecke: points spread evenly, what neurons feel of each degree, and the flow of outputs."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from steepest.kernels import harmonic_count, zonal
from steepest.linalg import sequential
from steepest.nn.types import Values

DEGREES = (0, 1, 2, 3, 4, 5)
FELT = (0, 1, 2, 4)  # degrees that ReLU has
TIMES = np.concatenate([[0.0], np.geomspace(0.1, 1e7, 600)])
UNEVEN = 2.0  # length of one axis of a changed world's inputs
BIAS = 0.5  # of the neurons of another
RISE = 1e-5  # of the cosine, for slopes
SHOWN = 60  # neurons drawn in the figure


class Felt(NamedTuple):
    """What neurons feel of each degree, and what is left of it along the flow.

    Attributes:
        outer: λ as output weights feel it, ``(degrees,)``.
        inner: as hidden weights feel it; zero at degree 0, which has no gradient.
        mixed: the rest of what they feel, in units of ‖Y‖, the larger of both.
        course: what is left at all times, ``(degrees, times)``.
        uneven: outer, inner and mixed at inputs of which one axis is twice as long, ``(3, degrees)``.
        biased: the same of neurons with a bias.
        biased_course: what these leave at all times.
        at_neuron: Y of degree 2 at some neurons, ``(SHOWN,)``.
        at_output: what their output weights feel of it.
    """

    outer: Values
    inner: Values
    mixed: Values
    course: Values
    uneven: Values
    biased: Values
    biased_course: Values
    at_neuron: Values
    at_output: Values


@sequential
def look(
    poles: Values, rng: np.random.Generator, inputs: int, neurons: int, stretch: float
) -> Felt:
    """Spread inputs and neurons evenly, and return what the neurons feel.

    Args:
        poles: of the targets, ``(targets, d)``; the first is that of what is felt, the flow is of all.
        rng: of the scrambling.
        inputs: how many.
        neurons: how many.
        stretch: of one axis, before inputs are put on the sphere.
    """
    d = poles.shape[1]
    x = evenly(inputs, d, rng)
    x[:, 0] *= stretch
    x = on_sphere(x)
    w = evenly(neurons, d, rng)
    # changed worlds take fewer, and are far enough from the law to need no more
    few = x[: max(256, inputs // 4)]
    longer = few.copy()
    longer[:, 0] *= UNEVEN
    fewer = w[: neurons // 4]
    half = x[: inputs // 2]
    parts = (sizes(d)[:, None, None] * zonal(d, DEGREES, poles @ half.T)).swapaxes(0, 1)
    y = sizes(d)[2] * zonal(d, (2,), x @ poles[0])[0]
    return Felt(
        *feel(x, w, poles[0]),
        flow(np.maximum(half @ w.T, 0.0), parts),
        np.stack(feel(on_sphere(longer), fewer, poles[0])),
        np.stack(feel(few, fewer, poles[0], BIAS)),
        flow(np.maximum(half @ fewer.T + BIAS, 0.0), parts),
        sizes(d)[2] * zonal(d, (2,), w[:SHOWN] @ poles[0])[0],
        y @ np.maximum(x @ w[:SHOWN].T, 0.0) / len(x),
    )


def sizes(d: int) -> Values:
    """Return √N_l of all degrees: ``√N_l P_l(⟨u, x⟩)`` has mean square one."""
    return np.sqrt([harmonic_count(d, degree) for degree in DEGREES])


def feel(x: Values, w: Values, pole: Values, bias: float = 0.0) -> tuple[Values, Values, Values]:
    """Return what neurons feel of each degree along that degree, by output and hidden weights, and the rest.

    Output weights feel ``−∂L/∂a_j`` of the residual Y_l, to be λ_l Y_l(w_j). Hidden weights feel ``−∂L/∂w_j`` over
    a_j, whose part along the sphere is to be λ_l times the gradient of Y_l, ``√N_l P_l'(⟨u, w⟩)(u − ⟨u, w⟩ w)``;
    its slope P_l' is taken by a difference. The rest is the root mean square over neurons of what differs from the
    best multiple, the larger of both, in units of that of Y_l and of its gradient.
    """
    d = x.shape[1]
    size = sizes(d)
    y = size[:, None] * zonal(d, DEGREES, x @ pole)
    signal = x @ w.T + bias
    outputs = y @ np.maximum(signal, 0.0) / len(x)
    gates = (signal > 0).astype(float)
    cosine = w @ pole
    # ∇_w ⟨u, w⟩ along the sphere
    along = pole - cosine[:, None] * w
    at_neuron = size[:, None] * zonal(d, DEGREES, cosine)
    rise = zonal(d, DEGREES, cosine + RISE) - zonal(d, DEGREES, cosine - RISE)
    outer = np.zeros(len(DEGREES))
    inner = np.zeros(len(DEGREES))
    mixed = np.zeros(len(DEGREES))
    for degree in DEGREES:
        outer[degree], mixed[degree] = best_multiple(outputs[degree], at_neuron[degree])
        if degree == 0:
            continue
        pull = gates.T @ (y[degree][:, None] * x) / len(x)
        # without the part along w, which changes the neuron's length alone
        pull -= (pull * w).sum(1)[:, None] * w
        slope = size[degree] * rise[degree][:, None] / (2 * RISE) * along
        inner[degree], aside = best_multiple(pull, slope)
        mixed[degree] = max(mixed[degree], aside)
    return outer, inner, mixed


def flow(activity: Values, y: Values) -> Values:
    """Return what is left of each degree at all times when output weights follow the gradient flow.

    Every target ``y[p]``, of shape ``(degrees, n)``, is the sum of its degrees; what is left is averaged over
    targets. ``f = Φ a / m`` and ``da/dt = Φᵀ(y − f)/n``, solved by eigenvectors.
    """
    n, m = activity.shape
    rates, modes = np.linalg.eigh(activity.T @ activity / (n * m))
    rates = np.maximum(rates, 1e-30)
    # a(t) = Σ_k (1 − e^(−r_k t))/r_k v_k v_kᵀ Φᵀy/n; expm1 keeps the digits of slow modes
    grown = -np.expm1(-rates * TIMES[:, None]) / rates
    shares = []
    for parts in y:
        target = parts.sum(0)
        pushed = modes.T @ (activity.T @ target / n)
        read = modes.T @ (activity.T @ parts.T / n)
        # ⟨part, y − f(t)⟩/n, (degrees, times)
        left = (parts @ target / n)[:, None] - (grown * pushed @ read / m).T
        shares.append(left / left[:, :1])
    return np.mean(shares, axis=0)


def evenly(count: int, d: int, rng: np.random.Generator) -> Values:
    """Spread points evenly over the sphere S^{d−1}: a scrambled Sobol sequence through the normal quantile."""
    bits = int(np.ceil(np.log2(count)))
    uniform = qmc.Sobol(d, rng=rng).random_base2(bits)[:count]
    # rows of independent normals are isotropic; quantiles of 0 and 1 would be infinite
    return on_sphere(ndtri(np.clip(uniform, 1e-12, 1 - 1e-12)))


def on_sphere(x: Values) -> Values:
    """Give every row length one."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def rms(values: Values) -> Values:
    """Return the root mean square over the last axis, kept."""
    return np.sqrt((values**2).mean(-1, keepdims=True))


def best_multiple(values: Values, of: Values) -> tuple[float, float]:
    """Return the factor of the nearest multiple of an array, and the distance from it over the array's size."""
    square = float((of**2).sum())
    factor = float((values * of).sum()) / square
    return factor, float(np.sqrt(((values - factor * of) ** 2).sum() / square))


def falling_times(left: Values) -> Values:
    """Return when each felt degree has fallen to 1/e, shape ``(seeds, felt)``; infinite if it has not."""
    below = left[:, FELT] < np.exp(-1)
    after = below.argmax(-1)
    times = np.full(below.shape[:2], np.inf)
    for seed, place in zip(*np.nonzero(below.any(-1)), strict=True):
        j = after[seed, place]
        high = left[seed, FELT[place], j - 1]
        low = left[seed, FELT[place], j]
        share = (high - np.exp(-1)) / (high - low)
        times[seed, place] = TIMES[j - 1] + share * (TIMES[j] - TIMES[j - 1])
    return times
