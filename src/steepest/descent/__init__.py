"""Descents: discrete, continuous, and what they record."""

from ._descend import Trajectory as Trajectory
from ._descend import descend as descend
from ._descend import logarithmic as logarithmic
from ._descend import minibatch as minibatch
from ._descend import schedule as schedule
