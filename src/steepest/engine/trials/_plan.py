"""Which runs the trials of a claim have, what each is called on disk, and how to ask for it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from steepest.core.errors import UserError
from steepest.core.fields import LARGEST_SEED
from steepest.core.scope import Scope, scope_of
from steepest.engine.commands import spell
from steepest.engine.run import build
from steepest.engine.sweeps import Pieces, point_key
from steepest.engine.trials._settings import Draws, draw_settings
from steepest.kit import Claim

BLOCK = 1000
"""Version v of a claim has the seeds 1000·v up to 1000·v + 999, which no other version has; seed 0 is in none."""
MOST = BLOCK // 2
"""The first half of the block is for fresh seeds, the second for the seeds of random settings."""


class RunKind(StrEnum):
    """What is random about a run."""

    SEED = "seed"
    """A fresh seed, at the preset's own fields."""
    SETTING = "setting"
    """A random setting from the scope, with a fresh seed."""


@dataclass(frozen=True)
class TrialRun:
    """One run of the trials.

    Attributes:
        kind: what is random about it.
        seed: the seed of every random number.
        fields: the fields that were drawn; none at a fresh seed.
    """

    kind: RunKind
    seed: int
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialPlan(Pieces):
    """The trials of a claim before they run: a pure description, the same on every machine.

    Attributes:
        target: the claim's name, or the path of a file that holds it.
        seeds: fresh seeds at the preset's own fields.
        settings: random settings of the scope; none are drawn for a claim that states no scope.
        preset: ``"quick"``, ``"full"`` or ``"tiny"``.
        source: digest of the code that computes the runs; empty for the code that is here now.

    Raises:
        UserError: an unknown claim or preset, more runs than the version has seeds, or none at all.
    """

    target: str
    seeds: int = 20
    settings: int = 20
    preset: str = "quick"
    source: str = ""

    folder: ClassVar[str] = "trials"
    """Where plans of trials lie in a claim's folder of results."""

    def __post_init__(self) -> None:
        for name in ("seeds", "settings"):
            _check_count(name, getattr(self, name))
        _check_block(self.kind)
        build(self.kind, self.preset, {})
        if not self.seeds and not (self.settings and self.scope):
            without = (
                "" if self.scope else f", as {self.claim} states no scope to draw settings from"
            )
            raise UserError(f"there is nothing to try{without}; ask for some seeds, such as 20")
        if not self.source:
            object.__setattr__(self, "source", self.current_source)

    @property
    def version(self) -> int:
        """The version of the claim."""
        return self.kind.version

    @cached_property
    def scope(self) -> dict[str, Scope]:
        """The fields that are drawn, each with where the claim says that it holds."""
        return scope_of(self.kind)

    @property
    def first_seed(self) -> int:
        """The first seed of the version's block."""
        return BLOCK * self.version

    @cached_property
    def draws(self) -> Draws:
        """The settings that are drawn."""
        count = self.settings if self.scope else 0
        return draw_settings(self.kind, self.claim, self.preset, count)

    @property
    def given_up(self) -> int:
        """How many settings were asked for and not found, as the claim refused every draw."""
        return self.draws.settings.count(None)

    @cached_property
    def runs(self) -> tuple[TrialRun, ...]:
        """All runs: fresh seeds first, then settings."""
        at_seeds = [TrialRun(RunKind.SEED, self.first_seed + i) for i in range(self.seeds)]
        at_settings = [
            TrialRun(RunKind.SETTING, self.first_seed + MOST + i, setting)
            for i, setting in enumerate(self.draws.settings)
            if setting is not None
        ]
        return (*at_seeds, *at_settings)

    def __len__(self) -> int:
        return len(self.runs)

    @cached_property
    def keys(self) -> list[str]:
        """What each run is called on disk: the name of the same point of a sweep over whole claims."""
        usual = asdict(build(self.kind, self.preset, {}))
        asked = {
            "claim": self.claim,
            "whole": True,
            "version": self.version,
            "source": self.source,
            "preset": self.preset,
        }
        return [point_key(asked, {**usual, **run.fields}, run.seed) for run in self.runs]

    @property
    def tasks(self) -> list[np.ndarray]:
        """Pieces of work: every run is one."""
        return [np.array([number]) for number in range(len(self))]

    def request(self, task: np.ndarray) -> dict[str, Any]:
        """Return a piece of work in plain words, numbers and lists, for a worker anywhere."""
        runs = [self.runs[number] for number in task]
        return {
            "target": self.entry.target,
            "version": self.version,
            "preset": self.preset,
            "fixed": {},
            "whole": True,
            "batched": [],
            "numbers": [int(number) for number in task],
            "points": [(dict(run.fields), run.seed) for run in runs],
            "size": 1,
        }

    @property
    def command(self) -> str:
        """What to type to get the trials again."""
        words = ["steepest", "trials", self._name]
        words += [f"--seeds {self.seeds}", f"--settings {self.settings}"]
        return " ".join([*words, *self._preset])

    def command_of(self, run: TrialRun) -> str:
        """Return what to type to see one run in detail."""
        fields = [f"--{name} {spell(value)}" for name, value in run.fields.items()]
        return " ".join(
            ["steepest", "run", self._name, *self._preset, *fields, f"--seed {run.seed}"]
        )

    @property
    def _name(self) -> str:
        return self.entry.name if self.entry.module else self.entry.origin

    @property
    def _preset(self) -> list[str]:
        return [] if self.preset == "quick" else [f"--preset {self.preset}"]

    def to_json(self) -> dict[str, Any]:
        """Return the plan in plain words and numbers."""
        return {**asdict(self), "target": self.entry.target}


def _check_count(name: str, count: int) -> None:
    """Refuse numbers of runs for which a version has no seeds."""
    if not 0 <= count <= MOST:
        raise UserError(
            f"a version of a claim has {MOST} seeds for its {name}, got {name} {count}; try 20"
        )


def _check_block(kind: type[Claim]) -> None:
    """Refuse a version that has no block of seeds of its own."""
    last = LARGEST_SEED // BLOCK - 1
    if not 1 <= kind.version <= last:
        raise UserError(
            f"a claim's version is a whole number from 1 to {last}, got {kind.version}; its seeds are 1000 times that"
        )
