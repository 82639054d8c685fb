"""What a point of a claim's diagram needs besides the kit: its base class, and checks of single numbers.

A point is the experiment at one setting of its fields. It has no axes along which a law could be judged; the diagram
has them, and its points are compared there.
"""

from steepest.core.checks import agreement as agreement
from steepest.core.checks import bound as bound
from steepest.core.checks import equal as equal
from steepest.core.checks import exponent as exponent
from steepest.core.checks import order as order
from steepest.core.experiment import Arrays as Arrays
from steepest.core.experiment import Experiment as Experiment
from steepest.core.experiment import Point as Point
from steepest.kit._numpy import run_in_numpy as run_in_numpy
