"""Which training examples move a model output: gradient features, influence on them, and its test by retraining."""

from steepest.measurement.attribution._datamodeling import DatamodelingScore as DatamodelingScore
from steepest.measurement.attribution._datamodeling import (
    linear_datamodeling_score as linear_datamodeling_score,
)
from steepest.measurement.attribution._features import GradientFeatures as GradientFeatures
from steepest.measurement.attribution._features import gradient_features as gradient_features
from steepest.measurement.attribution._influence import Attribution as Attribution
from steepest.measurement.attribution._influence import attribute as attribute
