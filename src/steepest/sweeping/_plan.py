"""Which points a sweep has, what each is called on disk, and which of them are computed together."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from steepest.claims import load
from steepest.claims._cell import Cell
from steepest.claims._claim import Claim, documentation
from steepest.errors import UserError
from steepest.panels import Curve
from steepest.running import build
from steepest.store import identity
from steepest.sweeping._axes import SEED, Axis, axes, design

BATCH = 64
"""Most points of one compiled computation, and of one piece of work for a worker."""


@dataclass(frozen=True)
class Plan:
    """A sweep before it runs: a pure description, the same on every machine.

    Attributes:
        claim: the claim's name.
        axes: what is swept.
        preset: ``"quick"`` or ``"full"``.
        seed: the seed of points that do not sweep it.
        changes: fields changed from the preset at every point.
        whole: run the whole claim at each point, even where it has a cell.
        batch: most points computed together. It decides which numbers share a compiled program, and so the last bits.
    """

    claim: str
    axes: tuple[Axis, ...]
    preset: str = "quick"
    seed: int = 0
    changes: Mapping[str, Any] | None = None
    whole: bool = False
    batch: int = BATCH

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise UserError(f"a batch holds at least one point, got {self.batch}")
        swept = [axis.field for axis in self.axes]
        if clash := [field for field in swept if field in (self.changes or {})]:
            raise UserError(f"{clash[0]} is swept and set to one value at once; leave one of them out")
        if SEED in swept and self.seed:
            raise UserError("the seed is swept and set to one value at once; leave one of them out")
        for axis in self.axes:  # limits are intervals, so the ends speak for all values
            ends = {min(axis.values), max(axis.values)} if axis.numeric else set(axis.values)
            for value in ends if axis.field != SEED else ():
                build(self.kind, self.preset, {**self.fixed, **self._as_fields({axis.field: value})})

    @cached_property
    def kind(self) -> type[Claim]:
        """The claim's class."""
        return load(self.claim)

    @cached_property
    def cell(self) -> type[Cell] | None:
        """What is computed at each point, or None for the whole claim."""
        return None if self.whole else self.kind.cell

    @cached_property
    def fixed(self) -> dict[str, Any]:
        """Fields that differ from the preset at every point: the cell's own, then the user's."""
        swept = {axis.field for axis in self.axes}
        own = self.cell.base if self.cell and self.preset == "quick" else {}
        return {**{k: v for k, v in own.items() if k not in swept}, **(self.changes or {})}

    @cached_property
    def rows(self) -> np.ndarray:
        """Which value of each axis each point has, shape ``(points, axes)``."""
        return design(self.axes)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """The value of every swept field at every point."""
        return {axis.field: [axis.values[i] for i in row] for axis, row in zip(self.axes, self.rows.T, strict=True)}

    def at(self, point: int) -> tuple[dict[str, Any], int]:
        """The swept fields of a point, as the claim takes them, and its seed."""
        values = {axis.field: axis.values[i] for axis, i in zip(self.axes, self.rows[point], strict=True)}
        seed = values.pop(SEED, self.seed)
        return self._as_fields(values), seed

    @cached_property
    def keys(self) -> list[str]:
        """What each point is called on disk: a hash of claim, version, every field, preset and seed."""
        params, version = asdict(build(self.kind, self.preset, self.fixed)), self.kind.version
        name = f"{self.claim}/{'cell' if self.cell else 'claim'}"
        found = []
        for point in range(len(self)):
            values, seed = self.at(point)
            found.append(identity(name, version, {**params, **values}, self.preset, seed))
        return found

    @cached_property
    def groups(self) -> np.ndarray:
        """Which compiled program each point needs, as numbers from 0, shape ``(points,)``."""
        if self.cell is None:
            return np.arange(len(self))
        shapes = [i for i, axis in enumerate(self.axes) if axis.field not in (*self.cell.batched, SEED)]
        return (
            np.unique(self.rows[:, shapes], axis=0, return_inverse=True)[1].ravel() if shapes else self.rows[:, 0] * 0
        )

    @cached_property
    def tasks(self) -> list[np.ndarray]:
        """Pieces of work, as numbers of points: each within one group, of nearly equal sizes up to ``batch``."""
        order = np.argsort(self.groups, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(self.groups[order])) + 1)
        return [piece for part in parts for piece in np.array_split(part, -(-len(part) // self.batch))]

    @cached_property
    def sizes(self) -> np.ndarray:
        """Points of the largest task of each group: every program has room for so many."""
        points = np.bincount(self.groups)
        return -(-points // -(-points // self.batch))

    def request(self, task: np.ndarray) -> dict[str, Any]:
        """A piece of work in plain words, numbers and lists, for a worker anywhere."""
        swept = [axis.field for axis in self.axes]
        return {
            "claim": self.claim,
            "version": self.kind.version,
            "preset": self.preset,
            "fixed": self.fixed,
            "cell": self.cell is not None,
            "batched": [field for field in swept if self.cell and field in self.cell.batched],
            "numbers": [int(point) for point in task],
            "points": [self.at(point) for point in task],
            "size": int(self.sizes[self.groups[task[0]]]),
        }

    def boundaries(self, x: str, y: str) -> tuple[Curve, ...]:
        """The predicted boundaries in the plane of two fields."""
        return self.cell(build(self.kind, self.preset, self.fixed)).boundaries(x, y) if self.cell else ()

    def label(self, field: str) -> str:
        """A field in words, with its unit, for an axis."""
        meaning = documentation(self.kind).get(field, "")
        unit = meaning[meaning.rfind("[") :] if meaning.endswith("]") and not meaning.endswith("[1]") else ""
        return f"{field} {unit}".rstrip()

    def _as_fields(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Swept values as the claim's fields: one element in a tuple where the field is one."""
        return {k: (v,) if k in self._tuples else v for k, v in values.items()}

    @cached_property
    def _tuples(self) -> set[str]:
        usual = asdict(self.kind())
        return {name for name, value in usual.items() if isinstance(value, tuple)}

    @property
    def command(self) -> str:
        """What to type to get the sweep again."""
        words = ["steepest sweep", self.claim, *(f"--over {axis.field}={axis.words}" for axis in self.axes)]
        words += [f"--sobol {len(axis.values)}" for axis in self.axes if axis.sobol][:1]
        words += [f"--preset {self.preset}"] * (self.preset != "quick") + [f"--seed {self.seed}"] * (self.seed != 0)
        words += ["--whole"] * (self.whole and self.kind.cell is not None)
        words += [f"--batch {self.batch}"] * (self.batch != BATCH)
        for name, value in (self.changes or {}).items():
            words.append(f"--{name} {' '.join(map(str, value)) if isinstance(value, tuple) else value}")
        return " ".join(words)

    @property
    def key(self) -> str:
        """What the sweep is called on disk: a hash of what it computes."""
        return identity(self.claim, self.kind.version, self.to_json(), self.preset, self.seed)

    def to_json(self) -> dict[str, Any]:
        """The plan in plain words, numbers and lists."""
        listed = [{"field": a.field, "values": list(a.values), "scale": a.scale, "sobol": a.sobol, "words": a.words}
            for a in self.axes]  # fmt: skip
        changes = {k: list(v) if isinstance(v, tuple) else v for k, v in (self.changes or {}).items()}
        rest = {"preset": self.preset, "seed": self.seed, "whole": self.whole, "batch": self.batch}
        return {"claim": self.claim, "axes": listed, "changes": changes, **rest}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Plan":
        """The inverse of :meth:`to_json`."""
        listed = tuple(Axis(**{**axis, "values": tuple(axis["values"])}) for axis in record["axes"])
        changes = {k: tuple(v) if isinstance(v, list) else v for k, v in record["changes"].items()}
        return cls(**{**record, "axes": listed, "changes": changes})


def plan(claim: str, over: Mapping[str, Any] | None = None, *, sobol: int | None = None, **options: Any) -> Plan:
    """Plan a sweep.

    Args:
        claim: the claim's name.
        over: the range or values of each field, as :func:`axes` reads them; None for the claim's own diagram.
        sobol: how many Sobol points to draw in ranges without a number of points.
        **options: the other attributes of :class:`Plan`.

    Raises:
        UserError: an unknown claim or field, a range that cannot be read, a value out of its limits.

    >>> found = plan("catapult", {"multiple": "linear:1:4:4", "width": [64, 128]})
    >>> len(found), len(found.tasks)  # one compiled program a width
    (8, 2)
    """
    kind = load(claim)
    if over is None:
        over = {} if kind.cell is None else kind.cell.diagram
        if not over:
            raise UserError(f"{claim} has no diagram of its own; name fields and values with --over, such as seed=0:8")
    return Plan(claim, axes(kind, over, sobol), **options)
