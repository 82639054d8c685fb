"""Tangent kernels of modules of torch, by their Jacobians; torch is imported only where a module of it is given."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from steepest.core.errors import UserError
from steepest.core.given import shown

MEMORY = 2**30  # bytes that one block of the Jacobian may take
CONTRACTIONS = {
    "scalar": "nap,map->nm",
    "trace": "nap,map->nm",
    "each": "nap,map->nma",
    "all": "nap,mbp->namb",
}
"""Products of two Jacobians ``(n, k, p)`` by the choice of outputs."""


def is_torch_module(network: Any) -> bool:
    """Tell whether it is a module of torch, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(network, torch.nn.Module)


def torch_ntk(
    module: Any, tensors: Mapping[str, Any] | None, x: Any, other: Any, outputs: str
) -> Array:
    """Compute Θ = J Jᵀ of a module of torch as it stands, in evaluation or training mode.

    Each example is differentiated by itself (``torch.func``), some examples at a time.

    Args:
        module: a ``torch.nn.Module``.
        tensors: its parameters by name, or some of them; the module's own stand for all others. Kernels are
            of the tensors that require gradients, or, where none does, of the module's own that do.
        x: inputs, tensors or arrays; a tuple of them where the module reads several.
        other: a second set, or None.
        outputs: a key of ``CONTRACTIONS``.

    Raises:
        UserError: a module that torch cannot differentiate by example; several outputs where one is expected; tensors
            of other names, none that require gradients, no inputs.
    """
    import torch

    weights, fixed = _weights(module, {} if tensors is None else tensors)
    first = _tensors(x, weights)
    second = first if other is None else _tensors(other, weights)
    if not len(first[0]) or not len(second[0]):
        raise UserError("the kernel needs one input at least, got none; give rows")
    shape = _shape(module, fixed | weights, first)
    n = len(first[0])
    k = int(np.prod(shape))
    if outputs == "scalar" and k > 1:
        raise UserError(
            f"a scalar kernel needs outputs of shape {(n,)}, got {(n, *shape)}; try outputs='trace' or outputs='all'"
        )
    size = sum(weight.numel() * weight.element_size() for weight in weights.values()) * k
    block = max(1, MEMORY // max(size, 1))
    jacobian = _by_example(module, weights, fixed)
    rows = []
    for left in _blocks(first, block):
        of_left = jacobian(left)
        row = [_contracted(of_left, jacobian(right), outputs) for right in _blocks(second, block)]
        rows.append(torch.cat(row, dim=2 if outputs == "all" else 1))
    return jnp.asarray(torch.cat(rows).detach().cpu().numpy())


def _weights(module: Any, tensors: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tensors by which outputs are differentiated, and others that stand in for the module's own."""
    held = dict(module.named_parameters())
    names = {*held, *(name for name, _ in module.named_buffers())}
    if not isinstance(tensors, Mapping) or not set(tensors) <= names:
        raise UserError(
            f"params of a module of torch are tensors by name, of {', '.join(sorted(names))}, got {shown(tensors)}; "
            "try None for its own"
        )
    given = dict(tensors)
    flags = held
    if any(tensor.requires_grad for tensor in given.values()):
        flags = held | given
    trained = {name: (held | given)[name].detach() for name in held if flags[name].requires_grad}
    if not trained:
        raise UserError(
            "the module has no parameters that require gradients, so that there is no tangent kernel; set requires_grad"
        )
    return trained, {name: t.detach() for name, t in given.items() if name not in trained}


def _tensors(x: Any, weights: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return inputs as tensors, arrays of other numbers than whole ones in the precision of the weights."""
    import torch

    like = next(iter(weights.values()))
    several = x if isinstance(x, tuple) else (x,)
    tensors = [a if isinstance(a, torch.Tensor) else torch.as_tensor(np.array(a)) for a in several]
    return tuple(a.to(like) if a.is_floating_point() else a.to(like.device) for a in tensors)


def _blocks(x: tuple[Any, ...], size: int) -> list[tuple[Any, ...]]:
    return [tuple(a[i : i + size] for a in x) for i in range(0, len(x[0]), size)]


def _output(module: Any, weights: Mapping[str, Any], example: tuple[Any, ...]) -> Any:
    """Return the outputs of one example."""
    import torch
    from torch.func import functional_call

    outputs = functional_call(module, dict(weights), tuple(a[None] for a in example))
    if not isinstance(outputs, torch.Tensor):
        raise UserError(
            f"the module must return one tensor of outputs, got {type(outputs).__name__}; wrap it in a module that "
            "returns the part that is meant"
        )
    return outputs[0]


def _shape(module: Any, weights: Mapping[str, Any], x: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape of the outputs of one example."""
    import torch

    with torch.no_grad(), _refused():
        return tuple(_output(module, weights, tuple(a[0] for a in x)).shape)


def _by_example(
    module: Any, weights: Mapping[str, Any], fixed: Mapping[str, Any]
) -> Callable[[tuple[Any, ...]], list[Any]]:
    """Return the function that gives ∂f_a(x_i)/∂θ of some examples, ``(n, k, p)`` for each parameter."""
    from torch.func import jacrev, vmap

    outputs = lambda w, *example: _output(module, fixed | w, example).reshape(-1)

    def jacobian(x: tuple[Any, ...]) -> list[Any]:
        with _refused():
            leaves = vmap(jacrev(outputs), (None, *(0,) * len(x)))(dict(weights), *x)
        return [leaf.flatten(2) for leaf in leaves.values()]

    return jacobian


@contextmanager
def _refused() -> Iterator[None]:
    """Say what torch cannot do with single examples, or with these inputs."""
    try:
        yield
    except UserError:
        raise
    except (RuntimeError, ValueError, TypeError) as trouble:
        raise UserError(
            f"torch cannot compute this module example by example: {trouble}; give the inputs that it reads, and take "
            "its evaluation mode, as batch normalization and dropout in training mode have no Jacobian of each example"
        ) from trouble


def _contracted(left: list[Any], right: list[Any], outputs: str) -> Any:
    """Sum J J'ᵀ over the parameters."""
    import torch

    products = [torch.einsum(CONTRACTIONS[outputs], a, b) for a, b in zip(left, right, strict=True)]
    return torch.stack(products).sum(0)
