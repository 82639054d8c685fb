"""What networks of circuits compute and need; networks with too few units; folds, and units that do not switch."""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.claims.expressivity.programs_are_networks.circuits import (
    PROGRAMS,
    compiled_network,
    layered_size,
    run,
)
from steepest.dynamics import descend
from steepest.linalg import sequential
from steepest.nn.types import Values

OFF = 0.3  # of the inputs of a control
LEAK = 0.01  # slope of a control's units below zero


def corners(bits: int) -> Values:
    """Return all vectors of so many bits, ``(2^bits, bits)``."""
    return np.array(list(itertools.product((0, 1), repeat=bits)))


class Compiled(NamedTuple):
    """One program for one number of bits."""

    gates: int
    units: int  # that are positive on some input
    needed: int  # dimension of all gates' values beyond affine functions of the inputs
    layered: int  # units without links that skip a layer
    away: float  # largest distance of a number read from the number that is right
    leaky: float  # the same for leaky units
    noisy: float  # the same for inputs that are off


@sequential
def compile_and_try(name: str, bits: int, leak: float, rng: np.random.Generator) -> Compiled:
    """Compile a program to a network and run it on all pairs of numbers."""
    build, right = PROGRAMS[name]
    circuit = build(bits)
    network = compiled_network(circuit)
    inputs = corners(2 * bits)
    places = 2 ** np.arange(bits)
    target = right(inputs[:, :bits] @ places, inputs[:, bits:] @ places)

    def away(read: Values) -> float:
        numbers = read[:, circuit.outputs] @ 2.0 ** np.arange(len(circuit.outputs))
        return float(np.abs(numbers - target).max())

    wires, units = run(network, inputs, leak)
    affine = np.column_stack([np.ones(len(inputs)), inputs])
    # every unit adds one dimension at most to the affine functions of the inputs
    beyond = np.linalg.matrix_rank(np.column_stack([affine, wires])) - affine.shape[1]
    off = inputs + OFF * rng.choice([-1, 1], inputs.shape)
    return Compiled(
        len(circuit.gates),
        int((units > 0).any(0).sum()),
        int(beyond),
        layered_size(network, circuit),
        away(wires),
        away(run(network, inputs, LEAK)[0]),
        away(run(network, off, leak)[0]),
    )


# ------------------------------------------------------------------------------------------------ too few units


class Net(NamedTuple):
    """How many outputs a trained network has, how many units, and whether all outputs are one gate's."""

    gates: int
    units: int
    alike: bool


def trained_errors(
    key: kit.Key, nets: tuple[Net, ...], starts: int, steps: int, lr: float
) -> Values:
    """Train one hidden layer beside an affine map to compute ANDs of separate pairs of bits, on all inputs.

    Returns:
        mean square errors, summed over outputs, ``(nets, starts)``.
    """
    gates = max(net.gates for net in nets)
    x = corners(2 * gates)
    separate = x[:, :gates] * x[:, gates:]
    data = (np.column_stack([x, np.ones(len(x))]), separate, np.repeat(separate[:, :1], gates, 1))

    def train(
        key: jax.Array, net: jax.Array, x: jax.Array, y: jax.Array, one: jax.Array
    ) -> jax.Array:
        inner, outer = jax.random.split(key)
        present = jnp.arange(gates) < net[0]
        on = jnp.arange(gates) < net[1]
        read = x * jnp.append(jnp.tile(present, 2), True)
        target = jnp.where(net[2], one, y)
        start = (
            0.4 * jax.random.normal(inner, (2 * gates + 1, gates)),
            0.5 * jax.random.normal(outer, (gates, gates)),
            jnp.zeros((2 * gates + 1, gates)),
        )

        def risk(params: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
            hidden, readout, straight = params
            output = (jax.nn.relu(read @ hidden) * on) @ readout + read @ straight
            return ((output - target) ** 2 * present).sum(1).mean()

        return descend(risk, start, optax.adam(lr), steps, record=steps).risk[-1]

    def every(key: jax.Array, *data: jax.Array) -> jax.Array:
        lanes = jnp.repeat(jnp.array(nets, int), starts, axis=0)
        train_all = jax.vmap(lambda key, net: train(key, net, *data))
        return train_all(jax.random.split(key, len(lanes)), lanes)

    return np.asarray(kit.compiled(every)(key, *data)).reshape(len(nets), starts)


# ------------------------------------------------------------------------------------------------ parity alone


def folds_needed(bits: int, *, leak: float = 0.0, shift: float = 0.0) -> int:
    """Return with how many units the sum of all bits, folded once by each, is their parity; at most as many as bits.

    A fold takes s to s − 2σ(s − c), with c half of the largest sum, rounded up; ``shift`` is added to c.
    """
    sums = np.arange(bits + 1)
    folded = sums.astype(float)
    largest = bits
    for unit in range(bits):
        if np.abs(folded - sums % 2).max() < 1e-9:
            return unit
        largest = (largest + 1) // 2
        beyond = folded - largest - shift
        folded = folded - 2 * np.maximum(beyond, leak * beyond)
    return bits


def free_bits(sign: Values) -> int:
    """Return the largest dimension of a face of the cube on which a function ``(2, 2, …)`` has one sign.

    All 3^d faces are tried: along each axis a face has the coordinate 0, or 1, or both.
    """
    low = sign.astype(np.int8)
    high = low
    size = np.zeros((3,) * sign.ndim, int)
    for axis in range(sign.ndim):
        # after 0 and 1 a third place for both: a face has one sign where minimum and maximum agree
        low = np.concatenate([low, low.min(axis, keepdims=True)], axis)
        high = np.concatenate([high, high.max(axis, keepdims=True)], axis)
        shape = [1] * sign.ndim
        shape[axis] = 3
        size = size + np.array([0, 0, 1]).reshape(shape)
    return int(size[low == high].max())


@sequential
def free_of_units(bits: int, tries: int, rng: np.random.Generator) -> tuple[Values, Values]:
    """Return how many bits can be left free so that a unit does not switch: of units, and of pairs multiplied.

    The first unit is the majority, others have normal weights and a bias at which they switch on the cube's middle
    or near it. A pair is a function with the sign of the product of two of them.
    """
    x = corners(bits)
    weights = rng.standard_normal((tries, bits))
    weights[0] = 1
    # at the cube's middle, (½, …, ½), ⟨w, x⟩ is half of the sum
    bias = -weights.sum(1) / 2 + rng.standard_normal(tries) * (np.arange(tries) > tries // 2)
    signs = (x @ weights.T + bias > 1e-9).T.reshape(tries, *(2,) * bits)
    single = [free_bits(sign) for sign in signs]
    paired = [
        free_bits(first ^ second) for first, second in zip(signs, np.roll(signs, 1, 0), strict=True)
    ]
    return np.array(single), np.array(paired)
