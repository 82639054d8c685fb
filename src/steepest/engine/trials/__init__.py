"""Trials: a claim at fresh seeds and at random settings of its scope, and how often it holds."""

from ._outcome import TrialRow as TrialRow
from ._outcome import Trials as Trials
from ._outcome import gather as gather
from ._plan import BLOCK as BLOCK
from ._plan import MOST as MOST
from ._plan import RunKind as RunKind
from ._plan import TrialPlan as TrialPlan
from ._plan import TrialRun as TrialRun
from ._regions import FieldMap as FieldMap
from ._regions import Region as Region
from ._tally import Tally as Tally
