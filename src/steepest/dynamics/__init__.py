"""Descents: discrete, continuous, and what they record."""

from ._boosting import Boosting as Boosting
from ._boosting import adaboost as adaboost
from ._descend import Observer as Observer
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
from ._kernel_flow import KernelFlow as KernelFlow
from ._kernel_flow import kernel_flow as kernel_flow
from ._mirror import mirror_descent as mirror_descent
from ._path_sgd import path_sgd as path_sgd
from ._quadratic import Method as Method
from ._quadratic import QuadraticRates as QuadraticRates
from ._quadratic import mean_square as mean_square
from ._quadratic import momentum_factor as momentum_factor
from ._quadratic import quadratic_rates as quadratic_rates
from ._steepest import steepest_descent as steepest_descent
from ._steepest import steepest_direction as steepest_direction
