"""The theory's quantities of a user's own model."""

from steepest.measurement._building import Builder as Builder
from steepest.measurement._building import Built as Built
from steepest.measurement._chain import activation_of as activation_of
from steepest.measurement._chain import require_chain as require_chain
from steepest.measurement._class_decomposition import (
    check_cross_entropy as check_cross_entropy,
)
from steepest.measurement._compare import LEGEND as LEGEND
from steepest.measurement._compare import Change as Change
from steepest.measurement._compare import Comparison as Comparison
from steepest.measurement._compare import compare as compare
from steepest.measurement._context import Context as Context
from steepest.measurement._kernel import kernel_matrix as kernel_matrix
from steepest.measurement._last_layer import LastLayer as LastLayer
from steepest.measurement._last_layer import collapse_of as collapse_of
from steepest.measurement._last_layer import last_layer as last_layer
from steepest.measurement._loading import load_checkpoint as load_checkpoint
from steepest.measurement._measure import measure as measure
from steepest.measurement._optimizer import decays_of as decays_of
from steepest.measurement._quantities import QUANTITIES as QUANTITIES
from steepest.measurement._report import BRIEF as BRIEF
from steepest.measurement._report import ERRORS as ERRORS
from steepest.measurement._report import Finding as Finding
from steepest.measurement._report import Reading as Reading
from steepest.measurement._report import Report as Report
from steepest.measurement._report import errors as errors
from steepest.measurement._report import number as number
from steepest.measurement._report import read_report as read_report
from steepest.measurement._sample import sample as sample
from steepest.measurement.training import Monitor as Monitor
from steepest.measurement.training import Series as Series
from steepest.measurement.training import TrainingRun as TrainingRun
from steepest.measurement.training import read_log as read_log
from steepest.measurement.training import watch as watch
from steepest.measurement.widths import WIDTHS as WIDTHS
from steepest.measurement.widths import width_check as width_check
