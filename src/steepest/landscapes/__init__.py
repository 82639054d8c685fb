"""Landscapes: objectives whose critical points are known, and certificates for those that are not."""

from ._clarke import Clarke as Clarke
from ._clarke import clarke as clarke
from ._clarke import directional_gradient as directional_gradient
from ._clarke import one_sided_relu as one_sided_relu
from ._strict_saddle import Critical as Critical
from ._strict_saddle import strict_saddle as strict_saddle
from ._strict_saddle import strict_saddles as strict_saddles
