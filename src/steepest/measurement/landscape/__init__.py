"""The risk around trained weights: how singular their minimum is, and pictures of planes through them."""

from steepest.measurement.landscape._learning_coefficient import (
    LearningCoefficient as LearningCoefficient,
)
from steepest.measurement.landscape._learning_coefficient import (
    learning_coefficient as learning_coefficient,
)
from steepest.measurement.landscape._risk_plane import RiskPlane as RiskPlane
from steepest.measurement.landscape._risk_plane import risk_plane as risk_plane
