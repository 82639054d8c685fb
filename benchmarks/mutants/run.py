"""Which errors of a prediction the checks notice: stored arrays, judged against near misses of the prediction.

Every predicted quantity is made wrong, one at a time: times 1.05, times 1.2, and, where it is the exponent of a check,
plus and minus 0.1 and 0.2. The experiment is not run again. What no check notices is the list worth reading.

    python benchmarks/mutants/run.py [CLAIM ...] [--out results] [--json FILE]
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from steepest import catalogue
from steepest.core.checks import Check
from steepest.core.words import Verdict
from steepest.engine.results import Result
from steepest.engine.run import answer, ready
from steepest.engine.store import Store

FACTORS = (1.05, 1.2)
SHIFTS = (-0.2, -0.1, 0.1, 0.2)


def main() -> None:
    """Print a line for every mutant, and for every claim its checks with what fails them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("claims", nargs="*", help="which; all without any")
    parser.add_argument("--out", type=Path, default=Path("results"), help="the store of results")
    parser.add_argument("--json", type=Path, help="also write the table here")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    table = {}
    for name in options.claims or catalogue.built_in():
        asked = ready(name)
        result = answer(asked, store=Store(options.out))
        table[name] = {
            "verdict": str(result.verdict),
            "checks": [
                {
                    "id": check.id,
                    "verdict": str(check.verdict),
                    "challenged_by": check.challenged_by,
                    "idle": check.idle,
                    "would_notice": check.would_notice,
                }
                for check in result.checks
            ],
            "mutants": dict(mutants(asked.claim, result)),
        }
        show(name, table[name])
        jax.clear_caches()
        if options.json:
            options.json.write_text(json.dumps(table, indent=1, ensure_ascii=False), "utf-8")
    noticers = [ids for row in table.values() for ids in row["mutants"].values()]
    unnoticed = sum(not ids for ids in noticers)
    checks = [check for row in table.values() for check in row["checks"]]
    idle = sum(not check["challenged_by"] for check in checks)
    print(
        f"\n{len(noticers)} mutants, {unnoticed} not noticed; {len(checks)} checks, {idle} that nothing fails"
    )


def mutants(claim: Any, result: Result) -> Iterator[tuple[str, list[str]]]:
    """Yield every wrong prediction in words, with the ids of the checks that the claim passes and that refute it."""
    if not result.observed:
        return
    own = {check.id: check for check in result.checks}
    for name, values in result.predicted.items():
        if values.dtype.kind not in "fiu" or not np.any(values):
            continue
        wrong = {f"{name} × {factor}": values * factor for factor in FACTORS}
        if is_exponent(float(values.flat[0]), values.size, result.checks):
            wrong |= {f"{name} {shift:+}": values + shift for shift in SHIFTS}
        for words, mutant in wrong.items():
            quantity = result.predicted.quantity(name)
            theory: Any = result.predicted.replace(**{name: (quantity.dims, mutant)})
            try:
                checks = claim.judge(theory, result.observed)
            except (ValueError, KeyError, IndexError) as refusal:
                yield words, [f"refused: {refusal}"]
                continue
            yield words, noticed(own, checks)


def noticed(own: dict[str, Check], checks: list[Check]) -> list[str]:
    """Return the ids of the checks that fail though the claim's own do not."""
    return [
        check.id
        for check in checks
        if check.verdict is Verdict.FAILS
        and check.id in own
        and own[check.id].verdict is not Verdict.FAILS
    ]


def is_exponent(value: float, size: int, checks: tuple[Check, ...]) -> bool:
    """Whether a predicted number is the exponent of some check."""
    return size == 1 and any(c.kind == "exponent" and c.predicted == value for c in checks)


def show(name: str, row: dict[str, Any]) -> None:
    """Print a claim's checks and mutants."""
    print(f"\n{name}: {row['verdict']}")
    for check in row["checks"]:
        by = ", ".join(check["challenged_by"]) or (
            "idle: " + check["idle"] if check["idle"] else "NOTHING"
        )
        print(
            f"  {check['id']:32} {check['verdict']:13} notices {check['would_notice']:14} failed by {by}"
        )
    for words, ids in row["mutants"].items():
        print(f"    {words:34} {', '.join(ids) or '— not noticed'}", flush=True)


if __name__ == "__main__":
    main()
