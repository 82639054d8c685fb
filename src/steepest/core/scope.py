"""Fields of a claim: default, documentation, unit, and the range in which the claim says that it holds."""

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Scope:
    """Where a claim says that it holds, along one of its fields.

    Attributes:
        low: the smallest value; None where the choices are listed.
        high: the largest value.
        choices: the values, where they are listed.
        why: why it ends there, in a sentence.
    """

    low: float | None = None
    high: float | None = None
    choices: tuple[Any, ...] = ()
    why: str = ""

    @property
    def logarithmic(self) -> bool:
        """Whether draws are even in the logarithm: the ends are positive and a factor of four apart."""
        if self.low is None or self.high is None:
            return False
        return self.low > 0 and self.high >= 4 * self.low

    def draw(self, rng: np.random.Generator) -> Any:
        """Draw a value: evenly in the logarithm where the ends are positive and a factor of four apart."""
        if self.choices:
            return self.choices[rng.integers(len(self.choices))]
        assert self.low is not None
        assert self.high is not None
        whole = isinstance(self.low, int) and isinstance(self.high, int)
        if self.logarithmic:
            value = float(np.exp(rng.uniform(np.log(self.low), np.log(self.high))))
        else:
            value = float(rng.uniform(self.low, self.high))
        return round(value) if whole else float(f"{value:.3g}")

    def __contains__(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        assert self.low is not None
        assert self.high is not None
        return self.low <= value <= self.high

    def __str__(self) -> str:
        if self.choices:
            return " or ".join(_spell(choice) for choice in self.choices)
        return f"{self.low:g} to {self.high:g}"

    def to_json(self) -> dict[str, Any]:
        """Return its form in JSON."""
        if self.choices:
            return {"choices": list(self.choices), "why": self.why}
        return {"low": self.low, "high": self.high, "why": self.why}


def between(low: float, high: float, why: str = "") -> Scope:
    """Return the scope from ``low`` to ``high``, both included; whole numbers where both are."""
    return Scope(low, high, (), why)


def choices(*values: Any, why: str = "") -> Scope:
    """Return the scope of some values, such as several tuples of widths."""
    return Scope(choices=values, why=why)


def param(default: Any, doc: str, *, unit: str = "1", scope: Scope | None = None) -> Any:
    """Declare a field of a claim.

    Args:
        default: its value in the quick preset.
        doc: what it is, in a few words.
        unit: of its values, ``"1"`` for pure numbers.
        scope: where the claim says that it holds; None for a field that only sets how much is computed.
    """
    return field(default=default, metadata={"doc": f"{doc} [{unit}]", "scope": scope})


def scope_of(kind: type) -> dict[str, Scope]:
    """Return the scope of every field of a claim that has one, by name."""
    return {
        parameter.name: parameter.metadata["scope"]
        for parameter in fields(kind)
        if parameter.metadata.get("scope") is not None
    }


def meanings(kind: type) -> dict[str, str]:
    """Return what each field of a claim is, by name, with its unit in brackets."""
    return {
        parameter.name: parameter.metadata["doc"]
        for parameter in fields(kind)
        if "doc" in parameter.metadata
    }


def _spell(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
