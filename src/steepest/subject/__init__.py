"""Your model with its loss and data, from JAX or torch, as functions of a flat vector of weights."""

from steepest.subject._attach import in_evaluation as in_evaluation
from steepest.subject._attach import subject as subject
from steepest.subject._batches import Batches as Batches
from steepest.subject._checks import check as check
from steepest.subject._checks import few as few
from steepest.subject._dense import Dense as Dense
from steepest.subject._parts import block as block
from steepest.subject._parts import forms_by_group as forms_by_group
from steepest.subject._subject import KINDS as KINDS
from steepest.subject._subject import Kind as Kind
from steepest.subject._subject import Subject as Subject
from steepest.subject._subject import Weight as Weight
