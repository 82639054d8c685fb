"""Landscapes: objectives whose critical points are known, and certificates for those that are not."""

from ._clarke import Clarke as Clarke
from ._clarke import clarke as clarke
from ._clarke import directional_gradient as directional_gradient
from ._clarke import one_sided_relu as one_sided_relu
from ._critical_points import Arrivals as Arrivals
from ._critical_points import CriticalPoints as CriticalPoints
from ._critical_points import Form as Form
from ._critical_points import binomial_weights as binomial_weights
from ._critical_points import critical_points as critical_points
from ._critical_points import gaussian_form as gaussian_form
from ._critical_points import monomials as monomials
from ._critical_points import sphere_newton as sphere_newton
from ._factorization import FactorizationPoint as FactorizationPoint
from ._factorization import factorization_point as factorization_point
from ._factorization import factorization_points as factorization_points
from ._factorization import factorization_risk as factorization_risk
from ._factorization import nearest_root as nearest_root
from ._kac_rice import Count as Count
from ._kac_rice import kac_rice as kac_rice
from ._linear_network import LinearNetworkPoint as LinearNetworkPoint
from ._linear_network import balanced_weights as balanced_weights
from ._linear_network import linear_network_point as linear_network_point
from ._linear_network import linear_network_points as linear_network_points
from ._linear_network import linear_network_risk as linear_network_risk
from ._linear_network import mode_time as mode_time
from ._lqr import Lqr as Lqr
from ._lqr import Optimum as Optimum
from ._lqr import Terms as Terms
from ._lqr import lqr as lqr
from ._saddle_chain import chain_ratio as chain_ratio
from ._saddle_chain import chain_saddles as chain_saddles
from ._saddle_chain import chain_times as chain_times
from ._saddle_chain import chain_value as chain_value
from ._saddle_chain import saddle_chain as saddle_chain
from ._singularity import (
    linear_network_learning_coefficient as linear_network_learning_coefficient,
)
from ._strict_saddle import Critical as Critical
from ._strict_saddle import strict_saddle as strict_saddle
from ._strict_saddle import strict_saddles as strict_saddles
from ._tensor import MERGE as MERGE
from ._tensor import Ascent as Ascent
from ._tensor import pair_angle as pair_angle
from ._tensor import tensor_ascent as tensor_ascent
