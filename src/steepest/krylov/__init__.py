"""Eigenpairs, traces and spectral densities of symmetric operators known by their products, in NumPy alone.

What multiplies may be JAX, torch or anything else; :mod:`steepest.linalg` has what JAX compiles.
"""

from ._density import Density as Density
from ._density import spectral_density as spectral_density
from ._eigenpairs import top_eigenpairs as top_eigenpairs
from ._operators import Eigenpairs as Eigenpairs
from ._operators import Operator as Operator
from ._operators import row_by_row as row_by_row
from ._threads import sequential as sequential
from ._trace import ProbeEstimate as ProbeEstimate
from ._trace import squared_frobenius as squared_frobenius
from ._trace import trace as trace
