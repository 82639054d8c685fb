"""Your model with its loss and data, from JAX or torch, as functions of a flat vector of weights."""

from steepest.measurement.adapters._attach import Noise as Noise
from steepest.measurement.adapters._attach import gradient_seconds as gradient_seconds
from steepest.measurement.adapters._attach import in_evaluation as in_evaluation
from steepest.measurement.adapters._attach import is_torch_module as is_torch_module
from steepest.measurement.adapters._attach import normalizing_layers as normalizing_layers
from steepest.measurement.adapters._attach import quick_threads as quick_threads
from steepest.measurement.adapters._attach import subject as subject
from steepest.measurement.adapters._batches import Batches as Batches
from steepest.measurement.adapters._checks import check_subject as check_subject
from steepest.measurement.adapters._checks import few as few
from steepest.measurement.adapters._checks import on_rows as on_rows
from steepest.measurement.adapters._checks import random_states as random_states
from steepest.measurement.adapters._dense import Dense as Dense
from steepest.measurement.adapters._parts import batch_forms as batch_forms
from steepest.measurement.adapters._parts import batch_gradient as batch_gradient
from steepest.measurement.adapters._parts import block as block
from steepest.measurement.adapters._parts import forms_by_group as forms_by_group
from steepest.measurement.adapters._parts import gradient_of as gradient_of
from steepest.measurement.adapters._parts import random_batches as random_batches
from steepest.measurement.adapters._parts import rescaled_products as rescaled_products
from steepest.measurement.adapters._subject import KINDS as KINDS
from steepest.measurement.adapters._subject import Kind as Kind
from steepest.measurement.adapters._subject import Subject as Subject
from steepest.measurement.adapters._subject import Weight as Weight
