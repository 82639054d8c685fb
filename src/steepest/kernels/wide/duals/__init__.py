"""The expectations of one activation for all pairs of positions."""

from steepest.kernels.wide.duals._bounds import Bends as Bends
from steepest.kernels.wide.duals._bounds import Singles as Singles
from steepest.kernels.wide.duals._bounds import Tolerances as Tolerances
from steepest.kernels.wide.duals._choice import Dual as Dual
from steepest.kernels.wide.duals._choice import Pairing as Pairing
from steepest.kernels.wide.duals._choice import dual_of as dual_of
from steepest.kernels.wide.duals._choice import has_series as has_series
from steepest.kernels.wide.duals._closed import Closed as Closed
from steepest.kernels.wide.duals._piecewise import Piecewise as Piecewise
from steepest.kernels.wide.duals._scale_invariant import ScaleInvariant as ScaleInvariant
from steepest.kernels.wide.duals._series import Expansion as Expansion
from steepest.kernels.wide.duals._series import NoSeriesError as NoSeriesError
from steepest.kernels.wide.duals._series import Series as Series
