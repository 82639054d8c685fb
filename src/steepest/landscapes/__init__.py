"""Landscapes: objectives whose critical points are known, and certificates for those that are not."""

from ._critical_points import Arrivals as Arrivals
from ._critical_points import CriticalPoints as CriticalPoints
from ._critical_points import Form as Form
from ._critical_points import binomial_weights as binomial_weights
from ._critical_points import critical_points as critical_points
from ._critical_points import gaussian_form as gaussian_form
from ._critical_points import monomials as monomials
from ._critical_points import sphere_newton as sphere_newton
from ._kac_rice import Count as Count
from ._kac_rice import kac_rice as kac_rice
from ._lqr import Lqr as Lqr
from ._lqr import Optimum as Optimum
from ._lqr import Terms as Terms
from ._lqr import lqr as lqr
from ._strict_saddle import Critical as Critical
from ._strict_saddle import strict_saddle as strict_saddle
from ._strict_saddle import strict_saddles as strict_saddles
from ._tensor import MERGE as MERGE
from ._tensor import Ascent as Ascent
from ._tensor import pair_angle as pair_angle
from ._tensor import tensor_ascent as tensor_ascent
