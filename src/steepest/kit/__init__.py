"""Everything that an author of a claim needs, in one namespace: ``from steepest import kit``.

A claim says its law once, as arrays over named axes; the kit compares law and measurement at every point of the axes,
and tries the law flat, reversed and tilted along each. ``steepest.kit.points`` has what a point of a diagram needs,
which has no axes, and ``steepest.kit.subjects`` the form of a claim on a reader's own network.
"""

from steepest.core.arrays import Observation as Observation
from steepest.core.arrays import Prediction as Prediction
from steepest.core.checks import Check as Check
from steepest.core.checks import Control as Control
from steepest.core.checks import Rival as Rival
from steepest.core.checks import idle as idle
from steepest.core.errors import UserError as UserError
from steepest.core.experiment import Point as Point
from steepest.core.experiment import same_lengths as same_lengths
from steepest.core.fields import Count as Count
from steepest.core.fields import Fraction as Fraction
from steepest.core.fields import NonNegative as NonNegative
from steepest.core.fields import Positive as Positive
from steepest.core.fields import Seeds as Seeds
from steepest.core.fields import Within as Within
from steepest.core.hypotheses import Hypothesis as Hypothesis
from steepest.core.hypotheses import assume as assume
from steepest.core.panels import Curve as Curve
from steepest.core.panels import Panel as Panel
from steepest.core.panels import context_curve as context_curve
from steepest.core.panels import observed_curve as observed_curve
from steepest.core.panels import panel as panel
from steepest.core.panels import predicted_curve as predicted_curve
from steepest.core.panels import rival_curve as rival_curve
from steepest.core.scope import Scope as Scope
from steepest.core.scope import between as between
from steepest.core.scope import choices as choices
from steepest.core.scope import meanings as meanings
from steepest.core.scope import param as param
from steepest.core.scope import scope_of as scope_of
from steepest.core.words import Verdict as Verdict
from steepest.kit._arrays import law as law
from steepest.kit._arrays import seen as seen
from steepest.kit._bounds import bound_curve as bound_curve
from steepest.kit._checks import agrees as agrees
from steepest.kit._checks import at_least as at_least
from steepest.kit._checks import at_most as at_most
from steepest.kit._checks import excluded as excluded
from steepest.kit._checks import follows as follows
from steepest.kit._checks import power as power
from steepest.kit._checks import ranks as ranks
from steepest.kit._checks import share as share
from steepest.kit._claim import Claim as Claim
from steepest.kit._claim import Kind as Kind
from steepest.kit._claim import Version as Version
from steepest.kit._claim import claim as claim
from steepest.kit._clauses import clauses as clauses
from steepest.kit._compile import compiled as compiled
from steepest.kit._conditions import converged as converged
from steepest.kit._figure import curves as curves
from steepest.kit._judging import Judgement as Judgement
from steepest.kit._judging import judge_laws as judge_laws
from steepest.kit._laws import control as control
from steepest.kit._laws import rival as rival
from steepest.kit._literal import literal as literal
from steepest.kit._literal import literals_of as literals_of
from steepest.kit._nulls import wrong_along as wrong_along
from steepest.nn.draws import keys as keys
from steepest.nn.draws import numpy_generator as numpy_generator
from steepest.nn.types import Key as Key
from steepest.nn.types import Values as Values
