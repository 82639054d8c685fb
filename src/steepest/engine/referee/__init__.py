"""What a hostile reader of a claim would try, by program: wrong arrays before its own judge, and other settings."""

from ._bench import Bench as Bench
from ._bench import bench as bench
from ._bench import bench_of as bench_of
from ._findings import Finding as Finding
from ._findings import Flaw as Flaw
from ._findings import Review as Review
from ._findings import SettingRun as SettingRun
from ._findings import Severity as Severity
from ._review import RUNS as RUNS
from ._review import judge_arrays as judge_arrays
from ._review import review as review
from ._settings import proposals as proposals
