"""Circuits of two-input gates, and the ReLU networks that they are compiled to.

A gate with inputs x and y is a + bx + cy + d·xy on bits, and xy = σ(x + y − 1). In these networks a unit reads inputs
and all units before it, and what is read out is affine in inputs and units: so one unit for each product is enough.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from steepest.nn.types import Values

AND = (0, 0, 0, 1)
OR = (0, 1, 1, -1)
XOR = (0, 1, 1, -2)
EQUAL = (1, -1, -1, 2)
LESS = (0, 0, 1, -1)
"""Coefficients of 1, x, y and xy; LESS is y and not x."""


class Circuit:
    """A list of gates, each of which reads two wires: inputs come first, then gates in their order."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.gates: list[tuple[tuple[int, ...], int, int]] = []
        self.outputs: list[int] = []

    def add(self, gate: tuple[int, ...], x: int, y: int) -> int:
        """Add a gate that reads wires x and y; return its wire."""
        self.gates.append((gate, x, y))
        return self.inputs + len(self.gates) - 1

    def half_adder(self, x: int, y: int) -> tuple[int, int]:
        """Add two gates; return the wires of sum and carry."""
        return self.add(XOR, x, y), self.add(AND, x, y)

    def full_adder(self, x: int, y: int, carry: int) -> tuple[int, int]:
        """Add five gates; return the wires of sum and carry."""
        either, carried = self.half_adder(x, y)
        total, passed = self.half_adder(either, carry)
        # xy and (x ⊕ y)·carry are never both one
        return total, self.add(OR, carried, passed)

    def sum_of(self, first: list[int], second: list[int]) -> list[int]:
        """Add an adder that ripples, of numbers with their lowest bit first; return the wires of the sum.

        Where one number has fewer bits, half adders take the carry on.
        """
        wires = []
        carry = -1
        short, long = sorted((first, second), key=len)
        for place, bit in enumerate(long):
            if place == 0:
                total, carry = self.half_adder(bit, short[0])
            elif place < len(short):
                total, carry = self.full_adder(short[place], bit, carry)
            else:
                total, carry = self.half_adder(bit, carry)
            wires.append(total)
        return [*wires, carry]


def adder(bits: int) -> Circuit:
    """Return the circuit of a + b."""
    circuit = Circuit(2 * bits)
    circuit.outputs = circuit.sum_of(list(range(bits)), list(range(bits, 2 * bits)))
    return circuit


def comparator(bits: int) -> Circuit:
    """Return the circuit of a < b, from the lowest bit up."""
    circuit = Circuit(2 * bits)
    less = circuit.add(LESS, 0, bits)
    for place in range(1, bits):
        less_here = circuit.add(LESS, place, bits + place)
        equal = circuit.add(EQUAL, place, bits + place)
        # less here, or equal here and less in the bits below
        less = circuit.add(OR, less_here, circuit.add(AND, equal, less))
    circuit.outputs = [less]
    return circuit


def multiplier(bits: int) -> Circuit:
    """Return the circuit of a·b: shifted copies of a, one for each bit of b, added one after the other."""
    circuit = Circuit(2 * bits)
    rows = [[circuit.add(AND, i, bits + shift) for i in range(bits)] for shift in range(bits)]
    lowest, *top = rows[0]
    circuit.outputs = [lowest]
    for row in rows[1:]:
        lowest, *top = circuit.sum_of(top, row)
        circuit.outputs.append(lowest)
    circuit.outputs += top
    return circuit


def parity(bits: int) -> Circuit:
    """Return the circuit of the parity of 2·``bits`` inputs, a tree of exclusive ors."""
    circuit = Circuit(2 * bits)
    wires = list(range(2 * bits))
    while len(wires) > 1:
        pairs = zip(wires[::2], wires[1::2], strict=False)
        # the last of an odd number of wires goes on as it is
        wires = [circuit.add(XOR, x, y) for x, y in pairs] + wires[len(wires) // 2 * 2 :]
    circuit.outputs = wires
    return circuit


PROGRAMS: dict[str, tuple[Callable[[int], Circuit], Callable[[Values, Values], Values]]] = {
    "sum": (adder, lambda a, b: a + b),
    "comparison": (comparator, lambda a, b: (a < b).astype(int)),
    "product": (multiplier, lambda a, b: a * b),
    "parity": (parity, lambda a, b: (np.bitwise_count(a) + np.bitwise_count(b)) % 2),
}
"""Circuits of two numbers of so many bits, and what they are to compute."""


class Network(NamedTuple):
    """Weights over 1, inputs and units, in this order."""

    hidden: Values  # (units, 1 + inputs + units); a unit has none for itself and for later units
    wires: Values  # of all inputs and gates as affine functions, (wires, 1 + inputs + units)


def compiled_network(circuit: Circuit) -> Network:
    """Return the network of a circuit: a unit for each pair of wires that some gate multiplies."""
    pairs = {frozenset((x, y)): None for _, x, y in circuit.gates}
    units = {pair: 1 + circuit.inputs + place for place, pair in enumerate(pairs)}
    size = 1 + circuit.inputs + len(units)
    constant = np.eye(size)[0]
    wires = list(np.eye(size)[1 : 1 + circuit.inputs])
    hidden = np.zeros((len(units), size))
    for (a, b, c, d), x, y in circuit.gates:
        unit = units[frozenset((x, y))]
        # xy = σ(x + y − 1) on bits, with x and y affine in what came before
        hidden[unit - 1 - circuit.inputs] = wires[x] + wires[y] - constant
        wires.append(a * constant + b * wires[x] + c * wires[y] + d * np.eye(size)[unit])
    return Network(hidden, np.array(wires))


def run(network: Network, inputs: Values, leak: float = 0.0) -> tuple[Values, Values]:
    """Return the values of all wires and of all units, ``(inputs, wires)`` and ``(inputs, units)``.

    Args:
        network: the network.
        inputs: numbers, bits or nearly, ``(inputs, d)``.
        leak: slope of a unit below zero.
    """
    read = np.zeros((len(inputs), network.hidden.shape[1]))
    read[:, 0] = 1
    first = 1 + inputs.shape[1]
    read[:, 1:first] = inputs
    for place, weights in enumerate(network.hidden):
        total = read @ weights
        read[:, first + place] = np.maximum(total, leak * total)
    return read @ network.wires.T, read[:, first:]


def layered_size(network: Network, circuit: Circuit) -> int:
    """Return the number of units where none may skip a layer: each value is then handed on by a unit a layer."""
    inputs = circuit.inputs
    depth = np.zeros(network.hidden.shape[1], int)
    last = np.zeros(len(depth), int)
    for place, weights in enumerate(network.hidden):
        sources = np.flatnonzero(weights[1:]) + 1
        depth[1 + inputs + place] = depth[sources].max() + 1
        last[sources] = np.maximum(last[sources], depth[1 + inputs + place])
    read = np.flatnonzero(network.wires[circuit.outputs, 1:].any(0)) + 1
    last[read] = depth.max() + 1
    # a value of depth a that is last read at depth b passes the b − a − 1 layers between
    handed = np.maximum(last - depth - 1, 0)[1:]
    return len(network.hidden) + int(handed.sum())
