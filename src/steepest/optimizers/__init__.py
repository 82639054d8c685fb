"""The optimizers that networks are trained with: where each is unstable on a parabola, and how large its updates are.

They take no step themselves: ``optax`` has all of them. Each says what its numbers mean for a training: ``edge``, the
largest curvature that a step size bears, ``largest_step``, the other way round, and ``update_size``, the root mean
square of an update over the step size.
"""

from ._muon import Muon as Muon
from ._rules import Adam as Adam
from ._rules import Momentum as Momentum
from ._rules import NAdam as NAdam
from ._rules import Sam as Sam
from ._update_sizes import Moments as Moments
from ._update_sizes import gaussian_moments as gaussian_moments
from ._update_sizes import mean_square_of_adam as mean_square_of_adam
from ._update_sizes import spread_of_second_moment as spread_of_second_moment
from ._update_sizes import update_size_of_adam as update_size_of_adam
