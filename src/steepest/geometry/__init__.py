"""Geometry: what piecewise linear networks cut space into, best fits by pieces, coverings and projections."""

from ._layers import Layer as Layer
from ._layers import preactivations as preactivations
from ._layers import relu_layers as relu_layers
from ._planar_regions import PlanarRegions as PlanarRegions
from ._planar_regions import planar_regions as planar_regions
