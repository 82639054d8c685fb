"""First-order numbers of a module of torch along its training: what it has at hand anyway, for next to nothing."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.measurement.adapters import is_torch_module

ALL = 16  # first steps, each of which is looked at
EVERY = 8  # steps later on, of which two are: going through all weights costs as much as a layer
HELD = 20  # steps whose numbers wait on their device before they are fetched together
LOSS = "loss of the batch"
GRADIENT = "gradient norm of the batch"
UPDATE = "update over weight"
LARGEST = "largest update over weight of a layer"


class Look(NamedTuple):
    """Norms at one step, of each array of weights, shape ``(arrays,)``; NaN where there is none."""

    step: int
    weights: NDArray  # where updates are taken
    updates: NDArray  # since the step before
    gradients: NDArray  # of the last backward pass, if they are still there
    loss: float


class _Held(NamedTuple):
    """Norms at one step on their device, one tensor for each array of weights; none where there are none."""

    step: int
    weights: list[Any]
    updates: list[Any]
    gradients: list[Any]
    loss: Any


class FirstOrder:
    """Looks at a module in every step, and sums up since the last record.

    Attributes:
        names: of the arrays of weights.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self._before: list[Any] = []  # weights of the step before
        self._step: int | None = None
        self._module: Any = None
        self._weights: list[Any] = []
        self._held: list[_Held] = []
        self._looks: list[Look] = []

    def look(self, step: int, model: Any, loss: Any = None) -> int | None:
        """Take the norms of now; return the step at which weights are seen not to be finite, if they are.

        Args:
            step: of the training.
            model: a module of torch; of anything else nothing is taken.
            loss: of the last batch, if the loop hands it over.
        """
        if not is_torch_module(model):
            return None
        import torch

        ops = torch.ops.aten  # of whole lists, as torch's own optimizers use them
        norms = ops._foreach_norm.Scalar
        if (
            self._module is not model or not self._held
        ):  # going through the modules costs more than the norms
            self._begin(model)
        sizes, moved, pulled = [], [], []
        if step < ALL or step % EVERY < 2:  # the second step of a pair has the update of the first
            weights = [weight.detach() for weight in self._weights]
            if self._step is not None and step == self._step + 1:
                sizes = norms(weights, 2)
                moved = norms(ops._foreach_sub.List(weights, self._before), 2)
            if step < ALL or step % EVERY == 0:
                ops._foreach_copy_.default(self._before, weights)
                self._step = step
            slopes = [weight.grad for weight in self._weights]
            if all(slope is not None and not slope.is_sparse for slope in slopes):
                pulled = norms(slopes, 2)
        held = loss.detach().clone() if hasattr(loss, "detach") else loss
        self._held.append(_Held(step, sizes, moved, pulled, held))
        return self._fetch() if len(self._held) >= HELD else None

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

    def quantities(self) -> tuple[dict[str, dict[str, Any]], dict[str, float]]:
        """Return entries of a record, medians over the steps since the last one, and updates by array; begin anew."""
        self._fetch()
        looks = self._looks
        self._looks = []
        if not looks:
            return {}, {}
        weights, updates, gradients = (
            np.array([look[i] for look in looks], float) for i in (1, 2, 3)
        )
        total = lambda norms: np.sqrt(np.nansum(norms**2, axis=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = updates / weights
            overall = np.where(np.isnan(updates).all(1), np.nan, total(updates) / total(weights))
        slopes = np.where(np.isnan(gradients).all(1), np.nan, total(gradients))
        layers = {
            name: value
            for name, column in zip(self.names, shares.T, strict=True)
            if (value := _median(column)) is not None
        }
        entries = {
            LOSS: _median(np.array([look.loss for look in looks])),
            GRADIENT: _median(slopes),
            UPDATE: _median(overall),
            LARGEST: max(layers.values(), default=None),
        }
        return {name: _entry(value) for name, value in entries.items() if value is not None}, layers

    def _fetch(self) -> int | None:
        """Bring what is held to the host; return the first step at which a weight is seen not to be finite."""
        if not self._held:
            return None
        import torch

        flat = [norm for held in self._held for part in held[1:4] for norm in part]
        stacked = torch.stack([norm.float() for norm in flat]).cpu().tolist() if flat else []
        fetched = iter(stacked)
        bad = None
        for held in self._held:
            weights, updates, gradients = (self._array(len(part), fetched) for part in held[1:4])
            self._looks.append(Look(held.step, weights, updates, gradients, _number(held.loss)))
            if bad is None and held.weights and not np.isfinite(weights).all():
                bad = held.step
        self._held = []
        return bad

    def _array(self, count: int, fetched: Iterator[float]) -> NDArray:
        """Take norms of all arrays of weights; NaN where there are none."""
        nothing = np.full(len(self.names), np.nan)
        return np.array(list(islice(fetched, count))) if count else nothing


def _number(loss: Any) -> float:
    return np.nan if loss is None else float(loss)


def _median(values: NDArray) -> float | None:
    """Return the median of what is finite; None where nothing is.

    >>> _median(np.array([1.0, np.nan, 3.0])), _median(np.array([np.nan]))
    (2.0, None)
    """
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else None


def _entry(value: float) -> dict[str, Any]:
    return {
        "value": value,
        "interval": None,
        "source_of_error": "rounding",
        "over_examples": None,
        "compared": None,
        "theory": "",
    }
