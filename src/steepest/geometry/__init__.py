"""Geometry: what piecewise linear networks cut space into, best fits by pieces, coverings and projections."""

from ._coverings import Covering as Covering
from ._coverings import ellipsoid_entropy as ellipsoid_entropy
from ._coverings import farthest_points as farthest_points
from ._layers import Layer as Layer
from ._layers import preactivations as preactivations
from ._layers import relu_layers as relu_layers
from ._projection import Distortion as Distortion
from ._projection import projection_distortion as projection_distortion
