"""What is computed piece by piece: points of a sweep, or the runs of trials, of one claim."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np

from steepest import catalogue
from steepest.catalogue import Entry
from steepest.core.records import canonical_digest
from steepest.engine.fingerprint import COMPUTING, stamp
from steepest.kit import Claim


class Pieces(ABC):
    """A description of points of one claim, the same on every machine, from which each can be asked for again.

    Attributes:
        target: the claim's name, or the path of a file that holds it.
        folder: where such descriptions lie in a claim's folder of results.
    """

    target: str
    folder: ClassVar[str]

    @cached_property
    def entry(self) -> Entry:
        """The claim's line in the catalogue."""
        return catalogue.entry(self.target)

    @property
    def claim(self) -> str:
        """The claim's name."""
        return self.entry.name

    @cached_property
    def kind(self) -> type[Claim]:
        """The claim's class."""
        return catalogue.load(self.entry)

    @cached_property
    def current_source(self) -> str:
        """The digest of the code that is here now, judgement included, and of the versions of what computes."""
        packages = {name: version(name) for name in COMPUTING}
        return canonical_digest([stamp(self.entry, self.kind).judgement, packages])[:16]

    @property
    def key(self) -> str:
        """What it is called on disk: a hash of what it asks, whatever the code."""
        asked = {name: value for name, value in self.to_json().items() if name != "source"}
        return canonical_digest({**asked, "version": self.kind.version})[:16]

    @property
    @abstractmethod
    def keys(self) -> list[str]:
        """What each point is called on disk, by :func:`point_key`."""

    @property
    @abstractmethod
    def tasks(self) -> Sequence[np.ndarray]:
        """Pieces of work for one worker each, as numbers of points."""

    @abstractmethod
    def request(self, task: np.ndarray) -> dict[str, Any]:
        """Return a piece of work in plain words, numbers and lists, for a worker anywhere."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the description in plain words, numbers and lists."""


def point_key(asked: Mapping[str, Any], params: Mapping[str, Any], seed: int) -> str:
    """Return what a point is called on disk.

    Args:
        asked: what all points share: claim, version, digest of its code, preset, whether it runs whole.
        params: every field of the claim.
        seed: of every random number.
    """
    return canonical_digest({**asked, "params": dict(params), "seed": seed})[:16]
