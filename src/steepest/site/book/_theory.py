"""The map of the theory: which claim rests on which others, and how.

The ties are data, in the pages of the claims; a page of the book draws them with the signs of results.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from steepest import catalogue
from steepest.core.errors import UserError, nearest
from steepest.core.page import page_of


class Word(StrEnum):
    """How a claim rests on another."""

    USES = "uses"
    EXTENDS = "extends"
    LIMITS = "limits"


@dataclass(frozen=True)
class Tie:
    """A claim rests on another.

    Attributes:
        claim: the one that rests.
        basis: the one on which it rests.
        word: how.
        why: the same in a sentence.
    """

    claim: str
    basis: str
    word: Word
    why: str


@dataclass(frozen=True)
class Theory:
    """All ties between claims; there is no cycle.

    Attributes:
        ties: by claim, in the order of the file, its ties to the claims on which it rests.
    """

    ties: Mapping[str, tuple[Tie, ...]]

    @cached_property
    def resting(self) -> dict[str, tuple[str, ...]]:
        """By claim, the claims that rest on it at once."""
        resting: dict[str, tuple[str, ...]] = dict.fromkeys(self.ties, ())
        for claim, ties in self.ties.items():
            for tie in ties:
                resting[tie.basis] += (claim,)
        return resting

    @cached_property
    def carried(self) -> dict[str, frozenset[str]]:
        """By claim, all claims that rest on it, at once or through others."""
        carried: dict[str, frozenset[str]] = {}
        for claim in reversed(_bases_first(self.ties)):
            above = self.resting[claim]
            carried[claim] = frozenset(above).union(*(carried[name] for name in above))
        return carried

    @property
    def roots(self) -> list[str]:
        """The claims that rest on none and carry others; those that carry most come first."""
        roots = [claim for claim, ties in self.ties.items() if not ties and self.resting[claim]]
        return sorted(roots, key=lambda claim: -len(self.carried[claim]))

    @property
    def pillars(self) -> list[str]:
        """The claims that carry others; those that carry most come first."""
        pillars = [claim for claim in self.ties if self.resting[claim]]
        return sorted(pillars, key=lambda claim: -len(self.carried[claim]))


Said = Mapping[str, Mapping[str, Mapping[str, str]]]
"""What claims say of others: by claim and by word, a sentence for each claim on which it rests."""


def theory_of_catalogue() -> Theory:
    """Return the map that the pages of this package's claims draw, in the order of the catalogue.

    Raises:
        UserError: a page cannot be read, or what :func:`theory_of` refuses.
    """
    pages = {name: page_of(line.path) for name, line in catalogue.built_in().items()}
    return theory_of({name: page.ties if page else {} for name, page in pages.items()})


def theory_of(said: Said) -> Theory:
    """Return the map of what claims say of others.

    Raises:
        UserError: a tie is not as it must be, or claims rest on each other.
    """
    ties = {claim: _ties(claim, words, said) for claim, words in said.items()}
    try:
        _bases_first(ties)
    except CycleError as trouble:
        circle = " on ".join(reversed(trouble.args[1]))
        raise UserError(f"claims of the map rest on each other: {circle}") from None
    return Theory(ties)


def _ties(claim: str, words: Mapping[str, Mapping[str, str]], names: Said) -> tuple[Tie, ...]:
    """Read the ties of one claim.

    Raises:
        UserError: an unknown claim, a claim that is named twice, or no sentence.
    """
    ties: list[Tie] = []
    for text, whys in words.items():
        for basis, why in whys.items():
            if basis not in names:
                hint = nearest(basis, names)
                raise UserError(f"{claim} {text} {basis!r}, which is not on the map; {hint}")
            if basis in [tie.basis for tie in ties]:
                raise UserError(f"{claim} is tied to {basis} twice")
            if not why.endswith("."):
                raise UserError(f"{claim} {text} {basis}, and no sentence says how: {why!r}")
            ties.append(Tie(claim, basis, Word(text), why))
    return tuple(ties)


def _bases_first(ties: Mapping[str, tuple[Tie, ...]]) -> list[str]:
    """Return all claims, each behind those on which it rests.

    Raises:
        CycleError: there is no such order.
    """
    bases = {claim: [tie.basis for tie in of_claim] for claim, of_claim in ties.items()}
    return list(TopologicalSorter(bases).static_order())
