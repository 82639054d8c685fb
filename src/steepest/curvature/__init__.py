"""Curvature of the risk: Hessian products and the top of its spectrum."""

from ._lanczos import Eigenpair as Eigenpair
from ._lanczos import hessian_product as hessian_product
from ._lanczos import sharpness as sharpness
from ._lanczos import top_eigenpair as top_eigenpair
