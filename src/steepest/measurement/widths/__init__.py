"""The coordinate check of the maximal update parametrization: powers of the width, and what they say to do."""

from steepest.measurement.widths._check import WIDTHS as WIDTHS
from steepest.measurement.widths._check import width_check as width_check
