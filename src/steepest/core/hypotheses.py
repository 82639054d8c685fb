"""What a theory assumes, with what was found."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from steepest.core.records import number, plain


@dataclass(frozen=True)
class Hypothesis:
    """Something that the theorem assumes, with its measured value.

    Attributes:
        name: what is assumed.
        value: the value found.
        threshold: the value required; of ``"between"`` the lower end.
        relation: how they must compare: ``"<"``, ``"<="``, ``">"``, ``">="``, ``"=="`` or ``"between"``.
        holds: whether they do.
        note: what to try where it does not hold.
        high: of ``"between"`` the upper end, else None.
    """

    name: str
    value: float
    threshold: float
    relation: str
    holds: bool
    note: str = ""
    high: float | None = None

    def __str__(self) -> str:
        if self.high is not None:
            return f"{self.threshold:.4g} < {self.name} = {self.value:.4g} < {self.high:.4g}"
        return f"{self.name} = {self.value:.4g} {self.relation} {self.threshold:.4g}"

    def to_json(self) -> dict[str, Any]:
        """Return its form in JSON; numbers that are not finite are null."""
        return plain(asdict(self))

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Hypothesis":
        """Return the inverse of :meth:`to_json`."""
        value = number(record["value"])
        threshold = number(record["threshold"])
        return cls(**{**record, "value": value, "threshold": threshold})


_RELATIONS = {
    "<": float.__lt__,
    "<=": float.__le__,
    ">": float.__gt__,
    ">=": float.__ge__,
    "==": float.__eq__,
}


def assume(
    name: str,
    value: float,
    relation: str = "between",
    threshold: float = math.nan,
    note: str = "",
    *,
    between: tuple[float, float] | None = None,
) -> Hypothesis:
    """State what the theory assumes, and check it.

    Args:
        name: what is assumed about.
        value: the value found.
        relation: how it must compare with ``threshold``: ``"<"``, ``"<="``, ``">"``, ``">="`` or ``"=="``.
        threshold: the value required.
        note: what to try where it does not hold.
        between: instead of relation and threshold, the ends of the open interval in which the value must lie.

    >>> assume("maximal margin", 0.3, ">", 0.0).holds
    True
    >>> str(assume("γλ₀", 2.5, between=(2, 4)))
    '2 < γλ₀ = 2.5 < 4'
    """
    value = float(value)
    if between is not None:
        low, high = map(float, between)
        return Hypothesis(name, value, low, "between", low < value < high, note, high)
    threshold = float(threshold)
    return Hypothesis(
        name, value, threshold, relation, _RELATIONS[relation](value, threshold), note
    )
