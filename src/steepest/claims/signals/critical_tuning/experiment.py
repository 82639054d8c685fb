"""Inputs through random networks: the C_W that keeps small changes, moments by layer, and growth off criticality."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from steepest import kit
from steepest.nn.activations import Activation

GROUPS = 10  # networks are averaged in groups before a logarithm is taken


class Case(NamedTuple):
    """One activation at one initialization, with the inputs that are sent through it, shape ``(m, 2)``."""

    activation: Activation
    c_w: float
    c_b: float
    inputs: kit.Values


class Scan(NamedTuple):
    """One activation at C_W around its critical one, ``(points,)``, with inputs for each, ``(points, 3, 2)``."""

    activation: Activation
    c_w: kit.Values
    c_b: float
    inputs: kit.Values


class Sizes(NamedTuple):
    """How many networks are drawn for the critical cases, scans and cases off criticality, and of which shape."""

    networks: int
    scan_networks: int
    off_networks: int
    width: int
    depth: int
    layers: int


def sample(
    key: kit.Key, sizes: Sizes, critical: list[Case], scans: list[Scan], off: Scan
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Return moments of each critical case, and changes of length and direction in each scan and off criticality."""
    for_critical, for_scans, for_off = kit.keys(key, 3)
    moments = []
    for case, seed in zip(critical, kit.keys(for_critical, len(critical)), strict=True):
        shape = (sizes.networks, 2, sizes.width)
        # single precision is enough, and twice as fast, where nothing small is a difference of large numbers
        noise = draw_noise(seed, sizes.depth + 1, shape, np.float32)
        pairs = sample_grams(noise, case)
        moments.append(pairs[..., (0, 1, 0), (0, 1, 1)])  # K_αα, K_ββ, K_αβ

    def changes(noise: list[np.ndarray], scan: Scan) -> np.ndarray:
        """Return changes at each C_W, from the same random numbers."""
        points = zip(scan.c_w, scan.inputs, strict=True)
        cases = [Case(scan.activation, float(c_w), scan.c_b, inputs) for c_w, inputs in points]
        return perturbations(np.stack([sample_grams(noise, case) for case in cases]))

    few = lambda key, networks: list(draw_noise(key, sizes.layers + 1, (networks, 3, sizes.width)))
    for_all = few(for_scans, sizes.scan_networks)
    scanned = [changes(for_all, scan) for scan in scans]
    return np.stack(moments), scanned, changes(few(for_off, sizes.off_networks), off)


def draw_noise(
    key: kit.Key, layers: int, shape: tuple[int, int, int], dtype: Any = np.float64
) -> Iterator[np.ndarray]:
    """Draw the noise of each layer, of shape ``(networks, m, width)``."""
    rng = kit.numpy_generator(key)
    return (rng.standard_normal(shape, dtype) for _ in range(layers))


def sample_grams(noise: Iterable[np.ndarray], case: Case) -> np.ndarray:
    """Return covariances of the inputs in many networks, ``(networks, layers, m, m)``.

    Rows of Gaussian weights that are applied to known activations are Gaussian, so that no weights are needed: each
    layer is drawn from its law given the one below. In NumPy, as compiling takes longer than drawing.

    Args:
        noise: of each layer, ``(networks, m, width)``.
        case: the initialization, and inputs ``(m, 2)``.
    """
    sigma: Callable = kit.compiled(case.activation.function)
    # inputs have two coordinates: weights of the first layer have variance C_W/2
    covariance = (case.c_b + case.c_w / 2 * case.inputs @ case.inputs.T)[None]
    grams = []
    for drawn in noise:
        width = drawn.shape[-1]
        # given the layer below, z of a neuron is N(0, Σ): z = L ξ with LLᵀ = Σ
        z = triangular_root(covariance).astype(drawn.dtype) @ drawn
        grams.append(z @ z.swapaxes(1, 2) / width)
        active = np.asarray(sigma(z))
        # Σ of the next layer given this one: C_b + (C_W/n) Σ_j σ(z_αj) σ(z_βj)
        covariance = case.c_b + case.c_w / width * (active @ active.swapaxes(1, 2))
    return np.stack(grams, 1)


def triangular_root(covariance: np.ndarray) -> np.ndarray:
    """Return lower triangular roots of covariances, singular ones too: they move little as the covariance does."""
    values, vectors = np.linalg.eigh(covariance.astype(float))
    # Σ = VΛVᵀ = AᵀA with A = Λ^½Vᵀ; from A = QR then Σ = RᵀR, where Cholesky would need Σ > 0
    rows = (vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]).swapaxes(-1, -2)
    upper = np.linalg.qr(rows, mode="r")
    # R is unique up to signs of its rows: with a diagonal ≥ 0 it does not jump as Σ moves
    signs = np.where(np.diagonal(upper, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    return (signs[..., None] * upper).swapaxes(-1, -2)


def perturbations(grams: np.ndarray) -> np.ndarray:
    """Return means over groups of networks of how much longer and how much turned the inputs are.

    Args:
        grams: covariances of the input, a longer one and a turned one, ``(points, networks, layers, 3, 3)``.

    Returns:
        The difference of variances, and the squared distance, ``(direction, point, group, layer)``.
    """
    points, networks = grams.shape[:2]
    size = networks // GROUPS
    # (points, groups, layers, 3, 3)
    grouped = grams[:, : size * GROUPS].reshape(points, GROUPS, size, *grams.shape[2:]).mean(2)
    # along the signal: K_11 − K_00, which a layer multiplies by χ∥ to first order
    along = np.abs(grouped[..., 1, 1] - grouped[..., 0, 0])
    # across it: E(z_0 − z_2)², which it multiplies by χ⊥
    across = grouped[..., 0, 0] + grouped[..., 2, 2] - 2 * grouped[..., 0, 2]
    return np.stack([along, across])


def located(c_w: np.ndarray, paths: np.ndarray) -> np.ndarray:
    """Return the C_W where a perturbation neither grows nor shrinks, one a group.

    The logarithm of its growth over all layers is interpolated by a parabola in log C_W.

    Args:
        c_w: of the scan.
        paths: sizes of the perturbation, ``(scan, group, layer)``.
    """
    growth = np.log(paths[..., -1] / paths[..., 0]).T
    centre = np.exp(np.log(c_w).mean())
    neutral = []
    for values in growth:
        second, first, zeroth = np.polyfit(np.log(c_w / centre), values, 2)
        # the root that stays where the parabola is a line; noise may leave a narrow network without a real one
        root = -2 * zeroth / (first + np.sqrt(max(first**2 - 4 * second * zeroth, 0.0)))
        neutral.append(centre * np.exp(root))
    return np.array(neutral)
