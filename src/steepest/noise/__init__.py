"""Noise: stochastic gradients, random walkers, and the exact laws that they are compared with."""

from ._chains import stationary as stationary
from ._metropolis import MetropolisWalk as MetropolisWalk
from ._metropolis import metropolis as metropolis
from ._underdamped import UnderdampedWalk as UnderdampedWalk
from ._underdamped import baoab_rate as baoab_rate
from ._underdamped import underdamped as underdamped
