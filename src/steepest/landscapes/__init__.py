"""Landscapes: objectives whose critical points are known, and certificates for those that are not."""

from ._clarke import Clarke as Clarke
from ._clarke import clarke as clarke
from ._clarke import directional_gradient as directional_gradient
from ._clarke import one_sided_relu as one_sided_relu
from ._factorization import FactorizationPoint as FactorizationPoint
from ._factorization import factorization_point as factorization_point
from ._factorization import factorization_points as factorization_points
from ._factorization import factorization_risk as factorization_risk
from ._factorization import nearest_root as nearest_root
from ._linear_network import LinearNetworkPoint as LinearNetworkPoint
from ._linear_network import balanced_weights as balanced_weights
from ._linear_network import linear_network_point as linear_network_point
from ._linear_network import linear_network_points as linear_network_points
from ._linear_network import linear_network_risk as linear_network_risk
from ._linear_network import mode_time as mode_time
from ._strict_saddle import Critical as Critical
from ._strict_saddle import strict_saddle as strict_saddle
from ._strict_saddle import strict_saddles as strict_saddles
