"""Margins: of classifiers and networks, and the convex programs that say how large they can be."""

from steepest.margins._interpolation import Interpolation as Interpolation
from steepest.margins._interpolation import hypentropy as hypentropy
from steepest.margins._interpolation import hypentropy_interpolation as hypentropy_interpolation
from steepest.margins._interpolation import min_norm_interpolation as min_norm_interpolation
from steepest.margins._normalized import linear_margin as linear_margin
from steepest.margins._normalized import network_margins as network_margins
from steepest.margins._programs import MarginProgram as MarginProgram
from steepest.margins._programs import hard_margin as hard_margin
from steepest.margins._programs import separable as separable
