"""Algebra of symmetric operators known by their products: eigenpairs, traces and spectral densities."""

from steepest.krylov import Density as Density
from steepest.krylov import Eigenpairs as Eigenpairs
from steepest.krylov import Operator as Operator
from steepest.krylov import ProbeEstimate as ProbeEstimate
from steepest.krylov import row_by_row as row_by_row
from steepest.krylov import sequential as sequential
from steepest.krylov import spectral_density as spectral_density
from steepest.krylov import squared_frobenius as squared_frobenius
from steepest.krylov import top_eigenpairs as top_eigenpairs
from steepest.krylov import trace as trace

from ._eigenpairs import largest_eigenpairs as largest_eigenpairs
from ._eigenpairs import sharpness as sharpness
from ._eigenpairs import top_eigenpair as top_eigenpair
from ._operators import hessian_product as hessian_product
from ._walsh import parity_spectrum as parity_spectrum
