"""First-order numbers of a module of torch along its training: what it has at hand anyway, for next to nothing."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.measurement._report import Reading
from steepest.measurement.adapters import is_torch_module

ALL = 16  # first steps, each of which is looked at
EVERY = 8  # steps later on, of which two are: going through all weights costs as much as a layer
HELD = 20  # steps whose numbers wait on their device before they are fetched together
LOSS = "loss of the batch"
GRADIENT = "gradient norm of the batch"
UPDATE = "update over weight"
LARGEST = "largest update over weight of a layer"


class Look(NamedTuple):
    """Norms at one step, of each array of weights: tensors on their device, and once they are fetched numbers.

    A list is empty where norms were not taken.
    """

    step: int
    weights: list[Any]
    updates: list[Any]  # since the step before
    gradients: list[Any]  # of the last backward pass, if they are still there
    loss: Any  # of the last batch, or None


NORMS = ("weights", "updates", "gradients")


class FirstOrder:
    """Looks at a module in every step, and sums up since the last record.

    Attributes:
        names: of the arrays of weights.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self._module: Any = None
        self._weights: list[Any] = []
        self._before: list[Any] = []  # weights of the step before
        self._step: int | None = None  # when they were kept
        self._held: list[Look] = []  # on their device
        self._fetched: list[Look] = []

    def look(self, step: int, model: Any, loss: Any = None) -> int | None:
        """Take the norms of now; return the step at which weights are seen not to be finite, if they are.

        Args:
            step: of the training.
            model: a module of torch; of anything else nothing is taken.
            loss: of the last batch, if the loop hands it over.
        """
        if not is_torch_module(model):
            return None
        # going through the modules costs more than the norms
        if self._module is not model or not self._held:
            self._begin(model)
        loss = loss.detach().clone() if hasattr(loss, "detach") else loss
        taken = Look(step, [], [], [], loss)
        if step < ALL or step % EVERY < 2:  # the second step of a pair has the update of the first
            taken = taken._replace(**self._norms(step))
        self._held.append(taken)
        return self._fetch() if len(self._held) >= HELD else None

    def readings(self) -> list[Reading]:
        """Return medians over the steps since the last call, and begin anew; updates by array are among the parts."""
        self._fetch()
        looks = self._fetched
        self._fetched = []
        if not looks:
            return []
        weights, updates, gradients = (self._table(looks, name) for name in NORMS)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = updates / weights
            overall = _total(updates) / _total(weights)
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

    def _begin(self, model: Any) -> None:
        """List the weights of now, and forget those of the step before if they are others."""
        named = [(name, w) for name, w in model.named_parameters() if w.requires_grad]
        names = [name for name, _ in named]
        self._weights = [w for _, w in named]
        if self._module is not model or names != self.names:
            self.names = names
            self._before = [w.detach().clone() for w in self._weights]
            self._step = None
        self._module = model

    def _norms(self, step: int) -> dict[str, list[Any]]:
        """Take the norms of now, and keep the weights where the next step is to be compared with them."""
        import torch

        ops = torch.ops.aten  # of whole lists, as torch's own optimizers use them
        norms = ops._foreach_norm.Scalar
        taken = {}
        weights = [weight.detach() for weight in self._weights]
        if self._step is not None and step == self._step + 1:
            taken["weights"] = norms(weights, 2)
            taken["updates"] = norms(ops._foreach_sub.List(weights, self._before), 2)
        if step < ALL or step % EVERY == 0:
            ops._foreach_copy_.default(self._before, weights)
            self._step = step
        slopes = [weight.grad for weight in self._weights]
        if all(slope is not None and not slope.is_sparse for slope in slopes):
            taken["gradients"] = norms(slopes, 2)
        return taken

    def _fetch(self) -> int | None:
        """Bring what is held to the host; return the first step at which a weight is seen not to be finite."""
        if not self._held:  # as for functions of JAX, whose users may have no torch
            return None
        import torch

        held = self._held
        self._held = []
        tensors = [t.float() for look in held for name in NORMS for t in getattr(look, name)]
        numbers = iter(torch.stack(tensors).cpu().tolist() if tensors else [])
        gone = None
        for look in held:
            taken = {name: list(islice(numbers, len(getattr(look, name)))) for name in NORMS}
            loss = None if look.loss is None else float(look.loss)
            self._fetched.append(look._replace(loss=loss, **taken))
            if gone is None and not np.isfinite(taken["weights"]).all():
                gone = look.step
        return gone

    def _table(self, looks: Sequence[Look], name: str) -> NDArray:
        """Return the norms ``(looks, arrays)``; NaN where they were not taken."""
        nothing = [np.nan] * len(self.names)
        return np.array([getattr(look, name) or nothing for look in looks], float)


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
