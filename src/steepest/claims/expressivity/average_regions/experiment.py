"""Regions of random networks in a disc, in all of the plane and in triangles, and the cell of the origin."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.expressivity._random_networks import SEED_OF_THEORY, unbatched
from steepest.geometry import Layer, PlanarRegions, crossings, homogeneous, planar_patterns
from steepest.kernels import disc_regions
from steepest.kit.points import equal
from steepest.linalg import sequential

CORNERS = 32  # of the polygon that stands for a disc
FAR = 1e9  # of a triangle that all ends of borders cross, in units in which borders bend near one


def disc(radius: float) -> kit.Values:
    """Return the corners of a regular polygon of the disc's area, shape ``(CORNERS, 2)``; its edge is 0.2 % longer."""
    angle = 2 * np.pi / CORNERS
    # the area ½ n R² sin(2π/n) equals the disc's area πr²
    outer = radius * np.sqrt(angle / np.sin(angle))
    turns = angle * np.arange(CORNERS)
    return outer * np.stack([np.cos(turns), np.sin(turns)], 1)


def even_widths(neurons: int, depth: int) -> tuple[int, ...]:
    """Divide neurons among layers as evenly as can be, at least one in each."""
    return tuple(max(1, len(part)) for part in np.array_split(np.arange(neurons), depth))


def euler_defect(regions: PlanarRegions) -> float:
    """Return regions − (1 + V + B/2), which is zero for lines in general position."""
    return regions.count - (1 + regions.inner_vertices + regions.boundary_vertices / 2)


def counts(networks: Sequence[Sequence[Layer]], corners: kit.Values) -> kit.Values:
    """Count the regions of each network in a polygon, or each in one of its own, shape ``(networks,)``."""
    return np.bincount(planar_patterns(networks, corners).owner, minlength=len(networks)).astype(
        float
    )


def counts_in_plane(networks: Sequence[Sequence[Layer]]) -> kit.Values:
    """Count the regions of each network of two inputs in all of R², exactly, shape ``(networks,)``.

    In homogeneous coordinates (x, τ) the plane is seen through three triangles that share the corner (0, 1); a region
    that meets several is one pattern.
    """
    lifted = [homogeneous(layers) for layers in networks]
    turns = 2 * np.pi * np.arange(4) / 3
    rim = np.stack([np.cos(turns), np.sin(turns), 0 * turns], 1)
    rows = []
    for i in range(3):
        triangle = np.stack([rim[i], rim[i + 1], [0.0, 0.0, 1.0]])
        owner, patterns = planar_patterns(lifted, triangle)
        rows.append(np.column_stack([owner, np.packbits(patterns, axis=1)]))
    regions = np.unique(np.concatenate(rows), axis=0)
    return np.bincount(regions[:, 0], minlength=len(networks)).astype(float)


def unbounded_ends(networks: Sequence[Sequence[Layer]]) -> kit.Values:
    """Count how often the borders of a layer's neurons cross a very large triangle, shape ``(networks, layers)``.

    It is the mean over the neurons of a hidden layer. Far out a border is a ray, which such a triangle meets once.
    """
    turns = 2 * np.pi * np.arange(4) / 3
    triangle = FAR * np.stack([np.cos(turns), np.sin(turns)], 1)
    widths = [len(layer.bias) for layer in networks[0][:-1]]
    return np.array([crossings(layers, triangle)[:-1] for layers in networks]) / widths


@sequential
def origin_jets(
    rng: np.random.Generator, networks: int, widths: tuple[int, ...], d: int, c_w: float, c_b: float
) -> kit.Values:
    """Return (∇z, z) of every neuron at the origin, of new networks, shape ``(networks, units, d + 1)``.

    Inside the cell of the origin every neuron is this affine function, so that they cut the cell out.
    """
    jets = np.zeros((networks, d, d + 1))
    jets[:, :, :d] = np.eye(d)  # the inputs
    layers = []
    for inputs, outputs in zip((d, *widths), widths, strict=False):
        weights = rng.standard_normal((networks, outputs, inputs)) * (c_w / inputs) ** 0.5
        # (networks, units, 1); a gate multiplies value and gradient alike
        gates = jets[:, :, d:] > 0 if layers else 1.0
        jets = weights @ (gates * jets)
        jets[:, :, d] += c_b**0.5 * rng.standard_normal((networks, outputs))
        layers.append(jets)
    return np.concatenate(layers, axis=1)


def cell_sides(jets: kit.Values) -> kit.Values:
    """Count the sides of the cell of the origin of each network: corners of the hull of the dual points ∇z/z.

    Args:
        jets: of the neurons at the origin, shape ``(networks, units, d + 1)``.
    """
    from scipy.spatial import ConvexHull

    # z + ⟨∇z, x⟩ keeps its sign where ⟨−∇z/z, x⟩ < 1: the cell is the polar set of these points,
    # whose corners are its sides, mirrored here
    points = jets[..., :-1] / jets[..., -1:]
    return np.array([len(ConvexHull(one).vertices) for one in points], float)


@dataclass(frozen=True)
class AverageRegionsPoint(kit.Point):
    """Mean regions in a disc of networks of one depth, at a fixed number of neurons."""

    neurons: kit.Count
    depths: kit.Count
    c_w: kit.Positive
    c_b: kit.NonNegative
    radius: kit.Positive
    networks: kit.Seeds

    batched = ("c_w", "c_b", "radius")
    diagram = {"c_b": "log:0.01:10:8", "depths": "1,2,4,8"}
    base = {"networks": 100}
    diagram_remarks = (
        "The same 24 neurons in layers of 24, 12, 6 and 3; a hundred networks a point. The larger the biases, "
        "the further out the lines, and the more so the deeper their layer.",
    )

    def hypotheses(self, setting):
        yield kit.assume("variance of the biases", self.c_b, ">", 0, "all lines meet at the origin")

    def predict(self, setting):
        widths = even_widths(self.neurons, self.depths)
        rng = np.random.default_rng(SEED_OF_THEORY)
        mean = disc_regions(widths, self.c_w, self.c_b, self.radius, rng, 4000).mean
        return kit.Prediction(regions=mean)

    def observe(self, setting, key):
        widths = even_widths(self.neurons, self.depths)
        weights = []
        biases = []
        for inputs, outputs in zip((2, *widths), widths, strict=False):
            key, for_weights, for_biases = jax.random.split(key, 3)
            scale = jnp.sqrt(self.c_w / inputs)
            weights.append(scale * jax.random.normal(for_weights, (self.networks, outputs, inputs)))
            biases.append(
                jnp.sqrt(self.c_b) * jax.random.normal(for_biases, (self.networks, outputs))
            )
        regions = jax.pure_callback(
            _count,
            jax.ShapeDtypeStruct((self.networks,), np.float64),
            weights,
            biases,
            jnp.asarray(self.radius, float),
            vmap_method="sequential",
        )
        return {"regions": regions}

    def judge(self, predicted, observed):
        yield equal(
            "regions",
            predicted["regions"],
            observed["regions"],
            0.25,  # the interval over a hundred networks is up to 15 %
            label="regions in the disc",
        )


def _count(
    weights: Sequence[kit.Values], biases: Sequence[kit.Values], radius: kit.Values
) -> kit.Values:
    """Count the regions of each network in the disc, shape ``(networks,)``."""
    return counts(unbatched(weights, biases), disc(float(radius)))
