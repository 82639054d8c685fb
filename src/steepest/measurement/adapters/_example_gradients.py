"""Gradients of single examples of a torch module: of all at once where torch can, else of one after the other."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.func import grad_and_value, vmap

from steepest.core.errors import UserError
from steepest.measurement.adapters._batches import (
    batch_of_one,
    examples,
    one_number,
    taken,
)
from steepest.measurement.adapters._graph import gradients, one_tensor

Tensors = dict[str, Tensor]


def of_examples(
    name: str,
    forward: Callable[[Tensors, Any], Any],
    tensors: Tensors,
    pair: Any,
    output: Callable[[Any, Any], Any],
    sketch: Any,
) -> tuple[Tensor, Tensor]:
    """Return a number of each example ``(b,)``, and what a sketch keeps of its gradient, ``(b, k)``.

    Args:
        name: of the model.
        forward: of weights and inputs.
        tensors: weights by name.
        pair: inputs and targets ``(b, …)``.
        output: of ``(outputs, targets)``, one number of each example.
        sketch: with ``of_torch``.
    """

    def one(weights: Tensors, example: Any) -> Tensor:
        x, y = example
        return one_number(output(one_tensor(name, forward(weights, x)), y))

    try:
        alone = grad_and_value(lambda weights, example: one(weights, batch_of_one(example)))
        slopes, values = vmap(alone, (None, 0))(tensors, pair)
    except UserError:
        raise
    except Exception:  # an operation that vmap does not know, or a branch on a value
        return _one_by_one(one, tensors, pair, sketch)
    return values, sketch.of_torch([slopes[key] for key in tensors])


def _one_by_one(
    one: Callable[[Tensors, Any], Tensor], tensors: Tensors, pair: Any, sketch: Any
) -> tuple[Tensor, Tensor]:
    """Return the same by backward passes of single examples, whose errors are the model's own."""
    values = []
    rows = []
    for i in range(examples(pair)):
        weights = {key: tensor.clone().requires_grad_() for key, tensor in tensors.items()}
        value = one(weights, taken(pair, slice(i, i + 1)))
        values.append(value.detach())
        slopes = gradients(value, list(weights.values()), None)
        rows.append(sketch.of_torch([slope[None] for slope in slopes]))
    return torch.stack(values), torch.cat(rows)
