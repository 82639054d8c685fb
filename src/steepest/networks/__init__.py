"""Architectures and parameterizations."""

from ._conditional import finite_grams as finite_grams
from ._conditional import propagate_finite as propagate_finite
from ._conditional import sample_grams as sample_grams
from ._diagonal import DiagonalParams as DiagonalParams
from ._diagonal import diagonal as diagonal
from ._diagonal import diagonal_weights as diagonal_weights
from ._mlp import Mlp as Mlp
from ._mlp import deep_linear as deep_linear
from ._mlp import mlp as mlp
from ._mlp import step_scale as step_scale
from ._parameterization import PARAMETERIZATIONS as PARAMETERIZATIONS
from ._parameterization import ByLayer as ByLayer
from ._parameterization import Parameterization as Parameterization
from ._parameterization import parameterization as parameterization
from ._two_layer import Neurons as Neurons
from ._two_layer import two_layer as two_layer
from ._unconstrained import UnconstrainedMinimum as UnconstrainedMinimum
from ._unconstrained import unconstrained as unconstrained
from ._unconstrained import unconstrained_minimum as unconstrained_minimum
from ._unconstrained import unconstrained_risk as unconstrained_risk
