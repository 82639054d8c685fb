"""Curvature of the risk: products, eigenpairs, traces and spectral densities."""

from ._density import Density as Density
from ._density import spectral_density as spectral_density
from ._eigenpairs import Eigenpairs as Eigenpairs
from ._eigenpairs import Products as Products
from ._eigenpairs import row_by_row as row_by_row
from ._eigenpairs import top_eigenpairs as top_eigenpairs
from ._lanczos import Eigenpair as Eigenpair
from ._lanczos import hessian_product as hessian_product
from ._lanczos import sharpness as sharpness
from ._lanczos import top_eigenpair as top_eigenpair
from ._threads import sequential as sequential
from ._trace import Estimated as Estimated
from ._trace import squared_frobenius as squared_frobenius
from ._trace import trace as trace
