"""Kernels of infinitely wide networks of any architecture: nodes, positions, displacements.

A layer of one's own has a node, which says what it is, and a rule registered by ``rule_for``, which says what the node
does to both kernels. ``check_layer`` of ``steepest.kernels`` tries it. ``examples/own_layer.py`` is such a layer.
"""

from steepest.kernels.wide import nodes as nodes  # registers the rules
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
from steepest.kernels.wide._rule import Computed as Computed
from steepest.kernels.wide._rule import Diagonal as Diagonal
from steepest.kernels.wide._rule import Displaced as Displaced
from steepest.kernels.wide._rule import Displacements as Displacements
from steepest.kernels.wide._rule import Local as Local
from steepest.kernels.wide._rule import Mixing as Mixing
from steepest.kernels.wide._rule import Pairs as Pairs
from steepest.kernels.wide._rule import Presence as Presence
from steepest.kernels.wide._rule import Step as Step
from steepest.kernels.wide._rule import rule_for as rule_for
from steepest.kernels.wide._scaling import Scaled as Scaled
from steepest.kernels.wide._scaling import degrees as degrees
from steepest.kernels.wide._scaling import scaled as scaled
from steepest.kernels.wide.duals import NoSeriesError as NoSeriesError
from steepest.kernels.wide.duals import has_series as has_series
