"""Kernels of infinitely wide networks: dual activations, the layerwise recursion and its criticality."""

from steepest.kernels._catapult import catapult_map as catapult_map
from steepest.kernels._criticality import Criticality as Criticality
from steepest.kernels._criticality import criticality as criticality
from steepest.kernels._depth_scales import DepthScales as DepthScales
from steepest.kernels._depth_scales import depth_scales as depth_scales
from steepest.kernels._empirical import empirical_ntk as empirical_ntk
from steepest.kernels._empirical import ntk_top as ntk_top
from steepest.kernels._inputs import planar_inputs as planar_inputs
from steepest.kernels._recursion import chi_parallel as chi_parallel
from steepest.kernels._recursion import chi_perpendicular as chi_perpendicular
from steepest.kernels._recursion import dual as dual
from steepest.kernels._recursion import first_layer as first_layer
from steepest.kernels._recursion import layer_map as layer_map
from steepest.kernels._recursion import pair_mean as pair_mean
from steepest.kernels._recursion import propagate as propagate
