"""Attacks on rankings: what each run has at hand anyway, in the place of what is ranked."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from steepest.core.arrays import Quantity
from steepest.core.checks import Check
from steepest.core.words import Verdict
from steepest.engine.referee._axes import averaged_to
from steepest.engine.referee._bench import Bench
from steepest.engine.referee._findings import Finding, Flaw, Severity


def attack_rankings(bench: Bench) -> Iterator[Finding]:
    """Yield every ranking that other observed quantities pass as well."""
    for id, check in bench.own.items():
        read = [name for name, ids in bench.readers_of_worlds.items() if id in ids]
        if check.kind == "order" and check.verdict is Verdict.HOLDS and len(read) == 1:
            yield from _ranking(bench, check, read[0])


def _ranking(bench: Bench, check: Check, ranked: str) -> Iterator[Finding]:
    observed = bench.result.observed
    passing = []
    for name in observed:
        values = _shaped(observed.quantity(name), observed.quantity(ranked))
        if name != ranked and values is not None and np.ptp(values) > 0:
            passing += [
                word + name
                for word, sign in _SIGNS
                if _passes(bench, check.id, ranked, sign * values)
            ]
    said = tuple(getattr(check, "also_passed_by", ()))
    if passing:
        stated = check.id in bench.headline and not said
        severity = Severity.WEAK if stated else Severity.NOTE
        numbers = {"nulls": passing, "said": said}
        yield Finding(
            Flaw.CHEAP_NULL,
            severity,
            ranked,
            "",
            (check.id,),
            numbers,
            _again(bench, ranked, passing[0]),
        )


_SIGNS = (("", 1.0), ("-", -1.0))


def _shaped(other: Quantity, ranked: Quantity) -> NDArray | None:
    """Return another quantity averaged to the axes of the ranked one; None where it lacks one of them."""
    if set(ranked.dims) - set(other.dims) or other.values.dtype.kind not in "biuf":
        return None
    values = averaged_to(other, ranked.dims)
    return values if values.shape == ranked.values.shape else None


def _passes(bench: Bench, id: str, ranked: str, values: NDArray) -> bool:
    quantity = bench.result.observed.quantity(ranked)
    checks = bench.judge(observed={ranked: (quantity.dims, values, quantity.unit)}) or {}
    return id in checks and checks[id].verdict is Verdict.HOLDS


def _again(bench: Bench, ranked: str, null: str) -> str:
    """Return lines of Python that rank by something else."""
    return (
        "from steepest.engine.referee import bench\n"
        f'bench("{bench.target}").rank_by("{ranked}", "{null}")'
    )
