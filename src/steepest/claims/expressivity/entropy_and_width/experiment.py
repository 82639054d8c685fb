"""Projections of points, coverings and packings, and autoencoders; one point of the diagram of projections."""

import itertools
from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import descend
from steepest.geometry import projection_distortion
from steepest.kit.points import Arrays, equal
from steepest.linalg import sequential

Points = Annotated[int, kit.Within(4, 512)]
Dimension = Annotated[int, kit.Within(4, 1024)]
LARGEST_POINTS = 256
"""Most points of a diagram, whose arrays all have this length."""
LARGEST_DIMENSION = 1024
HIDDEN = 16  # units of each hidden layer of an autoencoder
CELLS = 256  # of the discontinuous code
ANGLES = 64  # points of the boundary that it is trained on
FINE = 2048  # points of the boundary on which it is judged


@sequential
def stretches(x: np.ndarray, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Return the smallest and the largest ‖Ax − Ay‖/‖x − y‖ of a Gaussian map A of points ``(k, d)``, shape ``(2,)``.

    ``x`` may be a number k too: the k unit vectors, whose images are the columns of A.
    """
    if np.ndim(x):
        images = x @ rng.standard_normal((x.shape[1], dimension)) / np.sqrt(dimension)
        before = _squares(x)
    else:
        images = rng.standard_normal((int(x), dimension)) / np.sqrt(dimension)
        # ‖e_i − e_j‖²
        before = 2.0
    ratios = _squares(images) / before
    return np.sqrt([ratios.min(), ratios.max()])


def _squares(x: np.ndarray) -> np.ndarray:
    """Return the squared distances of all pairs."""
    norms = (x**2).sum(1)
    # ‖x − y‖² = ‖x‖² + ‖y‖² − 2⟨x, y⟩
    matrix = norms[:, None] + norms - 2 * x @ x.T
    return matrix[np.triu_indices(len(x), 1)]


def shell(axes: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw points of the surface of an ellipsoid ``(size, d)``, as many in each section of the longest axes, and 0."""
    normal = rng.standard_normal((size, len(axes)))
    section = rng.integers(1, len(axes) + 1, size)
    # zero beyond the section: over its length a normal vector is uniform on the sphere there
    normal *= np.arange(len(axes)) < section[:, None]
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    return np.concatenate([np.zeros((1, len(axes))), axes * normal])


def maximal_packing(x: np.ndarray, apart: float) -> float:
    """Return the covering radius of the points by centres at this distance and more, where no other point fits."""
    nearest = np.full(len(x), np.inf)
    for place, point in enumerate(x):
        if nearest[place] >= apart:
            np.minimum(nearest, np.linalg.norm(x - point, axis=1), out=nearest)
    return float(nearest.max())


def shortest_images(dimension: int, points: int, rng: np.random.Generator) -> np.ndarray:
    """Return min_i ‖A e_i‖ of linear maps of norm one from R^k to R^m, m even: a harmonic frame, and a Gaussian one."""
    frequencies = rng.choice(np.arange(1, points // 2), dimension // 2, replace=False)
    angles = 2 * np.pi * np.outer(frequencies, np.arange(points)) / points
    # cosines and sines of different frequencies are orthonormal rows, so that the norm is one;
    # each column has the square m/k, the largest that the least of k columns can have
    frame = np.concatenate([np.cos(angles), np.sin(angles)]) * np.sqrt(2 / points)
    normal = rng.standard_normal((dimension, points))
    normal /= np.sqrt(np.linalg.eigvalsh(normal @ normal.T)[-1])
    return np.array([np.linalg.norm(matrix, axis=0).min() for matrix in (frame, normal)])


def boundary(short: float, angles: int) -> np.ndarray:
    """Return points of the ellipse with the axes 1 and ``short``, shape ``(angles, 2)``."""
    turn = 2 * np.pi * np.arange(angles) / angles
    return np.stack([np.cos(turn), short * np.sin(turn)], axis=1)


def quantized(short: float) -> np.ndarray:
    """Return the distances of the boundary's points from the nearest of some of them, shape ``(angles,)``."""
    many = boundary(short, FINE)
    cells = many[:: FINE // CELLS]
    return np.linalg.norm(many[:, None] - cells, axis=-1).min(1)


def autoencoders(key: kit.Key, short: float, networks: int, steps: int, lr: float) -> np.ndarray:
    """Train networks R² → R → R² on the boundary of an ellipse: errors there, ``(powers, networks, angles)``.

    The loss is the mean of error², or of error⁸, which is nearer to the largest error.
    """
    widths = (2, HIDDEN, HIDDEN, 1, HIDDEN, HIDDEN, 2)
    sizes = [(out, inp + 1) for inp, out in itertools.pairwise(widths)]
    ends = np.cumsum([out * inp for out, inp in sizes])
    # the code is linear, as the output is
    linear = (2, 5)

    def reconstruct(params: list[jax.Array], x: jax.Array) -> jax.Array:
        for place, matrix in enumerate(params):
            x = x @ matrix[:, :-1].T + matrix[:, -1]
            x = x if place in linear else jnp.tanh(x)
        return x

    def one(lane: tuple[jax.Array, jax.Array], few: jax.Array, many: jax.Array) -> jax.Array:
        key, power = lane
        drawn = jnp.split(jax.random.normal(key, (int(ends[-1]),)), ends[:-1])
        start = [
            numbers.reshape(size) / np.sqrt(size[1])
            for numbers, size in zip(drawn, sizes, strict=True)
        ]

        def risk(params: list[jax.Array]) -> jax.Array:
            squares = ((reconstruct(params, few) - few) ** 2).sum(1)
            return jnp.where(power > 2, squares**4, squares).mean()

        path = descend(risk, start, optax.adam(lr), steps, record=steps)
        return jnp.linalg.norm(reconstruct(path.params, many) - many, axis=1)

    def run(key: jax.Array, few: jax.Array, many: jax.Array) -> jax.Array:
        lanes = (jax.random.split(key, 2 * networks), jnp.repeat(jnp.array([2, 8]), networks))
        return jax.vmap(lambda key, power: one((key, power), few, many))(*lanes)

    errors = kit.compiled(run)(key, boundary(short, ANGLES), boundary(short, FINE))
    return np.asarray(errors).reshape(2, networks, FINE)


@dataclass(frozen=True)
class ProjectionPoint(kit.Point):
    """The extremes of the stretches of k points in m dimensions, against their law."""

    points: Points
    dimensions: Dimension
    draws: kit.Seeds

    batched = ("points", "dimensions")
    diagram = {"dimensions": "log:8:1024:15", "points": "log:4:256:7"}
    base = {"draws": 8}
    labels = {"ratio": "smallest / largest stretch"}
    contours = {"ratio_predicted": (0.5, "½")}
    diagram_remarks = (
        "Stretches of all pairs of unit vectors by Gaussian maps, smallest over largest, and the line m = 8 ln k/ε² at "
        "ε = ½. Below some tens of dimensions the few smallest stretches spread too much for eight draws.",
    )

    def predict(self, setting):
        low, high = projection_distortion(self.points, self.dimensions)
        return kit.Prediction(ratio=low / high)

    def observe(self, setting, key):
        return {"ratio": jax.lax.map(self.ratio, kit.keys(key, self.draws))}

    def ratio(self, key: kit.Key) -> jax.Array:
        """Return the smallest over the largest stretch, of the first k images in the first m dimensions."""
        images = jax.random.normal(key, (LARGEST_POINTS, LARGEST_DIMENSION))
        images = jnp.where(jnp.arange(LARGEST_DIMENSION) < self.dimensions, images, 0.0)
        norms = (images**2).sum(1)
        squares = norms[:, None] + norms - 2 * images @ images.T
        present = jnp.arange(LARGEST_POINTS) < self.points
        pairs = present[:, None] & present & ~jnp.eye(LARGEST_POINTS, dtype=bool)
        low = jnp.where(pairs, squares, jnp.inf).min()
        return jnp.sqrt(low / jnp.where(pairs, squares, 0.0).max())

    def run_conditions(self, observed):
        yield kit.assume(
            "points", self.points, "<=", LARGEST_POINTS, "the diagram has 256 points at most"
        )

    def judge(self, predicted, observed):
        yield equal(
            "ratio",
            float(predicted["ratio"]),
            observed["ratio"],
            0.1,
            label="smallest / largest stretch",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"spread": float(observed["ratio"].std())}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"points", "dimensions"}:
            return ()
        points = np.geomspace(4, 256, 40)
        line = 32 * np.log(points)
        ends = (line, points) if x == "dimensions" else (points, line)
        return (kit.predicted_curve(*ends, "m = 8 ln k/ε², ε = ½"),)
