"""Along a training: the monitor and its log, warnings, callbacks and hand-over; what a log shows afterwards."""

from steepest.measurement.training._log import read_log as read_log
from steepest.measurement.training._monitor import Monitor as Monitor
from steepest.measurement.training._run import Series as Series
from steepest.measurement.training._run import TrainingRun as TrainingRun
from steepest.measurement.training._run import watch as watch
