"""Noise: stochastic gradients, random walkers, and the exact laws that they are compared with."""

from ._moments import GradientMoments as GradientMoments
from ._moments import Sampling as Sampling
from ._moments import batch_factor as batch_factor
from ._moments import excess_kurtosis as excess_kurtosis
from ._moments import gradient_moments as gradient_moments
from ._steady_state import SteadyState as SteadyState
from ._steady_state import steady_state as steady_state
