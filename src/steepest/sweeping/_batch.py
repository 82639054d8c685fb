"""What a worker does: a piece of a sweep, many points as one compiled computation, to plain records."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claims import load
from steepest.claims._cell import Cell, scalar, traced
from steepest.claims._claim import Claim
from steepest.errors import UserError
from steepest.judging import Check, Hypothesis, Verdict, conclude
from steepest.running import build, execute
from steepest.sweeping._cost import cost, lanes
from steepest.sweeping._fingerprint import fingerprint

FAILED = "failed"
"""The verdict of a point that could not be computed."""
Record = dict[str, Any]


def compute(request: Mapping[str, Any]) -> list[Record]:
    """Compute the points of one request of :meth:`Plan.request`, in its order.

    A point that fails is a record with the reason; it does not stop the others.

    Raises:
        UserError: if the request comes from another version of steepest than the one that runs here.
    """
    if request.get("from", fingerprint()) != fingerprint():
        raise UserError(
            f"a worker runs {fingerprint()} and the sweep was started with {request['from']}, whose numbers may "
            "differ; install the same versions on every machine"
        )
    kind = load(request["claim"])
    if not request["cell"]:
        return [_whole(request, kind, fields, seed) for fields, seed in request["points"]]
    with jax.enable_x64(kind.precision == "float64"):
        return _cells(request, kind)


def _whole(request: Mapping[str, Any], kind: type[Claim], fields: Mapping[str, Any], seed: int) -> Record:
    """The record of a run of the whole claim."""
    start = time.perf_counter()
    try:
        claim = build(kind, request["preset"], {**request["fixed"], **fields})
        result = execute(request["claim"], claim, request["preset"], seed, lambda stage: None)
    except Exception as trouble:
        return failed(fields, seed, trouble, time.perf_counter() - start)
    judged = result.verdict, result.reason, result.hypotheses, result.checks
    return _record(fields, seed, judged, {}, result.seconds)


def _cells(request: Mapping[str, Any], kind: type[Claim]) -> list[Record]:
    """The records of a batch of cells: settings one by one, observations together, judgements one by one."""
    assert kind.cell is not None
    begin, points = time.perf_counter(), request["points"]
    for_setting, for_observation = seeded_keys([seed for _, seed in points])
    cells: list[Any] = [None] * len(points)
    settings: list[Any] = [None] * len(points)
    troubles: dict[int, Exception] = {}
    for i, (fields, _) in enumerate(points):
        try:
            cells[i] = kind.cell(build(kind, request["preset"], {**request["fixed"], **fields}))
            settings[i] = cells[i].setting(for_setting[i])
        except Exception as trouble:
            troubles[i] = trouble
    sound = [i for i in range(len(points)) if i not in troubles]
    if sound:
        # a point without a setting gets a neighbour's, so that the others keep their places in the batch
        filled = [i if i in sound else sound[0] for i in range(len(points))]
        batch = [cells[i] for i in filled], [settings[i] for i in filled], for_observation
        observed = _observe(*batch, request["batched"], request["size"], troubles)
    each = (time.perf_counter() - begin) / len(points)
    records = []
    for i, (fields, seed) in enumerate(points):
        start = time.perf_counter()
        try:
            if i in troubles:
                raise troubles[i]
            seen = {name: value[i] for name, value in observed.items()}
            judged, quantities = _judge(cells[i], settings[i], seen)
            records.append(_record(fields, seed, judged, quantities, each + time.perf_counter() - start))
        except Exception as trouble:
            records.append(failed(fields, seed, trouble, each))
    return records


def _observe(
    cells: list[Cell], settings: list, keys: Any, names: Sequence[str], size: int, troubles: dict[int, Exception]
) -> dict[str, np.ndarray]:
    """Observations of all cells, in pieces that memory allows; if a piece fails, its points are tried alone."""
    width = group_of(cells[0], names).lanes(settings[0], keys[0], size)
    # every program has the same number of lanes, the last point repeated to fill it: one compilation a group
    order = [*range(len(cells)), *[len(cells) - 1] * (-(-size // width) * width - len(cells))]
    found: dict[int, dict[str, np.ndarray]] = {}
    for start in range(0, len(cells), width):
        piece = order[start : start + width]
        try:
            found |= _together(cells, settings, keys, names, piece)
        except Exception:
            for i in dict.fromkeys(piece):
                try:
                    found |= _together(cells, settings, keys, names, [i])
                except Exception as trouble:
                    troubles[i] = trouble
    example = next(iter(found.values()), {})
    missing = {name: np.full_like(value, 0) for name, value in example.items()}
    return {name: np.stack([found.get(i, missing)[name] for i in range(len(cells))]) for name in example}


def _together(cells: list[Cell], settings: list, keys: Any, names: Sequence[str], piece: list[int]) -> dict:
    """One compiled computation; the observation of each point by its number."""
    claims = [cells[i].claim for i in piece]
    values = {name: jnp.asarray([scalar(getattr(claim, name)) for claim in claims]) for name in names}
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(settings[i] for i in piece))
    out = group_of(cells[0], names).program(values, stacked, keys[np.array(piece)])
    out = {name: np.asarray(value) for name, value in out.items()}
    return {i: {name: value[lane] for name, value in out.items()} for lane, i in enumerate(piece)}


class Group:
    """The compiled experiment of points that differ only in batched fields, settings and seeds."""

    def __init__(self, kind: type[Cell], claim: Claim, names: Sequence[str]):
        self.program = jax.jit(jax.vmap(lambda values, setting, key: kind(traced(claim, values)).observe(setting, key)))
        self.kind, self.claim, self.names = kind, claim, names
        self._lanes: dict[int, int] = {}

    def lanes(self, setting: Any, key: Any, most: int) -> int:
        """How many points are computed at once; found once, as it takes a trace of the experiment."""
        if most == 1:
            return 1
        if most not in self._lanes:
            try:
                self._lanes[most] = lanes(cost(self.kind(self.claim), self.names, setting, key).bytes, most)
            except Exception:  # what cannot be traced fails in every point, with its reason
                self._lanes[most] = 1
        return self._lanes[most]


@lru_cache(maxsize=8)
def group(kind: type[Cell], claim: Claim, names: tuple[str, ...]) -> Group:
    """The group of a claim whose batched fields have their defaults."""
    return Group(kind, claim, names)


def group_of(cell: Cell, names: Sequence[str]) -> Group:
    """The group that a point belongs to."""
    usual = {name: type(cell.claim).__dataclass_fields__[name].default for name in names}
    return group(type(cell), replace(cell.claim, **usual), tuple(names))


@jax.jit
def _split(seeds: jax.Array) -> jax.Array:
    return jax.vmap(lambda seed: jax.random.split(jax.random.key(seed)))(seeds)


def seeded_keys(seeds: Sequence[int]) -> tuple[Any, Any]:
    """For each seed the keys that :func:`steepest.running.seeded` gives."""
    both = _split(jnp.asarray(seeds))
    return both[:, 0], both[:, 1]


def _judge(cell: Cell, setting: Any, observed: dict[str, np.ndarray]) -> tuple:
    predicted = cell.predict(setting)
    premises, checks = cell.premises(observed), cell.judge(predicted, observed)
    verdict, reason = conclude(premises, checks, [])
    return (verdict, reason.removesuffix(", 0 rivals rejected"), premises, checks), cell.quantities(predicted, observed)


def _record(
    fields: Mapping[str, Any], seed: int, judged: tuple[Verdict, str, Sequence[Hypothesis], Sequence[Check]],
    quantities: Mapping[str, float], seconds: float,
) -> Record:  # fmt: skip
    verdict, reason, hypotheses, checks = judged
    return {
        "fields": {k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()},
        "seed": seed,
        "verdict": str(verdict),
        "reason": reason,
        "checks": [_check(check) for check in checks],
        "hypotheses": [{**asdict(h), "value": _number(h.value), "threshold": _number(h.threshold)} for h in hypotheses],
        "quantities": {name: _number(value) for name, value in quantities.items()},
        "seconds": round(seconds, 4),
    }


def failed(fields: Mapping[str, Any], seed: int, trouble: BaseException | str, seconds: float) -> Record:
    """The record of a point that could not be computed, with the reason."""
    reason = trouble if isinstance(trouble, str) else f"{type(trouble).__name__}: {trouble}"
    judged: Any = (FAILED, (reason.splitlines() or [""])[0][:500], (), ())
    return _record(fields, seed, judged, {}, seconds)


def _check(check: Check) -> dict[str, Any]:
    return {
        "name": check.name,
        "predicted": _number(check.predicted),
        "measured": _number(check.measured),
        "interval": [_number(check.interval.low), _number(check.interval.high)],
        "margin": [_number(check.margin.low), _number(check.margin.high)],
        "verdict": str(check.verdict),
    }


def _number(value: Any) -> float | None:
    """A number for JSON, which has no infinities."""
    value = float(value)
    return value if math.isfinite(value) else None
