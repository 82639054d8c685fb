"""The layers of a torch module: what they read and write, shifts of what they write, and plain chains of them."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from steepest.subject._dense import Dense

LINEAR = (nn.Linear, nn.modules.conv._ConvNd)
NAMES = {nn.Identity: "linear", nn.Dropout: "linear", nn.ReLU: "relu", nn.Tanh: "tanh", nn.SiLU: "silu",
         nn.Sigmoid: "sigmoid"}  # fmt: skip


def linear_layers(module: nn.Module, kinds: tuple[type, ...] = LINEAR) -> list[str]:
    """Names of the linear and convolutional layers; the module itself is called ``""``."""
    return [name for name, each in module.named_modules() if isinstance(each, kinds)]


@contextmanager
def calls_of(module: nn.Module, names: list[str]) -> Iterator[list[tuple[str, Tensor, Tensor]]]:
    """What these layers read and give, in the order in which they are reached; the hooks are removed again."""
    seen: list[tuple[str, Tensor, Tensor]] = []
    copied = lambda each: each.detach().clone()  # as the module may go on in place
    record = lambda name: lambda _, given, out: seen.append((name, copied(given[0]), copied(out)))
    with _hooked(module, {name: record(name) for name in names}):
        yield seen


@contextmanager
def shifts_of(module: nn.Module, names: list[str]) -> Iterator[dict[str, Tensor]]:
    """Zeros that are added to what these layers write, to differentiate by: of each layer that of its last call."""
    shifts: dict[str, Tensor] = {}

    def shifted(name: str):
        def hook(_, given, out: Tensor) -> Tensor:
            shifts[name] = torch.zeros_like(out, requires_grad=True)
            return out + shifts[name]  # a tensor of its own, which an activation may overwrite

        return hook

    with _hooked(module, {name: shifted(name) for name in names}):
        yield shifts


@contextmanager
def _hooked(module: nn.Module, hooks: dict) -> Iterator[None]:
    handles = [module.get_submodule(name).register_forward_hook(hook) for name, hook in hooks.items()]
    try:
        yield
    finally:
        for each in handles:
            each.remove()


def dense_layers(module: nn.Module, tensors: dict[str, Tensor]) -> list[Dense] | None:
    """The layers of a chain of linear layers and activations, or None for anything else.

    A module whose only part is such a chain counts too: whoever reads this compares outputs.

    Args:
        module: an ``nn.Sequential``, a linear layer, or a module around one.
        tensors: the weights that take the place of the module's own, by name.
    """
    named = {id(each): tensors.get(name, each.detach()) for name, each in module.named_parameters()}
    found: list[Dense] = []
    for name, each in _parts(module, ""):
        if type(each) is nn.Linear:
            matrix, bias = named.get(id(each.weight)), named.get(id(each.bias))
            if matrix is None:  # computed from others, as by weight normalization
                return None
            biased = None if bias is None else bias.cpu().numpy()
            found.append(Dense(name or type(module).__name__, matrix.cpu().numpy(), biased, "linear"))
        elif type(each) is not nn.Flatten:
            activation = _activation(each)
            if activation is None or (activation != "linear" and (not found or found[-1].activation != "linear")):
                return None
            if activation != "linear":
                found[-1] = found[-1]._replace(activation=activation)
    return found or None


def _parts(module: nn.Module, prefix: str) -> Iterator[tuple[str, nn.Module]]:
    """Layers in order with their names; what surrounds a single part, and sequences, are opened."""
    children = list(module.named_children())
    opened = type(module) is nn.Sequential or (len(children) == 1 and not list(module.parameters(recurse=False)))
    if not opened:
        yield prefix, module
        return
    for name, each in children:
        yield from _parts(each, f"{prefix}.{name}" if prefix else name)


def _activation(module: nn.Module) -> str | None:
    """The name of an elementwise activation that ``steepest.activations`` knows."""
    if type(module) is nn.GELU:
        return "gelu" if module.approximate == "none" else None
    if type(module) is nn.ELU:
        return "elu" if module.alpha == 1 else None
    if type(module) is nn.Softplus:
        return "softplus" if module.beta == 1 else None
    if type(module) is nn.LeakyReLU:
        return f"leaky_relu({module.negative_slope!r})"
    return NAMES.get(type(module))
