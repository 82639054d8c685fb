"""Named arrays with dimensions and units: the form of every prediction and observation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Quantity:
    """An array that knows its axes and its unit.

    Attributes:
        values: the numbers, in NumPy.
        dims: one name an axis, such as ``("seed", "step")``.
        unit: ``""`` for pure numbers.
    """

    values: np.ndarray
    dims: tuple[str, ...]
    unit: str = ""

    def __post_init__(self) -> None:
        if self.values.ndim != len(self.dims):
            raise ValueError(
                f"a quantity needs one name an axis: got shape {self.values.shape} and dimensions {self.dims}"
            )


class Quantities(Mapping[str, np.ndarray]):
    """A read-only collection of named quantities; indexing gives the plain NumPy array.

    Build it from ``name=values`` (a number) or ``name=(dims, values)`` or ``name=(dims, values, unit)``, where dims is
    a string of axis names separated by spaces.

    >>> found = Quantities(loss=("step", [1.0, 0.5]), width=100.0)
    >>> found["loss"].shape, found.quantity("loss").dims
    ((2,), ('step',))
    """

    def __init__(self, /, **entries: Any) -> None:
        self._quantities = {name: _quantity(name, entry) for name, entry in entries.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._quantities[name].values

    def __iter__(self) -> Iterator[str]:
        return iter(self._quantities)

    def __len__(self) -> int:
        return len(self._quantities)

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}{list(q.values.shape)}" for k, q in self._quantities.items())
        return f"{type(self).__name__}({inside})"

    def quantity(self, name: str) -> Quantity:
        """The array together with its dimensions and unit."""
        return self._quantities[name]

    def replace(self, **entries: Any) -> "Quantities":
        """A copy with some quantities replaced or added."""
        return type(self)(**{**self._quantities, **entries})


class Prediction(Quantities):
    """What theory says, before the experiment."""


class Observation(Quantities):
    """What the experiment gave, whatever theory says."""


def _quantity(name: str, entry: Any) -> Quantity:
    if isinstance(entry, tuple):
        dims, values, *unit = entry
        axes = tuple(dims.split()) if isinstance(dims, str) else tuple(dims)
        entry = Quantity(_array(values), axes, *unit)
    elif not isinstance(entry, Quantity):
        entry = Quantity(_array(entry), ())
    if entry.values.dtype.kind not in "biufc":
        raise ValueError(
            f"quantity {name!r} is not an array of numbers but of {entry.values.dtype}"
        )
    return entry


def _array(values: Any) -> Any:
    """A NumPy array; inside a compiled computation, where there are no numbers yet, what stands for them."""
    try:
        return np.asarray(values)
    except TypeError:
        if hasattr(values, "aval"):
            return values
        raise
