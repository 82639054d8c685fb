"""Margins: of classifiers and networks, and the convex programs that say how large they can be."""

from steepest.margins._bregman import bregman_interpolation as bregman_interpolation
from steepest.margins._interpolation import Interpolation as Interpolation
from steepest.margins._interpolation import hypentropy as hypentropy
from steepest.margins._interpolation import hypentropy_interpolation as hypentropy_interpolation
from steepest.margins._interpolation import min_norm_interpolation as min_norm_interpolation
from steepest.margins._normalized import linear_margin as linear_margin
from steepest.margins._normalized import network_margins as network_margins
from steepest.margins._norms import frobenius_norm as frobenius_norm
from steepest.margins._norms import row_group_norm as row_group_norm
from steepest.margins._norms import spectral_norm as spectral_norm
from steepest.margins._norms import stable_rank as stable_rank
from steepest.margins._norms import weight_matrices as weight_matrices
from steepest.margins._paths import path_norm as path_norm
from steepest.margins._programs import MarginProgram as MarginProgram
from steepest.margins._programs import hard_margin as hard_margin
from steepest.margins._programs import separable as separable
from steepest.margins._separable import LogisticSplit as LogisticSplit
from steepest.margins._separable import logistic_split as logistic_split
from steepest.margins._separable import split_coordinates as split_coordinates
from steepest.margins._spectral import normalized_margins as normalized_margins
from steepest.margins._spectral import spectral_complexity as spectral_complexity
from steepest.margins._stumps import StumpMargin as StumpMargin
from steepest.margins._stumps import stump_margin as stump_margin
