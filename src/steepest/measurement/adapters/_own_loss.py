"""The loss that a module of torch returns itself, as the models of transformers do."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from steepest.core.errors import UserError
from steepest.measurement.adapters._graph import called

EXPECTED = (
    "without a loss, the model must return its own from batches that are dictionaries with the labels, as those of "
    "transformers do; give loss=, of (outputs, targets) or of (params, batch)"
)


def own_loss(module: nn.Module) -> Callable[[dict[str, Tensor], Any], Tensor]:
    """Return the loss of ``(params, batch)`` that the module computes when it is called with a batch as keywords.

    Raises:
        UserError: when called, on a batch that is no dictionary, or if the module returns no loss.
    """

    def loss(params: dict[str, Tensor], batch: Any) -> Tensor:
        if not isinstance(batch, Mapping):
            raise UserError(f"{EXPECTED}; got a batch of type {type(batch).__name__}")
        precision = next(iter(params.values())).dtype
        outputs = called(module, precision, params, (), dict(batch))
        value = outputs.get("loss") if isinstance(outputs, Mapping) else None
        if value is None:
            raise UserError(
                f"{type(module).__name__} returned no loss from {sorted(batch)}: {EXPECTED}"
            )
        return value

    return loss
