"""Random projections of points, and one point of their diagram."""

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.geometry import projection_distortion
from steepest.kit.points import Arrays, equal
from steepest.linalg import sequential

Points = Annotated[int, kit.Within(4, 512)]
Dimension = Annotated[int, kit.Within(4, 1024)]
LARGEST_POINTS = 256
"""Most points of a diagram, whose arrays all have this length."""
LARGEST_DIMENSION = 1024


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
