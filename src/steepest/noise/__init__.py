"""Noise: stochastic gradients, random walkers, and the exact laws that they are compared with."""

from ._chains import stationary as stationary
from ._metropolis import MetropolisWalk as MetropolisWalk
from ._metropolis import metropolis as metropolis
from ._moments import BatchCumulants as BatchCumulants
from ._moments import GradientMoments as GradientMoments
from ._moments import Sampling as Sampling
from ._moments import batch_cumulants as batch_cumulants
from ._moments import batch_factor as batch_factor
from ._moments import draw_batches as draw_batches
from ._moments import gradient_moments as gradient_moments
from ._steady_state import SteadyState as SteadyState
from ._steady_state import steady_state as steady_state
from ._underdamped import UnderdampedWalk as UnderdampedWalk
from ._underdamped import baoab_rate as baoab_rate
from ._underdamped import underdamped as underdamped
