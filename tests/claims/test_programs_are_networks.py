"""Circuits as networks: gates by truth tables, counts by hand, faces of the cube by weights, and bounds by algebra."""

import itertools

import jax
import numpy as np
import pytest

from steepest import kit
from steepest.claims.expressivity.programs_are_networks.circuits import (
    AND,
    EQUAL,
    LESS,
    OR,
    PROGRAMS,
    XOR,
    Circuit,
    compiled_network,
    layered_size,
    run,
)
from steepest.claims.expressivity.programs_are_networks.claim import ProgramsAreNetworks
from steepest.claims.expressivity.programs_are_networks.experiment import (
    Net,
    compile_and_try,
    corners,
    folds_needed,
    free_bits,
    free_of_units,
    trained_errors,
)
from steepest.core.errors import UserError

RNG = np.random.default_rng(0)
TABLES = {
    AND: lambda x, y: x & y,
    OR: lambda x, y: x | y,
    XOR: lambda x, y: x ^ y,
    EQUAL: lambda x, y: 1 - (x ^ y),
    LESS: lambda x, y: (1 - x) & y,
}


def evaluated(circuit, inputs):
    """All wires by truth tables, with no network."""
    wires = list(inputs.T)
    for gate, x, y in circuit.gates:
        wires.append(TABLES[gate](wires[x], wires[y]))
    return np.array(wires).T


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_wire_is_that_of_the_truth_tables(name):
    circuit = PROGRAMS[name][0](3)
    inputs = corners(6)
    wires, _ = run(compiled_network(circuit), inputs)
    assert np.array_equal(wires, evaluated(circuit, inputs))


def test_random_circuits_take_a_unit_a_gate_at_most():
    for _ in range(20):
        circuit = Circuit(5)
        for wire in range(5, 25):
            x, y = RNG.choice(wire, 2, replace=False)
            circuit.add(list(TABLES)[RNG.integers(5)], int(x), int(y))
        circuit.outputs = [24]
        network = compiled_network(circuit)
        assert len(network.hidden) <= 20
        assert np.array_equal(run(network, corners(5))[0], evaluated(circuit, corners(5)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_counts_of_gates_and_units(name):
    claim = ProgramsAreNetworks(bits=(4, 5))
    law = claim.predict(None)
    row = list(PROGRAMS).index(name)
    for column, bits in enumerate(claim.bits):
        compiled = compile_and_try(name, bits, 0.0, RNG)
        assert compiled.gates == law["gates"][row, column]
        assert compiled.units == compiled.needed == law["units"][row, column]
        assert compiled.away < 1e-9
        assert compiled.leaky > 1e-3
        assert compiled.noisy > 0.1


def test_a_product_of_few_bits_has_a_gate_that_others_tell():
    assert compile_and_try("product", 3, 0.0, RNG).needed == 17


def test_values_are_handed_on_by_hand():
    """(x or y) and z, with two units; the three inputs are handed on by a unit each."""
    circuit = Circuit(3)
    either = circuit.add(OR, 0, 1)
    circuit.outputs = [circuit.add(AND, either, 2)]
    # depths 1 and 2; x, y, z wait for a layer, and the product of the first two is read in the second
    assert layered_size(compiled_network(circuit), circuit) == 2 + 3


def test_too_few_units_by_the_spectrum_of_the_residual():
    """What U functions leave of T separate gates, of all functions on the cube: the least eigenvalues' sum."""
    for gates in (2, 3):
        x = corners(2 * gates)
        affine = np.column_stack([np.ones(len(x)), x])
        target = (x[:, :gates] * x[:, gates:]).astype(float)
        residual = target - affine @ np.linalg.lstsq(affine, target, rcond=None)[0]
        spectrum = np.linalg.eigvalsh(residual.T @ residual / len(x))
        assert spectrum == pytest.approx(np.full(gates, 1 / 16))


def test_training_stops_at_the_bound():
    nets = (Net(2, 1, False), Net(2, 1, True))
    separate, alike = trained_errors(jax.random.key(0), nets, 10, 600, 0.05)
    assert separate.min() == pytest.approx(1 / 16, rel=1e-3)
    assert alike.min() < 1e-4


@pytest.mark.parametrize("bits", [2, 3, 5, 8, 13, 16])
def test_folds(bits):
    assert folds_needed(bits) == np.ceil(np.log2(bits))
    assert folds_needed(bits, shift=0.5) == bits


def slow_free(sign):
    """The largest face with one sign, face by face."""
    largest = 0
    for face in itertools.product((0, 1, slice(None)), repeat=sign.ndim):
        values = np.asarray(sign[face])
        if values.min() == values.max():
            largest = max(largest, values.ndim)
    return largest


def test_faces_of_the_cube_one_by_one():
    for _ in range(10):
        sign = RNG.random((2, 2, 2, 2)) < 0.3
        assert free_bits(sign) == slow_free(sign)


def test_a_unit_does_not_switch_once_its_larger_weights_are_fixed():
    """The rule of the proof, without looking at faces."""
    for bits in (3, 4, 6):
        for _ in range(20):
            weights = RNG.standard_normal(bits)
            bias = RNG.standard_normal() - weights.sum() / 2
            sizes = np.sort(np.abs(weights))[::-1] / 2
            middle = abs(bias + weights.sum() / 2)
            fixed = min(
                many
                for many in range(bits + 1)
                if middle + sizes[:many].sum() >= sizes[many:].sum()
            )
            sign = (corners(bits) @ weights + bias > 0).reshape((2,) * bits)
            assert free_bits(sign) == bits - fixed
            assert bits - fixed >= bits // 2


def test_the_majority_is_the_worst_unit():
    single, paired = free_of_units(4, 1000, np.random.default_rng(1))
    assert single[0] == single.min() == 2
    assert paired.min() < 2


def test_the_judge_refutes_wrong_laws():
    claim = ProgramsAreNetworks(bits=(4, 5), parities=(2, 4, 8), separate=(2, 3))
    law = claim.predict(None)
    units = ("program bits", law["units"])
    zero = ("program bits", np.zeros((4, 2)))
    net = ("net start", law["left"][:, None] * np.array([1.0, 1.5, 2.0]))
    free = ("parity draw", law["free"][:, None] * np.array([1, 1, 2]))
    folds = ("parity", law["folds"])
    observed = kit.seen(units=units, needed=units, away=zero, errors=net, folds=folds, free=free)
    fails = lambda **wrong: {
        check.id
        for check in claim.checks(law.replace(**wrong), observed)
        if check.verdict.value == "fails"
    }
    assert not fails()
    assert fails(gates=("program bits", law["units"] - 1)) == {"gates"}
    assert fails(units=("program bits", law["units"] + 1)) == {"units", "needed"}
    assert fails(left=("net", law["left"] * 1.05)) == {"best", "too_few"}
    assert fails(left=("net", law["left"] * 0.95)) == {"best"}
    assert fails(folds=("parity", law["folds"] + 1)) == {"folds"}
    assert fails(free=("parity", law["free"] + 1)) == {"halved"}


def test_leaky_units_are_out_of_range_and_parities_are_of_powers_of_two():
    claim = ProgramsAreNetworks(leak=0.1)
    assert not all(h.holds for h in claim.hypotheses(None))
    with pytest.raises(UserError, match="powers of two"):
        ProgramsAreNetworks(parities=(3,))
