"""One file for each kind of node, with its rule; importing them registers the rules."""

from steepest.kernels.wide.nodes import (
    _activation as _activation,
)
from steepest.kernels.wide.nodes import (
    _attention as _attention,
)
from steepest.kernels.wide.nodes import (
    _branches as _branches,
)
from steepest.kernels.wide.nodes import (
    _dropout as _dropout,
)
from steepest.kernels.wide.nodes import (
    _embedding as _embedding,
)
from steepest.kernels.wide.nodes import (
    _exponential as _exponential,
)
from steepest.kernels.wide.nodes import (
    _input as _input,
)
from steepest.kernels.wide.nodes import (
    _linear as _linear,
)
from steepest.kernels.wide.nodes import (
    _matrix as _matrix,
)
from steepest.kernels.wide.nodes import (
    _normalization as _normalization,
)
from steepest.kernels.wide.nodes import (
    _pooling as _pooling,
)
from steepest.kernels.wide.nodes import (
    _selection as _selection,
)
