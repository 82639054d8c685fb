"""First-order numbers of a model along its training: what it has at hand anyway, for next to nothing."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.measurement._report import Reading
from steepest.measurement.adapters import is_torch_module
from steepest.measurement.training._weights import Norms, Weights, weights_of

ALL = 16  # first steps, each of which is looked at
EVERY = 8  # steps later on, of which two are: going through all weights costs as much as a layer
HELD = 20  # steps whose numbers wait on their device before they are fetched together
LOSS = "loss of the batch"
GRADIENT = "gradient norm of the batch"
UPDATE = "update over weight"
LARGEST = "largest update over weight of a layer"


class Look(NamedTuple):
    """What was taken at one step: norms on their device, and once they are fetched numbers."""

    step: int
    norms: Norms
    loss: Any  # of the last batch, or None


class FirstOrder:
    """Looks at a model in every step, and sums up since the last record.

    Attributes:
        names: of the arrays of weights.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self._model: Any = None  # the module whose weights are listed
        self._weights: Weights | None = None
        self._before: Any = None  # a copy of the weights, at
        self._step: int | None = None
        self._held: list[Look] = []  # on their device
        self._fetched: list[Look] = []

    def look(self, step: int, model: Any, loss: Any = None) -> int | None:
        """Take the norms of now; return the step at which weights are seen not to be finite, if they are.

        Args:
            step: of the training.
            model: a module of torch, or a pair ``(apply, params)``; of anything else nothing is taken.
            loss: of the last batch, if the loop hands it over.
        """
        # the second step of a pair has the update of the first
        due = step < ALL or step % EVERY < 2
        if (due or self._weights is None) and not self._list(model):
            return None
        loss = loss.detach().clone() if hasattr(loss, "detach") else loss
        norms = self._norms(step) if due else Norms()
        self._held.append(Look(step, norms, loss))
        return self._fetch() if len(self._held) >= HELD else None

    def readings(self) -> list[Reading]:
        """Return medians over the steps since the last call, and begin anew; updates by array are among the parts."""
        self._fetch()
        looks = self._fetched
        self._fetched = []
        if not looks:
            return []
        weights, updates, gradients = (self._table(looks, name) for name in Norms._fields)
        size = _total(weights)
        # no layer has the largest update where another has no size
        sound = np.where(np.isfinite(size), 1.0, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = updates / weights * sound[:, None]
            overall = _total(updates) / size
        columns = zip(self.names, shares.T, strict=True)
        medians = {name: _median(column) for name, column in columns}
        layers = {name: value for name, value in medians.items() if value is not None}
        losses = np.array([np.nan if look.loss is None else look.loss for look in looks])
        values = {
            LOSS: _median(losses),
            GRADIENT: _median(_total(gradients)),
            UPDATE: _median(overall),
        }
        readings = [Reading(name, value) for name, value in values.items() if value is not None]
        if layers:
            readings.append(Reading(LARGEST, max(layers.values()), parts=layers))
        return readings

    def _list(self, model: Any) -> bool:
        """List the weights of now, and forget those of the step before if they are others; tell if there are any."""
        # a module keeps its weights, and going through it costs more than the norms
        if model is self._model and is_torch_module(model) and self._held:
            return True
        weights = weights_of(model)
        if weights is None:
            return False
        replaced = is_torch_module(model) and model is not self._model
        if replaced or weights.names != self.names:
            self._before = self._step = None
        self.names = weights.names
        self._model = model
        self._weights = weights
        return True

    def _norms(self, step: int) -> Norms:
        """Take the norms of now, and keep the weights where the next step is to be compared with them."""
        assert self._weights is not None
        follows = self._step is not None and step == self._step + 1
        norms = self._weights.norms(self._before if follows else None)
        if step < ALL or step % EVERY == 0:
            self._before = self._weights.copy(self._before)
            self._step = step
        return norms

    def _fetch(self) -> int | None:
        """Bring what is held to the host; return the first step at which a weight is seen not to be finite."""
        held = self._held
        self._held = []
        if self._weights is None:
            return None
        rows = iter(self._weights.fetch([row for look in held for row in look.norms]))
        gone = None
        for look in held:
            norms = Norms(*(next(rows) for _ in look.norms))
            loss = None if look.loss is None else float(look.loss)
            self._fetched.append(Look(look.step, norms, loss))
            if gone is None and not np.isfinite(norms.weights).all():
                gone = look.step
        return gone

    def _table(self, looks: Sequence[Look], name: str) -> NDArray:
        """Return the norms ``(looks, arrays)``; NaN where they were not taken."""
        nothing = [np.nan] * len(self.names)
        return np.array([getattr(look.norms, name) or nothing for look in looks], float)


def _total(norms: NDArray) -> NDArray:
    """Return the norm of all arrays together at each look."""
    return np.sqrt((norms**2).sum(axis=1))


def _median(values: NDArray) -> float | None:
    """Return the median of what is finite; None where nothing is.

    >>> _median(np.array([1.0, np.nan, 3.0])), _median(np.array([np.nan]))
    (2.0, None)
    """
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else None
