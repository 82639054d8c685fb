"""Algebra of symmetric operators known by their products: eigenpairs, traces and spectral densities."""

from ._density import Density as Density
from ._density import spectral_density as spectral_density
from ._eigenpairs import largest_eigenpairs as largest_eigenpairs
from ._eigenpairs import sharpness as sharpness
from ._eigenpairs import top_eigenpair as top_eigenpair
from ._eigenpairs import top_eigenpairs as top_eigenpairs
from ._operators import Eigenpairs as Eigenpairs
from ._operators import Operator as Operator
from ._operators import hessian_product as hessian_product
from ._operators import row_by_row as row_by_row
from ._threads import sequential as sequential
from ._trace import ProbeEstimate as ProbeEstimate
from ._trace import squared_frobenius as squared_frobenius
from ._trace import trace as trace
from ._walsh import parity_spectrum as parity_spectrum
