"""The theory's quantities of a user's own model."""

from steepest.measurement._building import Builder as Builder
from steepest.measurement._building import Built as Built
from steepest.measurement._loading import load_checkpoint as load_checkpoint
from steepest.measurement._log import read_log as read_log
from steepest.measurement._measure import measure as measure
from steepest.measurement._monitor import Monitor as Monitor
from steepest.measurement._quantities import QUANTITIES as QUANTITIES
from steepest.measurement._report import BRIEF as BRIEF
from steepest.measurement._report import ERRORS as ERRORS
from steepest.measurement._report import Reading as Reading
from steepest.measurement._report import Report as Report
from steepest.measurement._report import errors as errors
from steepest.measurement._report import number as number
from steepest.measurement._training_run import Series as Series
from steepest.measurement._training_run import TrainingRun as TrainingRun
from steepest.measurement._training_run import watch as watch
