"""Statistics of repetitions: intervals, the jackknife, extrapolation, ranks, power laws. Nothing here imports JAX."""

from ._extrapolation import Extrapolation as Extrapolation
from ._extrapolation import extrapolate as extrapolate
from ._jackknife import Estimate as Estimate
from ._jackknife import jackknife as jackknife
from ._jackknife import pseudo_values as pseudo_values
from ._means import group_means as group_means
from ._means import simultaneous_intervals as simultaneous_intervals
from ._medians import medians as medians
from ._power_law import PowerFit as PowerFit
from ._power_law import fit_power as fit_power
from ._ranks import RankKind as RankKind
from ._ranks import rank_correlation as rank_correlation
from ._shares import clustered_share as clustered_share
from ._shares import wilson as wilson
