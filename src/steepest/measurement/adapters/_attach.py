"""Attaching to a user's model, loss and data."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from steepest.core.errors import UserError, nearest
from steepest.measurement.adapters._batches import Batches
from steepest.measurement.adapters._checks import check_subject
from steepest.measurement.adapters._loss import Loss
from steepest.measurement.adapters._modes import read_in_evaluation
from steepest.measurement.adapters._subject import Subject
from steepest.measurement.adapters._weighing import weigh
from steepest.measurement.adapters._wrappers import is_sharded, is_torch_module, unwrapped

Noise = Literal["refused", "fixed"]
NOISE = ("refused", "fixed")
NOISE_SEED = 271_828  # of the first batch's random numbers; those of the next are the next seed's


def subject(
    model: Any,
    loss: Any,
    data: Any,
    *,
    micro_batch: int = 1024,
    features: Any = None,
    check: bool = True,
    normalizing: tuple[str, ...] | None = None,
    batch: int | None = None,
    noise: Noise = "refused",
) -> Subject:
    """Attach to a model with its loss and data, as functions of its weights.

    Args:
        model: a pair ``(apply, params)`` with a JAX function of ``(params, x)``, or a network of ours, and any pytree
            of parameters; a ``torch.nn.Module``, of a parallel, compiling or averaging wrapper the one inside; a module
            of flax.nnx or equinox, ``(module, variables)`` of flax.linen, ``(transformed, params)`` of haiku. It is
            left exactly as it is.
        loss: mean over the examples of a batch, of ``(outputs, targets)``; or of ``(params, batch)`` if its first
            argument is called ``params``. None for a module that returns its own loss from batches that are
            dictionaries, as those of transformers do where the batch has ``labels``.
        data: a pair of arrays ``(x, y)`` or an iterable of batches that can be passed over many times.
        micro_batch: largest number of examples that are evaluated at once; bounds memory.
        features: of a JAX model, the function of ``(params, x)`` whose values the last layer reads; of a module, the
            name of its last linear layer.
        check: whether to check determinism and second derivatives (a few passes over the data).
        normalizing: names of a module's layers of batch normalization that take the statistics of the batch, as in
            training, from batches that are the same in every pass; the others take the running ones. None for a module
            in evaluation mode as it is.
        batch: examples in each batch of the training: where some layers are normalizing, arrays are cut so.
        noise: whether a module or loss that draws random numbers (dropout in training mode, a variational autoencoder)
            is ``"refused"``, or has them ``"fixed"``: the same numbers for a batch in every pass.

    Raises:
        UserError: no such model, loss or data; a model in training mode; a failed check.

    >>> import jax.numpy as jnp
    >>> data = jnp.array([[1.0], [2.0]]), jnp.array([1.0, 2.0])
    >>> attached = subject((lambda w, x: x @ w, jnp.zeros(1)), lambda f, y: ((f - y) ** 2).mean() / 2, data)
    >>> attached.risk(), attached.products(jnp.ones(1)).tolist()
    (1.25, [2.5])
    """
    if noise not in NOISE:
        raise UserError(f"there is no noise {noise!r}; {nearest(str(noise), NOISE)}")
    model = unwrapped(model)
    _refuse_shards(model)
    if loss is None and is_torch_module(model):
        from steepest.measurement.adapters._own_loss import own_loss

        loss = own_loss(model)
    loss = Loss.of(loss)
    if is_torch_module(model):
        from steepest.measurement.adapters._torch import TorchSubject

        size = (batch or micro_batch) if normalizing else micro_batch
        batches = Batches(data, size, entire=bool(normalizing))
        seed = NOISE_SEED if noise == "fixed" else None
        attached: Subject = TorchSubject.of(model, loss, batches, features, normalizing, seed)
    else:
        from steepest.measurement.adapters._jax import JaxSubject

        batches = Batches(data, micro_batch)
        attached = JaxSubject.of(model, loss, batches, features, noise == "fixed")
    if noise == "refused":  # what draws random numbers draws others for other batches
        weigh(attached)
    if check:
        check_subject(attached, fixed=noise == "fixed")
    attached.passes = 0
    return attached


def outputs_of(model: Any, output: Callable[[Any, Any], Any], data: Any) -> Subject:
    """Attach to a model with labelled data and a function of its outputs in place of a loss.

    It has outputs and their derivatives, and no loss. Nothing is checked but the model itself.

    Args:
        model: as in ``subject``.
        output: of ``(outputs, targets)``, one number of each example; what it keeps is put back as a loss's is.
        data: as in ``subject``, of pairs of inputs and targets.

    Raises:
        UserError: no such model or data; a model in training mode.
    """
    model = unwrapped(model)
    _refuse_shards(model)
    loss = Loss(output, of_params=False)
    if is_torch_module(model):
        from steepest.measurement.adapters._torch import TorchSubject

        return TorchSubject.of(model, loss, Batches(data))
    from steepest.measurement.adapters._jax import JaxSubject

    return JaxSubject.of(model, loss, Batches(data))


def _refuse_shards(model: Any) -> None:
    if is_sharded(model):
        raise UserError(
            f"each process holds only a part of the weights of {type(model).__name__}, which cannot be measured so; "
            "gather them in a module of one process (a full state dict loaded into the plain model)"
        )


def normalizing_layers(model: Any) -> tuple[str, ...]:
    """List a module's layers that take the statistics of the batch when it is trained; other models have none."""
    model = unwrapped(model)
    if not is_torch_module(model):
        return ()
    from steepest.measurement.adapters import _torch_layers

    return _torch_layers.normalizing_layers(model)


@contextmanager
def in_evaluation(model: Any) -> Iterator[None]:
    """Put a module of torch in evaluation mode, and every part of it back afterwards.

    Modules of JAX are read as copies in evaluation mode meanwhile.
    """
    parts = [(part, part.training) for part in model.modules()] if is_torch_module(model) else []
    try:
        for part, _ in parts:
            part.training = False
        with read_in_evaluation():
            yield
    finally:
        for part, mode in parts:
            part.training = mode


@contextmanager
def quick_threads(attached: Subject) -> Iterator[None]:
    """Let torch work on one thread if its gradients are faster so, as those of small networks are; set it back after.

    Threads that share a core with another program wait for each other at every operation.
    """
    if not type(attached).__module__.endswith("._torch"):
        yield
        return
    import torch

    theirs = torch.get_num_threads()
    try:
        several = gradient_seconds(attached)
        torch.set_num_threads(1)
        if theirs > 1 and gradient_seconds(attached) > several:
            torch.set_num_threads(theirs)
        yield
    finally:
        torch.set_num_threads(theirs)


def gradient_seconds(attached: Subject) -> float:
    """Return the shorter time of two gradients at other weights than before, after a first one."""
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        attached.at(attached.values()).gradient()
        times.append(time.perf_counter() - begun)
    return min(times[1:])
