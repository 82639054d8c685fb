"""Geometry: what piecewise linear networks cut space into, best fits by pieces, coverings and projections."""

from ._bits import bit_reader as bit_reader
from ._bits import bits_needed as bits_needed
from ._bits import weights_used as weights_used
from ._cells import Cells as Cells
from ._cells import bounded_cell_count as bounded_cell_count
from ._cells import bounded_cells as bounded_cells
from ._cells import cell_count as cell_count
from ._cells import cells as cells
from ._cells import central_cell_count as central_cell_count
from ._cells import general_position as general_position
from ._cells import parallel_cell_count as parallel_cell_count
from ._coverings import Covering as Covering
from ._coverings import ellipsoid_entropy as ellipsoid_entropy
from ._coverings import farthest_points as farthest_points
from ._layers import Layer as Layer
from ._layers import preactivations as preactivations
from ._layers import relu_layers as relu_layers
from ._pieces import best_pieces as best_pieces
from ._pieces import zigzag as zigzag
from ._planar_regions import PlanarRegions as PlanarRegions
from ._planar_regions import planar_regions as planar_regions
from ._projection import Distortion as Distortion
from ._projection import projection_distortion as projection_distortion
