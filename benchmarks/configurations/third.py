"""A third way to what both libraries say differently: expectations over pairs by quadrature, and shorter inputs.

Neither library is asked, but for kernels without masks, in which both agree.
"""

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.configurations import inputs as given
from benchmarks.configurations.ours.networks import pooled
from steepest.nn.layers import conv, dense

Function = Callable[[np.ndarray], np.ndarray]
FAR = 9.0  # standard deviations up to which Gaussian densities are integrated
NODES, MASSES = np.polynomial.legendre.leggauss(40)
PIECES = 6  # at least, between two kinks


def rule(breaks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of Gauss and Legendre against the standard normal law, cut at breaks ``(…, B)``."""
    inside = np.sort(np.clip(breaks, -FAR, FAR), -1)
    even = np.broadcast_to(np.linspace(-FAR, FAR, PIECES + 1), (*breaks.shape[:-1], PIECES + 1))
    edges = np.sort(np.concatenate([inside, even], -1), -1)
    half = np.diff(edges)[..., None] / 2
    z = half * NODES + (edges[..., :-1] + edges[..., 1:])[..., None] / 2
    weights = half * MASSES * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    flat = (*breaks.shape[:-1], -1)
    return z.reshape(flat), weights.reshape(flat)


def pair_mean(f: Function, kinks: Sequence[float], a: float, b: float, c: float) -> float:
    """Return E f(u)f(v) of variances a and b and covariance c, one integral inside the other."""
    t = np.array(kinks, float)
    z, weights = rule(t / np.sqrt(a))
    u = np.sqrt(a) * z
    left = max(b - c**2 / a, 0.0)
    if left < 1e-12 * b:
        return float((weights * f(u) * f(c / a * u)).sum())
    w, inner = rule((t - (c / a * u)[:, None]) / np.sqrt(left))
    v = (c / a * u)[:, None] + np.sqrt(left) * w
    return float((weights * f(u) * (inner * f(v)).sum(-1)).sum())


def pairs(f: Function, kinks: Sequence[float], k: np.ndarray) -> np.ndarray:
    """Return the expectations for all pairs of a covariance matrix."""
    n = range(len(k))
    rows = [[pair_mean(f, kinks, k[i, i], k[j, j], k[i, j]) for j in n] for i in n]
    return np.array(rows)


def between(
    f: Function, slope: Function, kinks: Sequence[float] = (), layers: int = 2
) -> dict[str, np.ndarray]:
    """Return the kernels of ``between`` (two layers) or ``once`` of the activations."""
    x = given.VECTORS
    k = 1.69 * x @ x.T / x.shape[1] + 0.04
    theta = k
    for layer in range(layers):
        activated = pairs(f, kinks, k)
        theta = pairs(slope, kinks, k) * theta
        c_w, c_b = (1.0, 0.0) if layer == layers - 1 else (1.69, 0.04)
        k = c_w * activated + c_b
        theta = k + c_w * theta
    return {"nngp": k, "ntk": theta}


def shorter(*layers: object, lengths: Sequence[int]) -> dict[str, np.ndarray]:
    """Return kernels of the lines with themselves, cut to what exists; NaN for pairs and where lengths do not fit."""
    entries = {name: np.full((3, 3), np.nan) for name in ("nngp", "ntk")}
    for i, exists in enumerate(given.LINE_MASK.sum(1)):
        if exists in lengths:
            line = given.LINES[i : i + 1, :exists]
            kernels = pooled(dense(1), "relu", *layers, dense(1), "relu", x=line)
            for name, kernel in kernels.items():
                entries[name][i, i] = kernel[0, 0]
    return entries


def hermite(x: np.ndarray) -> np.ndarray:
    return (x**4 - 6 * x**2 + 3) / np.sqrt(24)


def hermite_slope(x: np.ndarray) -> np.ndarray:
    return (4 * x**3 - 12 * x) / np.sqrt(24)


def elu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0.0)))


def elu_slope(x: np.ndarray) -> np.ndarray:
    return np.exp(np.minimum(x, 0.0))


def tanh_slope(x: np.ndarray) -> np.ndarray:
    return 1 / np.cosh(x) ** 2


def hard_tanh(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -1, 1)


def hard_tanh_slope(x: np.ndarray) -> np.ndarray:
    return (np.abs(x) < 1) * 1.0


def square_relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0.0) ** 2


def square_relu_slope(x: np.ndarray) -> np.ndarray:
    return 2 * np.maximum(x, 0.0)


REFERENCES = {
    "activation/tanh by quadrature": lambda: between(np.tanh, tanh_slope),
    "activation/hard tanh by quadrature": lambda: between(hard_tanh, hard_tanh_slope, (-1.0, 1.0)),
    "activation/elu by quadrature": lambda: between(elu, elu_slope, (0.0,)),
    "activation/rectified monomial": lambda: between(
        square_relu, square_relu_slope, (0.0,), layers=1
    ),
    "activation/Hermite polynomial, other variances": lambda: between(
        hermite, hermite_slope, layers=1
    ),
    "mask/convolution, no padding": lambda: shorter(conv(1, 2, padding="none"), lengths=(6, 4, 3)),
    "mask/convolution, stride": lambda: shorter(conv(1, stride=2), lengths=(6, 4)),
}
"""By the identity of a configuration; entries that are NaN are not compared."""
