"""Descents: discrete, continuous, and what they record."""

from ._descend import Trajectory as Trajectory
from ._descend import descend as descend
from ._descend import logarithmic as logarithmic
from ._descend import minibatch as minibatch
from ._descend import schedule as schedule
from ._flow import Clock as Clock
from ._flow import FlowPath as FlowPath
from ._flow import FlowSolver as FlowSolver
from ._flow import flow as flow
from ._grid import grid as grid
from ._grid import stability_bracket as stability_bracket
from ._grid import stability_threshold as stability_threshold
from ._losses import check_labels as check_labels
from ._losses import cross_entropy as cross_entropy
from ._losses import exponential as exponential
from ._losses import log_loss as log_loss
from ._losses import log_margin_risk as log_margin_risk
from ._losses import log_mean_loss as log_mean_loss
from ._losses import logistic as logistic
from ._losses import margin_risk as margin_risk
from ._losses import mean_risk as mean_risk
from ._losses import own_logit as own_logit
from ._losses import squared as squared
