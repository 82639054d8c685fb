"""Kernels of infinitely wide networks of any architecture: nodes, positions, displacements."""

from steepest.kernels.wide import nodes as nodes  # registers the rules
from steepest.kernels.wide._duals import NoSeriesError as NoSeriesError
from steepest.kernels.wide._duals import has_series as has_series
from steepest.kernels.wide._function import is_traced as is_traced
from steepest.kernels.wide._function import kernel_function as kernel_function
from steepest.kernels.wide._function import linear_nodes as linear_nodes
from steepest.kernels.wide._function import nodes_of as nodes_of
from steepest.kernels.wide._function import traced_gram as traced_gram
from steepest.kernels.wide._heads import over_heads as over_heads
from steepest.kernels.wide._outputs import behind_nodes as behind_nodes
from steepest.kernels.wide._plan import plan_of as plan_of
from steepest.kernels.wide._positions import Positions as Positions
from steepest.kernels.wide._presence import Mask as Mask
from steepest.kernels.wide._presence import check_mask as check_mask
from steepest.kernels.wide._scaling import Scaled as Scaled
from steepest.kernels.wide._scaling import degrees as degrees
from steepest.kernels.wide._scaling import scaled as scaled
