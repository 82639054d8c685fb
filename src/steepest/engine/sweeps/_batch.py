"""What a worker does: a piece of a sweep, many points as one compiled computation, to plain records."""

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steepest import catalogue
from steepest.core.arrays import Observation
from steepest.core.checks import Check, Verdict, conclude_point
from steepest.core.devices import check_device
from steepest.core.errors import UserError
from steepest.core.experiment import Experiment
from steepest.core.hypotheses import Hypothesis
from steepest.core.precision import arithmetic
from steepest.core.records import plain
from steepest.core.words import CRASHED
from steepest.engine.fingerprint import everything
from steepest.engine.run import Ready, build, execute
from steepest.engine.sweeps._cost import cost, lanes
from steepest.engine.sweeps._plan import experiment_at
from steepest.engine.threads import one_thread
from steepest.kit import Claim

Record = dict[str, Any]
MAPS = 2**15
"""Memory maps beyond which compiled programs are freed: each keeps some, and Linux allows a process 65 530."""


def compute(request: Mapping[str, Any]) -> list[Record]:
    """Compute the points of one request of :meth:`Plan.request`, in its order.

    A point that crashes is a record with the reason; it does not stop the others.

    Raises:
        UserError: if the request comes from another version of steepest than the one that runs here.
    """
    if request.get("from", everything()) != everything():
        raise UserError(
            f"a worker runs {everything()} and the sweep was started with {request['from']}, whose numbers may "
            "differ; install the same versions on every machine"
        )
    check_device()
    entry = catalogue.entry(request["target"])
    kind = catalogue.load(entry)
    if request["whole"]:
        return [_whole(request, entry, kind, fields, seed) for fields, seed in request["points"]]
    with one_thread(), arithmetic(double=kind.precision == "float64"):
        return _points(request, kind)


def _whole(
    request: Mapping[str, Any],
    entry: catalogue.Entry,
    kind: type[Claim],
    fields: Mapping[str, Any],
    seed: int,
) -> Record:
    """The record of a run of the whole claim."""
    _free_programs()
    start = time.perf_counter()
    try:
        claim = build(kind, request["preset"], {**request["fixed"], **fields})
        result = execute(Ready(entry, claim, request["preset"], seed))
    except Exception as trouble:
        return crashed(fields, seed, trouble, time.perf_counter() - start)
    judged = (result.verdict, result.reason, result.assumptions, result.checks)
    return _record(fields, seed, judged, {}, result.seconds)


def _free_programs() -> None:
    """Free the compiled programs of earlier runs before they fill what the system allows a process."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            crowded = sum(1 for _ in maps) > MAPS
    except OSError:  # a system that neither counts them nor limits their number
        return
    if crowded:
        jax.clear_caches()


def _points(request: Mapping[str, Any], kind: type[Claim]) -> list[Record]:
    """The records of a batch of points: settings one by one, observations together, judgements one by one."""
    begin = time.perf_counter()
    points = request["points"]
    for_setting, for_observation = seeded_keys([seed for _, seed in points])
    experiments: list[Any] = [None] * len(points)
    settings: list[Any] = [None] * len(points)
    troubles: dict[int, Exception] = {}
    for i, (fields, _) in enumerate(points):
        try:
            claim = build(kind, request["preset"], {**request["fixed"], **fields})
            experiments[i] = experiment_at(claim)
            settings[i] = experiments[i].setting(for_setting[i])
        except Exception as trouble:
            troubles[i] = trouble
    sound = [i for i in range(len(points)) if i not in troubles]
    observed: dict[str, np.ndarray] = {}
    lanes: Any = None
    if sound:
        # a point without a setting gets a neighbour's, so that the others keep their places in the batch
        filled = [i if i in sound else sound[0] for i in range(len(points))]
        lanes = Lanes(
            [experiments[i] for i in filled],
            [settings[i] for i in filled],
            for_observation,
            request["batched"],
        )
        observed = lanes.observe(request["size"], troubles)
    share = (time.perf_counter() - begin) / len(points)
    records = []
    for i, (fields, seed) in enumerate(points):
        start = time.perf_counter()
        try:
            if i in troubles:
                raise troubles[i]
            arrays = lanes.named({name: value[i] for name, value in observed.items()})
            judged, quantities = _judge(experiments[i], settings[i], arrays)
            seconds = share + time.perf_counter() - start
            records.append(_record(fields, seed, judged, quantities, seconds))
        except Exception as trouble:
            records.append(crashed(fields, seed, trouble, share))
    return records


class Lanes:
    """Points that are observed together, each in a lane of one compiled computation."""

    def __init__(
        self, experiments: list[Experiment], settings: list, keys: Any, batched: Sequence[str]
    ) -> None:
        self.experiments = experiments
        self.settings = settings
        self.keys = keys
        self.batched = batched
        self.program = program_of(experiments[0], batched)

    def observe(self, size: int, troubles: dict[int, Exception]) -> dict[str, np.ndarray]:
        """Observe all points, in pieces that memory allows; if a piece fails, its points are tried alone."""
        points = len(self.experiments)
        width = self.program.lanes(self.settings[0], self.keys[0], size)
        # every program has the same number of lanes, the last point repeated to fill it: one compilation a group
        padding = -(-size // width) * width - points
        order = [*range(points), *[points - 1] * padding]
        observed: dict[int, dict[str, np.ndarray]] = {}
        for start in range(0, points, width):
            piece = order[start : start + width]
            try:
                observed |= self._together(piece)
            except Exception:
                observed |= self._one_by_one(piece, troubles)
        example = next(iter(observed.values()), {})
        missing = {name: np.full_like(value, 0) for name, value in example.items()}
        return {
            name: np.stack([observed.get(i, missing)[name] for i in range(points)])
            for name in example
        }

    def named(self, arrays: dict[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return the arrays of one point with the names of their axes, where its experiment gave these."""
        dims = self.program.dims
        if set(dims) != set(arrays):
            return arrays
        return Observation(**{name: (dims[name], values) for name, values in arrays.items()})

    def _one_by_one(
        self, piece: list[int], troubles: dict[int, Exception]
    ) -> dict[int, dict[str, np.ndarray]]:
        observed: dict[int, dict[str, np.ndarray]] = {}
        for i in dict.fromkeys(piece):
            try:
                observed |= self._together([i])
            except Exception as trouble:
                troubles[i] = trouble
        return observed

    def _together(self, piece: list[int]) -> dict[int, dict[str, np.ndarray]]:
        """Run one compiled computation, and return the observation of each point by its number."""
        values = {
            name: jnp.asarray([getattr(self.experiments[i], name) for i in piece])
            for name in self.batched
        }
        settings = [self.settings[i] for i in piece]
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *settings)
        out = self.program.run(values, stacked, self.keys[np.array(piece)])
        out = {name: np.asarray(value) for name, value in out.items()}
        return {
            i: {name: value[lane] for name, value in out.items()} for lane, i in enumerate(piece)
        }


class Program:
    """The compiled experiment of points that differ only in batched fields, settings and seeds."""

    def __init__(self, experiment: Experiment, batched: Sequence[str]) -> None:
        self.experiment = experiment
        self.batched = batched
        self._lanes: dict[int, int] = {}
        self.dims: dict[str, tuple[str, ...]] = {}

        def one(values: Mapping[str, Any], setting: Any, key: Any) -> Any:
            observed = experiment.traced(values).observe(setting, key)
            if isinstance(
                observed, Observation
            ):  # the names of axes do not pass through the compiler
                self.dims |= {name: observed.quantity(name).dims for name in observed}
            return dict(observed)

        self.run = jax.jit(jax.vmap(one))

    def lanes(self, setting: Any, key: Any, most: int) -> int:
        """Return how many points are computed at once; found once, as it takes a trace of the experiment."""
        if most == 1:
            return 1
        if most not in self._lanes:
            try:
                example = self.experiment.traced(dict.fromkeys(self.batched, 1.0))
                bytes = cost(example, self.batched, setting, key).bytes
                self._lanes[most] = lanes(bytes, most)
            except Exception:  # what cannot be traced crashes at every point, with its reason
                self._lanes[most] = 1
        return self._lanes[most]


@lru_cache(maxsize=8)
def _program(experiment: Experiment, batched: tuple[str, ...]) -> Program:
    return Program(experiment, batched)


def program_of(experiment: Experiment, batched: Sequence[str]) -> Program:
    """Return the program that a point belongs to: that of its fields with fixed values for the batched ones."""
    blank = experiment.traced(dict.fromkeys(batched))
    return _program(blank, tuple(batched))


@jax.jit
def _split(seeds: jax.Array) -> jax.Array:
    return jax.vmap(lambda seed: jax.random.split(jax.random.key(seed)))(seeds)


def seeded_keys(seeds: Sequence[int]) -> tuple[Any, Any]:
    """Return for each seed the keys that :func:`steepest.core.experiment.seeded` gives."""
    both = _split(jnp.asarray(seeds))
    return both[:, 0], both[:, 1]


def _judge(experiment: Experiment, setting: Any, observed: Mapping[str, np.ndarray]) -> tuple:
    predicted = experiment.predict(setting)
    assumed = [*experiment.hypotheses(setting), *experiment.run_conditions(observed)]
    checks = experiment.checks(predicted, observed)
    verdict, reason = conclude_point(assumed, checks)
    judged = (verdict, reason, assumed, checks)
    return judged, experiment.quantities(predicted, observed)


def _record(
    fields: Mapping[str, Any],
    seed: int,
    judged: tuple[Verdict | str, str, Sequence[Hypothesis], Sequence[Check]],
    quantities: Mapping[str, float],
    seconds: float,
) -> Record:
    verdict, reason, hypotheses, checks = judged
    record = {
        "fields": fields,
        "seed": seed,
        "verdict": str(verdict),
        "reason": reason,
        "checks": [check.to_json() for check in checks],
        "hypotheses": [hypothesis.to_json() for hypothesis in hypotheses],
        "quantities": quantities,
        "seconds": round(seconds, 4),
    }
    return plain(record)


def crashed(
    fields: Mapping[str, Any], seed: int, trouble: BaseException | str, seconds: float
) -> Record:
    """Return the record of a point that could not be computed, with the reason."""
    reason = trouble if isinstance(trouble, str) else f"{type(trouble).__name__}: {trouble}"
    first = (reason.splitlines() or [""])[0][:500]
    return _record(fields, seed, (CRASHED, first, (), ()), {}, seconds)
