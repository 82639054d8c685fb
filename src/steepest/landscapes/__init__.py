"""Landscapes: objectives whose critical points are known, and certificates for those that are not."""

from ._lqr import Lqr as Lqr
from ._lqr import Optimum as Optimum
from ._lqr import Terms as Terms
from ._lqr import lqr as lqr
from ._strict_saddle import Critical as Critical
from ._strict_saddle import strict_saddle as strict_saddle
from ._strict_saddle import strict_saddles as strict_saddles
