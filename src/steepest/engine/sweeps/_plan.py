"""Which points a sweep has, what each is called on disk, and which of them are computed together."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from steepest import catalogue
from steepest.core.errors import UserError
from steepest.core.experiment import Experiment, Point
from steepest.core.fields import field_types
from steepest.core.panels import Curve
from steepest.core.scope import meanings as meanings_of
from steepest.engine.commands import spell
from steepest.engine.run import build, check_seed
from steepest.engine.sweeps._axes import SEED, Axis, axes, design
from steepest.engine.sweeps._pieces import Pieces, point_key
from steepest.kit import Claim

BATCH = 64
"""Most points of one compiled computation, and of one piece of work for a worker."""


@dataclass(frozen=True)
class Plan(Pieces):
    """A sweep before it runs: a pure description, the same on every machine.

    Attributes:
        target: the claim's name, or the path of a file that holds it.
        axes: what is swept.
        preset: ``"quick"``, ``"full"`` or ``"tiny"``.
        seed: the seed of points that do not sweep it.
        changes: fields changed from the preset at every point.
        whole: run the whole claim at each point, even where it has a smaller experiment.
        batch: most points computed together. It decides which numbers share a compiled program, and so the last bits.
        source: digest of the code that computes the points; empty for the code that is here now.
    """

    target: str
    axes: tuple[Axis, ...]
    preset: str = "quick"
    seed: int = 0
    changes: Mapping[str, Any] | None = None
    whole: bool = False
    batch: int = BATCH
    source: str = ""

    folder: ClassVar[str] = "sweeps"
    """Where plans of sweeps lie in a claim's folder of results."""

    def __post_init__(self) -> None:
        if not 1 <= self.batch <= 2**20:
            raise UserError(f"a batch holds 1 to {2**20} points, got {self.batch}; try {BATCH}")
        check_seed(self.seed)
        swept = [axis.field for axis in self.axes]
        if clash := [field for field in swept if field in (self.changes or {})]:
            raise UserError(
                f"{clash[0]} is swept and set to one value at once; leave one of them out"
            )
        if SEED in swept and self.seed:
            raise UserError("the seed is swept and set to one value at once; leave one of them out")
        self._refuse_what_changes_nothing(swept)
        for axis in self.axes:
            self._refuse_values(axis)
        if not self.source:
            object.__setattr__(self, "source", self.current_source)

    def _refuse_what_changes_nothing(self, swept: list[str]) -> None:
        """Refuse a swept field that the point does not have: all its points would be the same."""
        if self.experiment is None:
            return
        own = [field.name for field in fields(self.experiment)]
        for name in swept:
            if name not in (*own, SEED):
                raise UserError(
                    f"{name} cannot be swept: a point of {self.claim}'s diagram does not depend on it, only on "
                    f"{', '.join(own)}; sweep one of them, or the whole claim with --whole"
                )

    def _refuse_values(self, axis: Axis) -> None:
        """Refuse values that the claim does not take; limits are intervals, so the ends speak for all numbers."""
        if axis.field == SEED:
            return
        ends = {min(axis.values), max(axis.values)} if axis.numeric else set(axis.values)
        for value in ends:
            self._with({axis.field: value})

    @property
    def _first(self) -> Claim:
        """The claim at the first value of every axis."""
        return self._with({})

    def _with(self, values: Mapping[str, Any]) -> Claim:
        """Build the claim at some swept values; other axes are at their first, as fields may go together."""
        firsts = {axis.field: axis.values[0] for axis in self.axes if axis.field != SEED}
        swept = self._as_fields({**firsts, **values})
        return build(self.kind, self.preset, {**self.fixed, **swept})

    @cached_property
    def experiment(self) -> type[Experiment] | None:
        """What is computed at each point in batches; None where the whole claim runs at each."""
        if self.whole:
            return None
        if self.kind.point is not None:
            return self.kind.point
        return self.kind if self.kind.batched else None

    @property
    def stale(self) -> bool:
        """Whether the points come from other code, or other versions, than those that are here."""
        return self.source != self.current_source

    @cached_property
    def fixed(self) -> dict[str, Any]:
        """Fields that differ from the preset at every point: the experiment's own, then the user's."""
        swept = {axis.field for axis in self.axes}
        base = self.experiment.base if self.experiment and self.preset == "quick" else {}
        own = {name: value for name, value in base.items() if name not in swept}
        return {**own, **(self.changes or {})}

    @cached_property
    def rows(self) -> np.ndarray:
        """Which value of each axis each point has, shape ``(points, axes)``."""
        return design(self.axes)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """The value of every swept field at every point."""
        return {
            axis.field: [axis.values[i] for i in row]
            for axis, row in zip(self.axes, self.rows.T, strict=True)
        }

    def at(self, point: int) -> tuple[dict[str, Any], int]:
        """Return the swept fields of a point, as the claim takes them, and its seed."""
        values = {
            axis.field: axis.values[i] for axis, i in zip(self.axes, self.rows[point], strict=True)
        }
        seed = values.pop(SEED, self.seed)
        return self._as_fields(values), seed

    @cached_property
    def keys(self) -> list[str]:
        """What each point is called on disk: a hash of source, claim, version, every field, preset and seed."""
        params = asdict(self._first)
        asked = {
            "claim": self.claim,
            "whole": self.experiment is None,
            "version": self.kind.version,
            "source": self.source,
            "preset": self.preset,
        }
        names = []
        for point in range(len(self)):
            values, seed = self.at(point)
            names.append(point_key(asked, {**params, **values}, seed))
        return names

    @cached_property
    def groups(self) -> np.ndarray:
        """Which compiled program each point needs, as numbers from 0, shape ``(points,)``."""
        if self.experiment is None:
            return np.arange(len(self))
        traced = (*self.experiment.batched, SEED)
        shapes = [i for i, axis in enumerate(self.axes) if axis.field not in traced]
        if not shapes:
            return np.zeros(len(self), int)
        return np.unique(self.rows[:, shapes], axis=0, return_inverse=True)[1].ravel()

    @cached_property
    def tasks(self) -> list[np.ndarray]:
        """Pieces of work, as numbers of points: each within one group, of nearly equal sizes up to ``batch``."""
        order = np.argsort(self.groups, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(self.groups[order])) + 1)
        return [
            piece for part in parts for piece in np.array_split(part, -(-len(part) // self.batch))
        ]

    @cached_property
    def sizes(self) -> np.ndarray:
        """Points of the largest task of each group: every program has room for so many."""
        points = np.bincount(self.groups)
        return -(-points // -(-points // self.batch))

    def request(self, task: np.ndarray) -> dict[str, Any]:
        """Return a piece of work in plain words, numbers and lists, for a worker anywhere."""
        swept = [axis.field for axis in self.axes]
        batched = self.experiment.batched if self.experiment else ()
        return {
            "target": self.entry.target,
            "version": self.kind.version,
            "preset": self.preset,
            "fixed": self.fixed,
            "whole": self.experiment is None,
            "batched": [field for field in swept if field in batched],
            "numbers": [int(point) for point in task],
            "points": [self.at(point) for point in task],
            "size": int(self.sizes[self.groups[task[0]]]),
        }

    def boundaries(self, x: str, y: str) -> tuple[Curve, ...]:
        """Return the predicted boundaries in the plane of two fields."""
        if self.experiment is None:
            return ()
        claim = self._first
        return experiment_at(claim).boundaries(x, y)

    def label(self, field: str) -> str:
        """Return a field in words, with its unit, for an axis."""
        meaning = meanings_of(self.kind).get(field, "")
        plain = not meaning.endswith("]") or meaning.endswith("[1]")
        unit = "" if plain else meaning[meaning.rfind("[") :]
        return f"{field} {unit}".rstrip()

    def _as_fields(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Swept values as the claim's fields: one element in a tuple where the field is one."""
        kinds = field_types(self.kind)
        return {name: (value,) if kinds[name].many else value for name, value in values.items()}

    @property
    def command(self) -> str:
        """What to type to get the sweep again."""
        target = self.entry.name if self.entry.module else self.entry.origin
        words = ["steepest sweep", target]
        words += [f"--over {axis.field}={axis.words}" for axis in self.axes]
        words += [f"--sobol {len(axis.values)}" for axis in self.axes if axis.sobol][:1]
        if self.preset != "quick":
            words.append(f"--preset {self.preset}")
        if self.seed != 0:
            words.append(f"--seed {self.seed}")
        if self.whole and self.kind.point is not None:
            words.append("--whole")
        if self.batch != BATCH:
            words.append(f"--batch {self.batch}")
        words += [f"--{name} {spell(value)}" for name, value in (self.changes or {}).items()]
        return " ".join(words)

    def to_json(self) -> dict[str, Any]:
        """Return the plan in plain words, numbers and lists."""
        listed = [{**asdict(axis), "values": list(axis.values)} for axis in self.axes]
        changes = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in (self.changes or {}).items()
        }
        return {
            "target": self.entry.target,
            "axes": listed,
            "changes": changes,
            "preset": self.preset,
            "seed": self.seed,
            "whole": self.whole,
            "batch": self.batch,
            "source": self.source,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Plan":
        """Return the inverse of :meth:`to_json`."""
        listed = tuple(Axis(**{**axis, "values": tuple(axis["values"])}) for axis in record["axes"])
        changes = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in record["changes"].items()
        }
        return cls(**{**record, "axes": listed, "changes": changes})


def experiment_at(claim: Claim) -> Experiment:
    """Return what a sweep computes at a point: the claim's own point, or the claim itself."""
    point: type[Point] | None = type(claim).point
    return claim if point is None else point.of(claim)


def plan(
    target: str | Path,
    over: Mapping[str, Any] | None = None,
    *,
    sobol: int | None = None,
    **options: Any,
) -> Plan:
    """Plan a sweep.

    Args:
        target: the claim's name, or the path of a file that holds it.
        over: the range or values of each field, as :func:`axes` reads them; None for the claim's own diagram.
        sobol: how many Sobol points to draw in ranges without a number of points.
        **options: the other attributes of :class:`Plan`.

    Raises:
        UserError: an unknown claim or field, a range that cannot be read, a value out of its limits.

    >>> four = plan("catapult", {"multiple": "linear:1:4:4", "width": [64, 128]})
    >>> len(four), len(four.tasks)  # one compiled program a width
    (8, 2)
    """
    entry = catalogue.entry(target)
    kind = catalogue.load(entry)
    if over is None:
        over = (kind.point or kind).diagram
        if not over:
            raise UserError(
                f"{entry.name} has no diagram of its own; name fields and values with --over, such as seed=0:8"
            )
    return Plan(str(target), axes(kind, over, sobol), **options)
