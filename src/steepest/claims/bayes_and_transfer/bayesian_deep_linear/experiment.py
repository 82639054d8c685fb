"""Weights of deep linear networks from their posterior over interpolants, and evidences from their prior."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.bayes import Slices, elliptical_slice, limit_scale, posterior_scale
from steepest.claim import (
    Arrays,
    Check,
    Count,
    Curve,
    Key,
    Point,
    Positive,
    Prediction,
    Seeds,
    Values,
    equal,
    keys,
    predicted_curve,
)

EVERY = 5
"""Sweeps from one record to the next."""


class Data(NamedTuple):
    """Noise-free data, scaled to a given size A = n_0‖θ_∥‖²/P.

    Attributes:
        x: inputs, one a column, shape ``(n_0, P)``.
        y: targets, shape ``(P,)``.
        inverse: pseudo-inverse of x, shape ``(P, n_0)``.
        conditioning: smallest over largest singular value of x.
    """

    x: Values
    y: Values
    inverse: Values
    conditioning: float

    @property
    def interpolant(self) -> Values:
        """Return θ_∥, the least interpolant, shape ``(n_0,)``."""
        return self.y @ self.inverse


def data_of_size(x: Values, y: Values, size: float) -> Data:
    """Return data with targets scaled so that n_0‖θ_∥‖²/P is ``size``."""
    inverse = np.linalg.pinv(x)
    spectrum = np.linalg.svd(x, compute_uv=False)
    unscaled = len(x) * ((y @ inverse) ** 2).sum() / len(y)
    return Data(x, y * np.sqrt(size / unscaled), inverse, float(spectrum[-1] / spectrum[0]))


class Shape(NamedTuple):
    """Where the entries of W^(L+1), …, W^(2) lie in one vector of weights, and their prior standard deviations.

    Networks of different shapes fill arrays of one shape, so that one program serves them. Where a matrix has no entry
    the place is the one behind the last weight, which holds zero; what is no layer is left out of the product.

    Attributes:
        deviations: 1/√fan-in, shape ``(weights,)``; zero beyond a network's own weights.
        top: places of W^(L+1), shape ``(n,)``.
        inner: places of W^(L), …, W^(2), shape ``(layers, n, n)``.
        present: whether there is such a layer, shape ``(layers,)``.
    """

    deviations: Values
    top: Values
    inner: Values
    present: Values


def padded(architectures: Sequence[Sequence[int]]) -> Shape:
    """Return the shapes of networks with these hidden widths, each array with an axis of networks in front."""
    networks = len(architectures)
    layers = max(map(len, architectures)) - 1
    widest = max(max(widths) for widths in architectures)
    weights = max(widths[-1] + sum(n * m for n, m in pairwise(widths)) for widths in architectures)
    shape = Shape(
        np.zeros((networks, weights)),
        np.full((networks, widest), weights),
        np.full((networks, layers, widest, widest), weights),
        np.zeros((networks, layers), bool),
    )
    for i, widths in enumerate(architectures):
        shape.top[i, : widths[-1]] = np.arange(widths[-1])
        shape.deviations[i, : widths[-1]] = widths[-1] ** -0.5
        first = widths[-1]
        for k, (rows, columns) in enumerate(pairwise(widths[::-1])):
            places = first + np.arange(rows * columns)
            shape.inner[i, k, :rows, :columns] = places.reshape(rows, columns)
            shape.deviations[i, places] = columns**-0.5
            shape.present[i, k] = True
            first += rows * columns
    return shape


def product_row(weights: jax.Array, shape: Shape) -> jax.Array:
    """Return v = W^(L+1) ⋯ W^(2), shape ``(n,)``, of which only the first n_1 entries are not zero."""
    entries = jnp.append(weights, 0.0)

    def layer(v: jax.Array, one: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        places, is_layer = one
        return jnp.where(is_layer, v @ entries[places], v), None

    inner = (jnp.asarray(shape.inner), jnp.asarray(shape.present))
    return jax.lax.scan(layer, entries[jnp.asarray(shape.top)], inner)[0]


def sample_rows(shape: Shape, points: float, size: Any, key: Key, sweeps: int, burn: int) -> Slices:
    """Sample W^(2), …, W^(L+1) from their posterior, W^(1) integrated, and record the product row v.

    Given v the outputs are N(0, ‖v‖² XᵀX/n_0), so that the logarithm of the likelihood is
    −(P/2)(log‖v‖² + A/‖v‖²) up to a constant.
    """

    def log_likelihood(weights: jax.Array) -> jax.Array:
        square = (product_row(weights, shape) ** 2).sum()
        return -points / 2 * (jnp.log(square) + size / square)

    def sample_prior(key: Key) -> jax.Array:
        # single precision halves the time, and rounds at 1e-7
        return shape.deviations * jax.random.normal(key, shape.deviations.shape, jnp.float32)

    return elliptical_slice(
        log_likelihood,
        sample_prior,
        key,
        sweeps,
        observe={"row": lambda weights: product_row(weights, shape)},
        burn=burn,
        every=EVERY,
    )


class FirstLayer(NamedTuple):
    """What is read off the whole product θᵀ = vW^(1), W^(1) drawn given v and the data; the shape is that of rows.

    Attributes:
        square: ‖θ_⊥‖².
        along: a fixed direction's component of θ_⊥.
        residual: ‖Xᵀθ − y‖/‖y‖.
    """

    square: Values
    along: Values
    residual: Values


def draw_first_layer(rows: Values, data: Data, rng: np.random.Generator) -> FirstLayer:
    """Draw W^(1), n × n_0, from its Gaussian conditional on interpolation, and read θ off the product.

    A draw W from the prior becomes one from the conditional by the least change that interpolates,
    W + v(y − Xᵀθ)ᵀX⁺/‖v‖² (Matheron's rule).

    Args:
        rows: v, shape ``(..., n)``.
        data: P of n_0 dimensions.
        rng: of the draws.
    """
    inputs = len(data.x)
    flat = rows.reshape(-1, rows.shape[-1])
    direction = _off_span(data)
    measured = []
    for some in np.array_split(flat, max(1, len(flat) // 2000)):  # 2000 matrices at a time
        first = rng.standard_normal((*some.shape, inputs)) / np.sqrt(inputs)
        gap = data.y - np.einsum("rn,rni->ri", some, first) @ data.x
        norms = (some**2).sum(1)
        first += some[:, :, None] * (gap @ data.inverse / norms[:, None])[:, None]
        theta = np.einsum("rn,rni->ri", some, first)
        off = theta - data.interpolant
        residual = np.linalg.norm(theta @ data.x - data.y, axis=1) / np.linalg.norm(data.y)
        measured.append(((off**2).sum(1), off @ direction, residual))
    parts = [np.concatenate(part) for part in zip(*measured, strict=True)]
    return FirstLayer(*(part.reshape(rows.shape[:-1]) for part in parts))


def _off_span(data: Data) -> Values:
    """Return a fixed unit vector orthogonal to all inputs; zero where there is none."""
    left, _, _ = np.linalg.svd(data.x)
    return left[:, -1] if len(data.x) > len(data.y) else np.zeros(len(data.x))


class Layers(NamedTuple):
    """What is read off the whole product of a network sampled layer by layer, ``(data, chains, sweeps + 1)``.

    The start comes first: a network of the prior whose W^(1) is drawn anew so that it interpolates.

    Attributes:
        scale: s = ‖W^(L+1)⋯W^(2)‖².
        square: ‖θ_⊥‖².
        residual: ‖Xᵀθ − y‖/‖y‖.
    """

    scale: Values
    square: Values
    residual: Values


def gibbs_over_layers(
    data: Sequence[Data],
    widths: Sequence[int],
    chains: int,
    sweeps: int,
    rng: np.random.Generator,
    start: list[Values] | None = None,
) -> Layers:
    """Sample all matrices from the posterior on interpolants, each in turn given the others; nothing is integrated.

    Given the others y = uWB is linear in W, u the row above and B = W^(l−1)⋯W^(1)X below. A draw G from the prior
    becomes one from the conditional by the least change that interpolates,
    G + uᵀ(y − uGB)B⁺/‖u‖². Sweeps go from the first layer to the last.

    The chain is irreducible only where all n_l > P: otherwise the row above W^(l) never moves.

    Args:
        data: all of the same P and n_0.
        widths: n_1, …, n_L.
        chains: for each data.
        sweeps: through all layers.
        rng: of the draws.
        start: matrices W^(1), …, W^(L+1), each ``(data, chains, rows, columns)``; drawn from the prior if left out.
    """
    inputs, points = data[0].x.shape
    fans = (inputs, *widths)
    heights = (*widths, 1)
    lanes = (len(data), chains)
    x = np.broadcast_to(np.stack([one.x for one in data])[:, None], (*lanes, inputs, points))
    y = np.stack([np.broadcast_to(one.y, (chains, points)) for one in data])[:, :, None]
    inverse = np.stack([one.inverse for one in data])[:, None]
    deviations = [fan**-0.5 for fan in fans]

    def draw(layer: int) -> Values:
        shape = (*lanes, heights[layer], fans[layer])
        return rng.standard_normal(shape) * deviations[layer]

    weights = [draw(layer) for layer in range(len(fans))] if start is None else list(start)
    pinned = min(widths) <= points
    records = []
    for sweep in range(sweeps + 1):
        rows = [np.ones((*lanes, 1, 1))]  # W^(L+1)⋯W^(l+1), from the top
        for matrix in weights[:0:-1]:
            rows.append(rows[-1] @ matrix)
        below = x
        for layer in range(len(fans) if sweep else 1):
            above = rows[-1 - layer]
            fresh = draw(layer)
            gap = y - (above @ fresh) @ below
            if layer == 0:
                step = gap @ inverse
            elif pinned:
                step = gap @ np.linalg.pinv(below, rcond=1e-10)
            else:
                gram = below.swapaxes(-1, -2) @ below
                step = (below @ np.linalg.solve(gram, gap.swapaxes(-1, -2))).swapaxes(-1, -2)
            norms = (above**2).sum((-1, -2), keepdims=True)
            weights[layer] = fresh + above.swapaxes(-1, -2) @ step / norms
            below = weights[layer] @ below
        row = weights[-1]
        for matrix in weights[-2:0:-1]:
            row = row @ matrix
        theta = row @ weights[0]
        off = theta - y @ inverse
        residual = np.linalg.norm(theta @ x - y, axis=(-1, -2)) / np.linalg.norm(y, axis=(-1, -2))
        records.append(((row**2).sum((-1, -2)), (off**2).sum((-1, -2)), residual))
    return Layers(*(np.stack(part, -1) for part in zip(*records, strict=True)))


def prior_scales(
    width: int, layers: int, groups: int, networks: int, rng: np.random.Generator
) -> Values:
    """Return s = ‖v‖² of networks from their prior by explicit matrices, of every depth up to ``layers``.

    The first k matrices of a network are one of depth k. The shape is ``(groups, networks, layers)``.
    """
    scales = np.empty((groups, networks, layers))
    for scale in scales:
        row = rng.standard_normal((networks, 1, width)) / np.sqrt(width)
        for layer in range(layers):
            scale[:, layer] = (row**2).sum((1, 2))
            matrix = rng.standard_normal((networks, width, width), np.float32)
            row = row @ matrix / np.sqrt(width)
    return scales


def evidence_ratios(scales: Values, points: float, size: float) -> Values:
    """Return Z(L)/Z(0) as means over networks of the prior: E s^(−P/2) e^(−PA/2s + PA/2), ``(groups, layers)``."""
    logs = -points / 2 * (np.log(scales) + size / scales - size)
    return np.exp(logs).mean(1)


@dataclass(frozen=True)
class BayesianDeepLinearPoint(Point):
    """The posterior mean of the squared scale s at one depth, one width of all layers and one size of data."""

    layers: Count
    widths: Count
    sizes: Positive
    points: Count
    chains: Seeds
    sweeps: Count
    burn: Count

    batched = ("sizes",)
    diagram = {"layers": "log:1:8:4", "widths": "log:5:40:7"}
    base = {
        "layers": (2,),
        "widths": (10,),
        "sizes": (3.0,),
        "chains": 24,
        "sweeps": 300,
        "burn": 100,
    }
    labels = {
        "scale": "posterior mean of s",
        "limit": "s of the limit at λ",
    }
    diagram_remarks = (
        "Lines are those of equal effective depth PL/n; in the limit of many data each is a line of equal s.",
        "24 chains of 300 sweeps a point; the check is against the exact law at that depth and width.",
    )

    def predict(self, setting: Any) -> Prediction:
        widths = (self.widths,) * self.layers
        return Prediction(scale=posterior_scale(widths, self.points, self.sizes))

    def observe(self, setting: Any, key: Key) -> Mapping[str, jax.Array]:
        network = Shape(*(part[0] for part in padded([(self.widths,) * self.layers])))

        def chain(key: Key) -> jax.Array:
            points = float(self.points)
            record = sample_rows(network, points, self.sizes, key, self.sweeps, self.burn)
            return (record.observed["row"] ** 2).sum(-1).mean()

        return {"scale": jax.vmap(chain)(keys(key, self.chains))}

    def judge(self, predicted: Prediction, observed: Arrays) -> list[Check]:
        # the interval over 24 chains is 2 to 4 %
        return [equal("scale", predicted["scale"], observed["scale"], 0.06, label="s given data")]

    def quantities(self, predicted: Prediction, observed: Arrays) -> dict[str, float]:
        depth = self.points * self.layers / self.widths
        return {"limit": limit_scale(depth, self.sizes)}

    def boundaries(self, x: str, y: str) -> tuple[Curve, ...]:
        if {x, y} != {"layers", "widths"}:
            return ()
        layers = np.linspace(1, 8, 50)
        curves = []
        for depth in (1, 2, 4, 8):
            widths = self.points * layers / depth
            ends = (layers, widths) if x == "layers" else (widths, layers)
            curves.append(predicted_curve(*ends, f"PL/n = {depth}"))
        return tuple(curves)
