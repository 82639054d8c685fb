"""Noise: stochastic gradients, random walkers, and the exact laws that they are compared with."""

from ._chains import ExitMoments as ExitMoments
from ._chains import exit_moments as exit_moments
from ._chains import gibbs as gibbs
from ._chains import spectral_gap as spectral_gap
from ._chains import stationary as stationary
from ._chains import transfer_matrix as transfer_matrix
from ._kramers import Kramers as Kramers
from ._kramers import kramers as kramers
from ._kramers import passage_time as passage_time
from ._langevin import Exits as Exits
from ._langevin import LangevinPath as LangevinPath
from ._langevin import langevin as langevin
from ._langevin import langevin_exits as langevin_exits
