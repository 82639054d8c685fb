"""From what users have to a subject."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from steepest.errors import UserError
from steepest.subject._batches import Batches
from steepest.subject._checks import check as check_derivatives
from steepest.subject._loss import Loss
from steepest.subject._subject import Subject


def subject(
    model: Any, loss: Any, data: Any, *, micro_batch: int = 1024, features: Any = None, check: bool = True
) -> Subject:
    """A model with its loss and data, as functions of its weights.

    Args:
        model: a pair ``(apply, params)`` with a JAX function of ``(params, x)``, or a network of ours, and any pytree
            of parameters; or a ``torch.nn.Module``, which is left exactly as it is.
        loss: mean over the examples of a batch, of ``(outputs, targets)``; or of ``(params, batch)`` if its first
            argument is called ``params``.
        data: a pair of arrays ``(x, y)`` or an iterable of batches that can be passed over many times.
        micro_batch: largest number of examples that are evaluated at once; bounds memory.
        features: of a JAX model, the function of ``(params, x)`` whose values the last layer reads; of a module, the
            name of its last linear layer.
        check: whether to check determinism and second derivatives (a few passes over the data).

    Raises:
        UserError: no such model, loss or data; a model in training mode; a failed check.

    >>> import jax.numpy as jnp
    >>> data = jnp.array([[1.0], [2.0]]), jnp.array([1.0, 2.0])
    >>> found = subject((lambda w, x: x @ w, jnp.zeros(1)), lambda f, y: ((f - y) ** 2).mean() / 2, data)
    >>> found.risk(), found.products(jnp.ones(1)).tolist()
    (1.25, [2.5])
    """
    loss = Loss.of(loss)
    if is_torch_module(model):
        from steepest.subject._torch import TorchBatches, TorchSubject

        found: Subject = TorchSubject.of(model, loss, TorchBatches(data, micro_batch), features)
    elif isinstance(model, tuple | list) and len(model) == 2:
        from steepest.subject._jax import JaxSubject

        found = JaxSubject.of(model, loss, Batches(data, micro_batch), features)
    else:
        raise UserError(
            f"a model is a pair (apply, params) of JAX or a torch.nn.Module, got {type(model).__name__}; "
            "of an equinox module give the pair of equinox.partition, with a function that combines it again"
        )
    if check:
        check_derivatives(found)
    found.passes = 0
    return found


def is_torch_module(model: Any) -> bool:
    """Whether this is a module of torch, found out without importing torch."""
    return any(kind.__module__ == "torch.nn.modules.module" for kind in type(model).__mro__)


@contextmanager
def in_evaluation(model: Any) -> Iterator[None]:
    """A module of torch in evaluation mode, every part of it set back afterwards; other models have no mode."""
    parts = [(each, each.training) for each in model.modules()] if is_torch_module(model) else []
    try:
        for each, _ in parts:
            each.training = False
        yield
    finally:
        for each, mode in parts:
            each.training = mode
