"""What a reader's editor must know of the installed package: a type checker goes through it in ``.ci/release``."""

from typing import assert_type

import steepest
from steepest.kit import Verdict

result = steepest.run("catapult", multiple=5.0)
assert_type(result.verdict, Verdict)
assert_type(steepest.check("my_claim.py"), list[str])
report = steepest.read_report("report.json")
assert_type(report, steepest.Report)
names = list(steepest.claims())
assert_type(names, list[str])
