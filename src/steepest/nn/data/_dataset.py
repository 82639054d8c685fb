"""A data set: inputs, targets and what is known about them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float

from steepest.nn.types import Values


@dataclass(frozen=True)
class Dataset:
    """Examples with what theory knows about their law.

    Attributes:
        x: inputs, shape ``(n, d)``, one example a row.
        y: targets: ``(n,)`` for regression or labels ±1, ``(n, C)`` for one-hot classes.
        name: how pages and tables call it.
        known: facts that hold by construction, such as ``{"margin": 0.5, "separator": w}``.
    """

    x: Float[Values, "n d"]
    y: Values
    name: str
    known: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Return the number of examples."""
        return self.x.shape[0]

    @property
    def d(self) -> int:
        """Return the dimension of an input."""
        return self.x.shape[1]
