"""The layers of a torch module: what they read and write, shifts of what they write, and plain chains of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from steepest.measurement.adapters._dense import Dense
from steepest.measurement.adapters._wrappers import own_buffers

LINEAR = (nn.Linear, nn.modules.conv._ConvNd)
NORMALIZING = nn.modules.batchnorm._NormBase
"""Batch normalization, and instance normalization with running statistics."""
TANH = 2.65
LOGISTIC = 4.6
"""Beyond these their outputs are within 1 % of the end of their range."""
DIVIDING = (
    nn.modules.batchnorm._NormBase,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
)
"""Layers that divide by the size of what they read."""
NAMES = {
    nn.Identity: "linear",
    nn.Dropout: "linear",
    nn.ReLU: "relu",
    nn.Tanh: "tanh",
    nn.SiLU: "silu",
    nn.Sigmoid: "sigmoid",
}


def linear_layers(module: nn.Module, kinds: tuple[type, ...] = LINEAR) -> list[str]:
    """List the linear and convolutional layers by name; the module itself is called ``""``."""
    return [name for name, layer in module.named_modules() if isinstance(layer, kinds)]


def normalizing_layers(module: nn.Module) -> tuple[str, ...]:
    """List the layers that take the statistics of the batch in training and running ones in evaluation.

    Where the module is in training mode these are the layers that are in it too: others are frozen. A module in
    evaluation mode does not tell, and counts as one that is trained as usual.
    """
    layers = {
        name: layer
        for name, layer in module.named_modules()
        if isinstance(layer, NORMALIZING) and layer.running_mean is not None
    }
    trained = tuple(name for name, layer in layers.items() if layer.training)
    return trained if trained or module.training else tuple(layers)


@contextmanager
def statistics_of_batch(module: nn.Module, names: tuple[str, ...]) -> Iterator[None]:
    """Let these layers take the statistics of the batch, and others of their kind the running ones.

    Modes and running statistics stay as they were. Layers that would ask other processes for their statistics take
    those of this process.
    """
    layers = [
        (name, layer) for name, layer in module.named_modules() if isinstance(layer, NORMALIZING)
    ]
    before = [(layer, layer.training, dict(layer._buffers)) for _, layer in layers]
    waiting = [layer for _, layer in layers if _waits_for_others(layer)]
    try:
        for layer in waiting:
            alone: Any = nn.modules.batchnorm._BatchNorm.forward
            vars(layer)["forward"] = partial(alone, layer)
        for name, layer in layers:
            layer.training = name in names
            # copies take the new running statistics: put back by copying, they would break the graph
            layer._buffers.update(
                {key: b.clone() for key, b in layer._buffers.items() if b is not None}
            )
        yield
    finally:
        for layer in waiting:
            del vars(layer)["forward"]
        for layer, mode, buffers in before:
            layer.training = mode
            layer._buffers.update(buffers)


def _waits_for_others(layer: nn.Module) -> bool:
    """Tell whether a layer asks other processes for their statistics, by the forward pass of its class."""
    return isinstance(layer, nn.SyncBatchNorm) and "forward" not in vars(layer)


def normalized(
    function: Callable[[Any, Any], Tensor], module: nn.Module, names: tuple[str, ...]
) -> Callable[[Any, Any], Tensor]:
    """Return a loss of ``(params, batch)``, which calls the module itself, with the statistics of the batch."""

    def loss(params: Any, batch: Any) -> Tensor:
        precision = next(iter(params.values())).dtype
        with own_buffers(module, precision), statistics_of_batch(module, names):
            return function(params, batch)

    return loss


@contextmanager
def calls_of(module: nn.Module, names: list[str]) -> Iterator[list[tuple[str, Tensor, Tensor]]]:
    """Record what these layers read and give, in the order in which they are reached; the hooks are removed again."""
    calls: list[tuple[str, Tensor, Tensor]] = []
    copied = lambda tensor: tensor.detach().clone()  # as the module may go on in place

    def record(name: str, _, given: tuple, named: dict, out: Tensor) -> None:
        calls.append((name, copied(_read(given, named)), copied(out)))

    with _hooked(module, {name: partial(record, name) for name in names}):
        yield calls


@contextmanager
def last_call_of(module: nn.Module, names: list[str]) -> Iterator[dict[str, Tensor]]:
    """Record which of these layers was reached last, and what it gave: one layer's outputs are held at a time."""
    last: dict[str, Tensor] = {}

    def record(name: str, _, given: tuple, named: dict, out: Tensor) -> None:
        last.clear()
        last[name] = out.detach().clone()  # as the module may go on in place

    with _hooked(module, {name: partial(record, name) for name in names}):
        yield last


@contextmanager
def gates_of(module: nn.Module) -> Iterator[list[tuple[str, float]]]:
    """Record of LSTM and GRU layers which share of a gate's inputs lies where the gate is open or shut to 1 %.

    Of the gate with the largest share. The layers keep what their gates read to themselves; of one layer in one
    direction it is known from its inputs and its states.
    """
    shares: list[tuple[str, float]] = []

    def record(name: str, layer: nn.RNNBase, given: tuple, named: dict, out: tuple) -> None:
        read = _read(given, named)
        # packed sequences have no axis of steps
        if isinstance(read, Tensor) and read.ndim == 3:
            start = given[1:2] or tuple(named[key] for key in ("hx",) if key in named)
            shares.append((name, _shut_or_open(layer, read.detach(), out[0].detach(), start)))

    names = [
        name
        for name, layer in module.named_modules()
        if isinstance(layer, nn.LSTM | nn.GRU)
        and layer.num_layers == 1
        and not layer.bidirectional
        and not layer.proj_size
    ]
    with _hooked(module, {name: partial(record, name) for name in names}):
        yield shares


def _shut_or_open(layer: Any, x: Tensor, states: Tensor, start: tuple) -> float:
    """Return the largest share of a gate's inputs beyond 99 % of its range.

    Args:
        layer: an LSTM or a GRU of one layer.
        x: what it reads, ``(b, t, in)``, or ``(t, b, in)`` as the layer has it.
        states: what it writes, ``(b, t, n)`` likewise.
        start: its first state, if it was given one.
    """
    along = 1 if layer.batch_first else 0
    before = torch.zeros_like(states.narrow(along, 0, 1))
    if start and start[0] is not None:
        first = start[0][0] if layer.mode == "LSTM" else start[0]  # (1, b, n)
        before = first.detach().transpose(0, along)
    before = torch.cat([before, states.narrow(along, 0, states.shape[along] - 1)], along)
    z = torch.nn.functional.linear(x, layer.weight_ih_l0) + torch.nn.functional.linear(
        before, layer.weight_hh_l0
    )
    if layer.bias:
        z = z + layer.bias_ih_l0 + layer.bias_hh_l0
    if layer.mode == "LSTM":
        ends = (LOGISTIC, LOGISTIC, TANH, LOGISTIC)  # input, forget, cell, output
        gates = z.chunk(4, -1)
    else:
        ends = (LOGISTIC, LOGISTIC)  # reset and update; the third reads through the first
        gates = z.chunk(3, -1)[:2]
    pairs = zip(gates, ends, strict=True)
    return max(float((gate.abs() > end).double().mean()) for gate, end in pairs)


@contextmanager
def shifts_of(module: nn.Module, names: list[str]) -> Iterator[dict[str, Tensor]]:
    """Add zeros to what these layers write, to differentiate by: of each layer that of its last call."""
    shifts: dict[str, Tensor] = {}

    def shifted(name: str):
        def hook(_, given, named, out: Tensor) -> Tensor:
            shifts[name] = torch.zeros_like(out, requires_grad=True)
            return out + shifts[name]  # a tensor of its own, which an activation may overwrite

        return hook

    with _hooked(module, {name: shifted(name) for name in names}):
        yield shifts


def _read(given: tuple, named: dict) -> Any:
    """Return what a layer reads: its first argument, which may be given by its name."""
    return given[0] if given else next(iter(named.values()))


@contextmanager
def _hooked(module: nn.Module, hooks: dict) -> Iterator[None]:
    handles = [
        module.get_submodule(name).register_forward_hook(hook, with_kwargs=True)
        for name, hook in hooks.items()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def dense_layers(module: nn.Module, tensors: dict[str, Tensor]) -> list[Dense] | None:
    """Return the layers of a chain of linear layers and activations, or None for anything else.

    A module whose only part is such a chain counts too: the caller compares outputs.

    Args:
        module: an ``nn.Sequential``, a linear layer, or a module around one.
        tensors: the weights that take the place of the module's own, by name.
    """
    named = {
        id(parameter): tensors.get(name, parameter.detach())
        for name, parameter in module.named_parameters()
    }
    chain: list[Dense] = []
    linear: set[nn.Module] = set()
    for name, layer in _parts(module, ""):
        if type(layer) is nn.Linear:
            if layer in linear:  # theory of chains takes weights of layers as independent
                return None
            linear.add(layer)
            matrix = named.get(id(layer.weight))
            bias = named.get(id(layer.bias))
            if matrix is None:  # computed from others, as by weight normalization
                return None
            biased = None if bias is None else bias.cpu().numpy()
            chain.append(
                Dense(name or type(module).__name__, matrix.cpu().numpy(), biased, "linear")
            )
        elif type(layer) is not nn.Flatten:
            activation = _activation(layer)
            if activation is None or (
                activation != "linear" and (not chain or chain[-1].activation != "linear")
            ):
                return None
            if activation != "linear":
                chain[-1] = chain[-1]._replace(activation=activation)
    return chain or None


def _parts(module: nn.Module, prefix: str) -> Iterator[tuple[str, nn.Module]]:
    """Yield layers in order with their names; what surrounds a single part, and sequences, are opened."""
    # not named_children(), which gives a layer that stands at several places once
    children = [(name, child) for name, child in module._modules.items() if child is not None]
    opened = type(module) is nn.Sequential or (
        len(children) == 1 and not list(module.parameters(recurse=False))
    )
    if not opened:
        yield prefix, module
        return
    for name, child in children:
        yield from _parts(child, f"{prefix}.{name}" if prefix else name)


def _activation(module: nn.Module) -> str | None:
    """Return the name of an elementwise activation that ``steepest.nn.activations`` knows."""
    if type(module) is nn.GELU:
        return "gelu" if module.approximate == "none" else None
    if type(module) is nn.ELU:
        return "elu" if module.alpha == 1 else None
    if type(module) is nn.Softplus:
        return "softplus" if module.beta == 1 else None
    if type(module) is nn.LeakyReLU:
        return f"leaky_relu({module.negative_slope!r})"
    return NAMES.get(type(module))
