"""A network's limit in words and numbers, for JSON: workers read it and find activations by their names."""

from dataclasses import fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steepest.core.errors import UserError
from steepest.kernels.wide.duals import Closed, Dual, Piecewise, ScaleInvariant, Series
from steepest.nn.activations import Activation, activation, jumps
from steepest.nn.layers import WideLimit, _nodes
from steepest.nn.layers._window import Window
from steepest.nn.networks import LayerLimit, Limit

PROBES = np.linspace(-3.0, 3.0, 25)  # where two activations are compared
DUALS = {kind.__name__: kind for kind in (ScaleInvariant, Closed, Piecewise, Series)}


def describe(limit: Limit | WideLimit) -> dict[str, Any]:
    """Describe a network: its layers, or its nodes."""
    if isinstance(limit, WideLimit):
        nodes = [_written(node) for node in limit.nodes]
        return {"shape": list(limit.shape), "nodes": nodes, "spaces": _lists(limit.spaces)}
    return {
        "activation": limit.activation.name,
        "kinks": list(limit.activation.kinks),
        "layers": [list(layer) for layer in limit.layers],
        "skip": limit.skip,
        "normalized": limit.normalized,
    }


def limit_of(network: dict[str, Any]) -> Limit | WideLimit:
    """Read such a description."""
    if "nodes" in network:
        nodes = tuple(_node(written) for written in network["nodes"])
        return WideLimit(tuple(network["shape"]), nodes, _tuples(network["spaces"]))
    layers = tuple(LayerLimit(*layer) for layer in network["layers"])
    return Limit(activation(network["activation"]), layers, network["skip"], network["normalized"])


def describe_duals(duals: tuple[Dual | None, ...]) -> list[dict[str, Any] | None]:
    """Describe the expectations of each node."""
    return [None if dual is None else _written(dual) for dual in duals]


def duals_of(described: list[dict[str, Any] | None]) -> tuple[Dual | None, ...]:
    """Read them."""
    return tuple(None if entry is None else _dual(entry) for entry in described)


def activations_of(limit: Limit | WideLimit) -> list[Activation]:
    """List the activations, in order."""
    if isinstance(limit, Limit):
        return [limit.activation]
    kinds = (_nodes.Activate, _nodes.AttendEntrywise)
    return [node.activation for node in limit.nodes if isinstance(node, kinds)]


def probes(limit: Limit | WideLimit) -> list[float]:
    """Evaluate all activations at fixed points: two may share a name."""
    return [value for σ in activations_of(limit) for value in _values(σ)]


def alike(values: list[float], others: list[float]) -> bool:
    """Tell whether two activations are one, up to the rounding of machines."""
    if len(values) != len(others):
        return False
    return np.allclose(values, others, rtol=1e-9, atol=1e-9, equal_nan=True)


def named(σ: Activation) -> bool:
    """Tell whether an activation is the library's of this name."""
    try:
        return alike(_values(activation(σ.name)), _values(σ))
    except UserError:
        return False


def jumping(limit: Limit | WideLimit) -> Activation | None:
    """Return an activation that jumps, if there is one."""
    acts = [limit] if isinstance(limit, Limit) else limit.nodes
    for σ in (node.activation for node in acts if isinstance(node, (Limit, _nodes.Activate))):
        if any(value for _, value, _ in jumps(σ)):
            return σ
    return None


def _values(σ: Activation) -> list[float]:
    with jax.enable_x64(True):
        return np.asarray(σ(jnp.asarray(PROBES)), float).tolist()


def _written(thing: Any) -> dict[str, Any]:
    """Write a dataclass with its name; activations by theirs."""
    entries = {field.name: getattr(thing, field.name) for field in fields(thing)}
    plain = {name: _plain(value) for name, value in entries.items()}
    return {"kind": type(thing).__name__, **plain}


def _plain(value: Any) -> Any:
    if isinstance(value, Activation):
        return value.name
    if isinstance(value, Window):
        return _lists(value._asdict())
    return _lists(value)


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lists(one) for name, one in value.items()}
    return [_lists(one) for one in value] if isinstance(value, tuple) else value


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value


def _node(written: dict[str, Any]) -> _nodes.Node:
    entries = _entries(written)
    if entries.get("window") is not None:
        window = {name: _tuples(value) for name, value in written["window"].items()}
        entries["window"] = Window(**window)
    return getattr(_nodes, written["kind"])(**entries)


def _dual(written: dict[str, Any]) -> Dual:
    return DUALS[written["kind"]](**_entries(written))


def _entries(written: dict[str, Any]) -> dict[str, Any]:
    entries = {name: _tuples(value) for name, value in written.items() if name != "kind"}
    if "activation" in entries:
        entries["activation"] = activation(entries["activation"])
    return entries
