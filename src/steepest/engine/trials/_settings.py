"""Random settings: every scoped field of a claim, drawn from where the claim says that it holds."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from steepest.core.errors import UserError
from steepest.core.scope import Scope, scope_of
from steepest.engine.run import build
from steepest.kit import Claim

ATTEMPTS = 100
"""Draws of one setting, before it is given up."""
Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Draws:
    """Settings of a claim, and what it cost to find them.

    Attributes:
        settings: the value of each scoped field; None for a setting that was given up.
        refused: draws that the claim refused, each of which was drawn again.
    """

    settings: tuple[Setting | None, ...]
    refused: int


def draw_settings(kind: type[Claim], name: str, preset: str, count: int) -> Draws:
    """Draw settings from the scope of a claim's fields, each field by itself.

    They depend on the name and the version of the claim alone, so that more settings begin with the same ones, and
    another scope of one field leaves the draws of the others as they were.

    Args:
        kind: the claim's class.
        name: of the claim.
        preset: of the fields that have no scope.
        count: how many settings.
    """
    scope = scope_of(kind)
    settings = []
    refused = 0
    for number in range(count):
        setting, attempts = _first_accepted(kind, name, preset, scope, number)
        settings.append(setting)
        refused += attempts
    return Draws(tuple(settings), refused)


def _first_accepted(
    kind: type[Claim], name: str, preset: str, scope: Mapping[str, Scope], number: int
) -> tuple[Setting | None, int]:
    """Return the first draw that the claim takes, or None, and how many it refused."""
    for attempt in range(ATTEMPTS):
        place = f"{name} {kind.version} {number} {attempt}"
        values = {field: _draw(limits, f"{place} {field}") for field, limits in scope.items()}
        accepted = _accepted(kind, preset, values)
        if accepted is not None:
            return accepted, attempt
    return None, ATTEMPTS


def _draw(scope: Scope, place: str) -> Any:
    digest = hashlib.sha256(place.encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:16]))
    value = scope.draw(rng)
    while value not in scope:  # a draw is rounded, which may carry it over the end
        value = scope.draw(rng)
    return value


def _accepted(kind: type[Claim], preset: str, drawn: Setting) -> Setting | None:
    """Return a draw as the claim's fields hold it; None where the claim refuses it."""
    try:
        claim = build(kind, preset, drawn)
    except UserError:
        return None
    except Exception:  # a defect of the claim: its run says so
        return drawn
    return {name: getattr(claim, name) for name in drawn}
