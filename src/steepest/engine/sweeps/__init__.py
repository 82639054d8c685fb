"""Sweeps: a claim at many points of its fields, on one machine or on many."""

from ._axes import Axis as Axis
from ._batch import Record as Record
from ._batch import compute as compute
from ._estimate import Estimate as Estimate
from ._estimate import estimate as estimate
from ._pieces import Pieces as Pieces
from ._pieces import point_key as point_key
from ._plan import BATCH as BATCH
from ._plan import Plan as Plan
from ._plan import plan as plan
from ._sweep import Work as Work
from ._sweep import gather as gather
from ._sweep import stored_points as stored_points
from ._sweep import stored_sweeps as stored_sweeps
from ._sweep import work as work
from ._table import SIDES as SIDES
from ._table import Sweep as Sweep
from ._table import exportable as exportable
