"""Attacks on observations: noise, shuffled, reversed and constant arrays in the place of what a headline reads."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from steepest.core.checks import Check
from steepest.core.words import Verdict
from steepest.engine.referee._axes import VARIES, mean_of, varies
from steepest.engine.referee._bench import Bench
from steepest.engine.referee._findings import Finding, Flaw, Severity

SCALES = (1.0, 3.0)
"""Sizes of noise: a check that holds with both sees neither pattern nor size."""
SMALL = 0.1
"""Size of the noise that a bound from below is tried with too: any noise that is large enough passes it."""
ONE_SIDED = ("bound", "agreement", "search")
"""Kinds of check to which the order along an axis means nothing; their noise is as large as their limit."""
DRAWS = (0, 1)
"""Noise and shuffles are drawn twice, so that no lucky draw makes a finding."""
ORDERS = ("shuffled", "reversed", "constant")


def attack_worlds(bench: Bench) -> Iterator[Finding]:
    """Yield the headline checks that hold with noise, and the orders along an axis that no check misses."""
    for id in bench.headline:
        if bench.own[id].verdict is Verdict.HOLDS:
            yield from _noise(bench, id)
    observed = bench.result.observed
    for name in observed:
        quantity = observed.quantity(name)
        stated = tuple(id for id in bench.headline if _judges_order(bench, id, name))
        if not stated or quantity.values.dtype.kind not in "biuf":
            continue
        for axis, size in zip(quantity.dims, quantity.values.shape, strict=True):
            designs = size > 1 and axis not in bench.repeated
            if designs and varies(quantity, axis, bench.repeated):
                yield from _orders(bench, name, axis, stated)


def _judges_order(bench: Bench, id: str, name: str) -> bool:
    """Whether an order along an axis of an array means something to a check: no limit is far above all of it."""
    if id not in bench.readers_of_worlds[name] or bench.own[id].kind in ONE_SIDED:
        return False
    limit = _limit(bench.own[id])
    return limit == 0 or bool((np.abs(bench.result.observed[name]) > limit).any())


def _noise(bench: Bench, id: str) -> Iterator[Finding]:
    """Yield what a headline check makes of noise: in all arrays that it reads, or in one of several."""
    read = [name for name, ids in bench.readers_of_worlds.items() if id in ids]
    if not read:
        return
    if _holds_with_noise(bench, read, id):
        numbers = {"arrays": read, "scales": _scales(bench.own[id]), "draws": len(DRAWS)}
        again = _again(bench, read, "noise")
        yield Finding(Flaw.IDENTITY, Severity.SEVERE, "", "", (id,), numbers, again)
        return
    blind = [name for name in read if len(read) > 1 and _holds_with_noise(bench, [name], id)]
    for name in blind:
        numbers = {"kinds": ["noise"]}
        again = _again(bench, [name], "noise")
        yield Finding(Flaw.WORLD_NOT_TOLD, Severity.NOTE, name, "", (id,), numbers, again)


def _holds_with_noise(bench: Bench, arrays: Sequence[str], id: str) -> bool:
    """Whether a check holds with noise of every size and every draw in the place of some arrays."""
    check = bench.own[id]
    limit = _limit(check)
    for seed in DRAWS:
        for sizes in _sizes_of_noise(arrays, _scales(check)):
            checks = bench.with_noise(sizes, seed, limit) or {}
            if id not in checks or checks[id].verdict is not Verdict.HOLDS:
                return False
    return True


def _scales(check: Check) -> tuple[float, ...]:
    """Return the sizes of noise that a check is tried with, in units of what was observed."""
    from_below = check.kind == "bound" and check.margin.high == math.inf
    return (SMALL, *SCALES) if from_below else SCALES


def _sizes_of_noise(
    arrays: Sequence[str], scales: Sequence[float]
) -> Iterator[Mapping[str, float]]:
    """Yield sizes of noise for each array: the same for all, and of every second array the smallest and the largest.

    A check that two arrays differ little holds with noise of one size in both: such noise is a world as it says.
    """
    for scale in scales:
        yield dict.fromkeys(arrays, scale)
    if len(arrays) > 1:
        for first in (0, 1):
            yield {
                name: max(scales) if place % 2 == first else min(scales)
                for place, name in enumerate(arrays)
            }


def _limit(check: Check) -> float:
    """Return the largest number that a check of a bound, or of zero, allows; zero of others."""
    bounded = check.kind in ONE_SIDED
    of_zero = check.predicted == 0 and check.kind not in ("exponent", "order")
    ends = (check.margin.low, check.margin.high) if bounded or of_zero else ()
    return max((abs(end) for end in ends if math.isfinite(end)), default=0.0)


def _orders(bench: Bench, name: str, axis: str, stated: tuple[str, ...]) -> Iterator[Finding]:
    """Yield the orders along an axis in which all checks agree as they do with what was observed."""
    blind = [kind for kind in ORDERS if _holds_in_order(bench, name, kind, axis)]
    if blind:
        numbers = {"kinds": blind}
        again = _again(bench, [name], blind[0], axis)
        yield Finding(Flaw.WORLD_NOT_TOLD, Severity.WEAK, name, axis, stated, numbers, again)


def _holds_in_order(bench: Bench, name: str, kind: str, axis: str) -> bool:
    draws = DRAWS if kind == "shuffled" else DRAWS[:1]
    return all(_passes_order(bench, name, kind, axis, seed) for seed in draws)


def _passes_order(bench: Bench, name: str, kind: str, axis: str, seed: int) -> bool:
    """Whether another order differs from what was observed, by more than a tenth, and all checks agree all the same."""
    other = bench.world(name, kind, axis, seed)
    mean = mean_of(bench.result.observed.quantity(name), bench.repeated)
    moved = np.abs(mean_of(other, bench.repeated) - mean).max()
    differs = moved > VARIES * np.abs(mean).max()
    return bool(differs) and bench.outcome(bench.judge(observed={name: other})).holds


def _again(bench: Bench, names: Sequence[str], kind: str, axis: str = "") -> str:
    """Return lines of Python that judge another world again."""
    arrays = ", ".join(f'"{name}"' for name in names)
    along = f', axis="{axis}"' if axis else ""
    call = f'observe_wrong({arrays}, kind="{kind}"{along})'
    return f'from steepest.engine.referee import bench\nbench("{bench.target}").{call}'
