"""Geometry: what piecewise linear networks cut space into, best fits by pieces, coverings and projections."""

from ._layers import Layer as Layer
from ._layers import preactivations as preactivations
from ._layers import relu_layers as relu_layers
from ._planar_patterns import PlanarPatterns as PlanarPatterns
from ._planar_patterns import planar_patterns as planar_patterns
from ._planar_regions import PlanarRegions as PlanarRegions
from ._planar_regions import planar_regions as planar_regions
from ._residual_layers import residual_layers as residual_layers
from ._segments import Trace as Trace
from ._segments import crossings as crossings
from ._segments import homogeneous as homogeneous
from ._segments import trace as trace
