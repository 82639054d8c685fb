"""Everything that an author of a claim needs: base classes, field types, checks, curves and panels.

``steepest new my_claim.py`` writes a claim that runs as it is. A claim may live in any file or package.
"""

from steepest.claim._compile import compiled as compiled
from steepest.claim._experiment import Arrays as Arrays
from steepest.claim._experiment import Claim as Claim
from steepest.claim._experiment import Experiment as Experiment
from steepest.claim._experiment import Kind as Kind
from steepest.claim._experiment import Point as Point
from steepest.claim._experiment import documentation as documentation
from steepest.claim._experiment import keys as keys
from steepest.claim._experiment import same_lengths as same_lengths
from steepest.claim._experiment import seeded as seeded
from steepest.core.arrays import Observation as Observation
from steepest.core.arrays import Prediction as Prediction
from steepest.core.checks import Check as Check
from steepest.core.checks import Control as Control
from steepest.core.checks import Rival as Rival
from steepest.core.checks import agreement as agreement
from steepest.core.checks import bound as bound
from steepest.core.checks import equal as equal
from steepest.core.checks import exponent as exponent
from steepest.core.checks import idle as idle
from steepest.core.checks import order as order
from steepest.core.errors import UserError as UserError
from steepest.core.fields import Count as Count
from steepest.core.fields import Fraction as Fraction
from steepest.core.fields import NonNegative as NonNegative
from steepest.core.fields import Positive as Positive
from steepest.core.fields import Seeds as Seeds
from steepest.core.fields import Within as Within
from steepest.core.hypotheses import Hypothesis as Hypothesis
from steepest.core.hypotheses import assume as assume
from steepest.core.intervals import Interval as Interval
from steepest.core.panels import Curve as Curve
from steepest.core.panels import Panel as Panel
from steepest.core.panels import context_curve as context_curve
from steepest.core.panels import observed_curve as observed_curve
from steepest.core.panels import panel as panel
from steepest.core.panels import predicted_curve as predicted_curve
from steepest.core.panels import rival_curve as rival_curve
from steepest.core.words import Verdict as Verdict
from steepest.nn.draws import numpy_generator as numpy_generator
from steepest.nn.types import Key as Key
from steepest.nn.types import Values as Values
