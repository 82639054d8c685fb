"""The theory's quantities of a user's own model."""

from steepest.measuring._loading import load_checkpoint as load_checkpoint
from steepest.measuring._loading import load_model as load_model
from steepest.measuring._measure import measure as measure
from steepest.measuring._monitor import Monitor as Monitor
from steepest.measuring._monitor import read_log as read_log
from steepest.measuring._quantities import QUANTITIES as QUANTITIES
from steepest.measuring._report import Quantity as Quantity
from steepest.measuring._report import Report as Report
from steepest.measuring._report import number as number
