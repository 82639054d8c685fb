"""Networks of several widths: the coordinate check of µP, and whether the best step size is the same at each."""

from steepest.measurement.widths._check import WIDTHS as WIDTHS
from steepest.measurement.widths._check import width_check as width_check
from steepest.measurement.widths._trainings import Plan as Plan
from steepest.measurement.widths._transfer import step_transfer as step_transfer
