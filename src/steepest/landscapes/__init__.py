"""Landscapes: objectives whose critical points are known, and certificates for those that are not."""

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
from ._saddle_chain import chain_ratio as chain_ratio
from ._saddle_chain import chain_saddles as chain_saddles
from ._saddle_chain import chain_times as chain_times
from ._saddle_chain import chain_value as chain_value
from ._saddle_chain import saddle_chain as saddle_chain
from ._strict_saddle import Critical as Critical
from ._strict_saddle import strict_saddle as strict_saddle
from ._strict_saddle import strict_saddles as strict_saddles
