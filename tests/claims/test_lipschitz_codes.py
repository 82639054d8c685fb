"""Codes of Lipschitz functions: worst cases by enumeration and by linear programs, and the judge with wrong laws."""

import itertools

import jax
import numpy as np
import pytest
from scipy.optimize import linprog

from steepest import kit
from steepest.claims.expressivity.lipschitz_codes.claim import LipschitzCodes, Setting
from steepest.claims.expressivity.lipschitz_codes.experiment import (
    FINE,
    coded,
    errors_by_bits,
    errors_by_values,
    interpolated,
    kinked,
    largest_error,
    left_by_bits,
    left_by_values,
    nearest_pair,
    networks,
    tents,
    worst_for_bits,
    zigzags,
)

RNG = np.random.default_rng(0)


def walks(steps):
    """All functions that go up or down by one at each of some steps of [0, 1]."""
    every = np.array(list(itertools.product((1, -1), repeat=steps)))
    return np.concatenate([np.zeros((len(every), 1)), np.cumsum(every, axis=1)], 1) / steps


@pytest.mark.parametrize("remembers", [True, False])
def test_the_worst_of_all_walks_is_found(remembers):
    every = walks(2 * FINE)
    errors = np.abs(every - coded(every, 2, remembers=remembers)).max(1)
    assert left_by_bits(2, remembers=remembers) == pytest.approx(errors.max(), abs=1e-12)


def test_the_code_of_a_function_is_the_nearest_of_its_words_to_within_a_cell():
    """All 2^n words, with no rule that chooses one: none of the walks is farther than a cell from all of them."""
    every = walks(12)
    cells = 4
    words = np.array([[0, *bits] for bits in itertools.product((1, -1), repeat=cells - 1)])
    knots = np.concatenate([np.zeros((len(words), 1)), np.cumsum(words, axis=1)], 1) / cells
    points = np.linspace(0, 1, 13)
    centres = np.array([np.interp(points, np.linspace(0, 1, cells + 1), row) for row in knots])
    nearest = np.abs(every[:, None] - centres).max(2).min(1)
    assert nearest.max() == pytest.approx(1 / cells, abs=1e-12)


def test_a_worst_function_is_one_of_the_class():
    for cells in (1, 5, 9):
        worst = worst_for_bits(cells)[0]
        assert worst[0] == 0
        assert np.abs(np.diff(worst)).max() * (len(worst) - 1) == pytest.approx(1)


def radius(places, fine=28):
    """The largest f(t) of a function with slopes up to one that vanishes at 0 and at some places, by programs."""
    grid = np.union1d(np.linspace(0, 1, fine + 1), places)
    gaps = np.diff(grid)
    steps = np.diff(np.eye(len(grid)), axis=0)
    zero = [0, *np.searchsorted(grid, places)]
    largest = 0.0
    for t in range(1, len(grid)):
        target = np.zeros(len(grid))
        target[t] = -1
        program = linprog(
            target,
            np.concatenate([steps, -steps]),
            np.concatenate([gaps, gaps]),
            np.eye(len(grid))[zero],
            np.zeros(len(zero)),
            (None, None),
        )
        largest = max(largest, -program.fun)
    return largest


@pytest.mark.parametrize("n", [1, 3])
def test_no_reconstruction_from_these_values_is_better(n):
    places = 2 * np.arange(1, n + 1) / (2 * n + 1)
    assert radius(places) == pytest.approx(1 / (2 * n + 1), abs=1e-9)
    assert left_by_values(n, 2 / (2 * n + 1)) == pytest.approx(1 / (2 * n + 1), abs=1e-12)
    assert left_by_values(n, 1 / n) == pytest.approx(1 / (2 * n), abs=1e-12)


def test_other_places_are_worse():
    for _ in range(3):
        assert radius(np.sort(RNG.uniform(size=2)), 20) > 0.2


def test_distances_of_zigzags_pair_by_pair():
    for slopes in ((-1.0, 1.0), (0.0, 1.0)):
        functions = zigzags(6, slopes)
        apart = np.abs(functions[:, None] - functions).max(2)
        np.fill_diagonal(apart, np.inf)
        assert len(functions) == 64
        assert nearest_pair(functions) == pytest.approx(apart.min(), abs=1e-12)


def test_tents_share_the_interval_and_their_sums_have_bounded_slopes():
    for n in (1, 4):
        functions = tents(n)
        assert functions.shape == (n + 1, 2 * n + 2)
        assert functions.max(1) == pytest.approx(1 / (2 * n + 1))
        sums = RNG.uniform(-1, 1, (50, n + 1)) @ functions
        assert np.abs(np.diff(sums, axis=1)).max() * (2 * n + 1) <= 1 + 1e-12


@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_network_drawn_beats_the_bound(n):
    for _ in range(5):
        sizes = [(16, n + 1), (n, 16), (16, n), (n + 1, 16)]
        layers = [RNG.normal(size=(out, inp + 1)) / np.sqrt(inp) for out, inp in sizes]
        assert largest_error(layers, n, RNG)[0] >= (1 - 1e-6) / (2 * n + 1)


def test_a_network_that_drops_a_coefficient_attains_it():
    """Tents but the last go through the linear part of tanh; the last is reconstructed as zero."""
    n = 2
    small = 1e-4
    hidden = np.zeros((16, n + 2))
    hidden[:n, :n] = small * np.eye(n)
    code = np.zeros((n, 17))
    code[:, :n] = np.eye(n)
    again = np.zeros((16, n + 1))
    again[:n, :n] = np.eye(n)
    outer = np.zeros((n + 1, 17))
    outer[:n, :n] = np.eye(n) / small
    assert largest_error([hidden, code, again, outer], n, RNG)[0] == pytest.approx(0.2, rel=1e-6)


def test_functions_that_are_drawn_are_of_the_class():
    families = [kinked(20, RNG), networks(jax.random.key(0), 3, 50)]
    for functions in families:
        assert np.abs(functions[:, 0]).max() == 0
        slopes = np.abs(np.diff(functions, axis=1)).max(1) * (functions.shape[1] - 1)
        assert slopes == pytest.approx(1.0, abs=1e-9)
        left = np.abs(functions - interpolated(functions, np.array([0.4, 0.8]))).max()
        assert left <= 0.2 + 1e-12


def test_the_judge_refutes_wrong_laws():
    claim = LipschitzCodes(bits=(1, 2, 4), numbers=(1, 2, 3))
    functions = kinked(10, RNG)
    law = claim.predict(Setting(functions))
    cells = [n + 1 for n in claim.bits]
    zeros = ("bits", np.zeros(3))
    observed = kit.seen(
        bits_error=("bits", [left_by_bits(m) for m in cells]),
        apart=("bits", [nearest_pair(zigzags(m)) for m in cells]),
        numbers_error=("numbers", [left_by_values(n, 2 / (2 * n + 1)) for n in claim.numbers]),
        trained=("numbers start", [[1.01 / (2 * n + 1), 1.1 / (2 * n + 1)] for n in claim.numbers]),
        functions_by_bits=("bits function", [errors_by_bits(functions, m) for m in cells]),
        functions_by_numbers=(
            "numbers function",
            [errors_by_values(functions, n) for n in (1, 2, 3)],
        ),
        forgotten=zeros,
    )

    def fails(**wrong):
        checks = claim.checks(law.replace(**wrong), observed)
        return {check.id for check in checks if check.verdict.value == "fails"}

    assert not fails()
    assert fails(bits_error=("bits", law["bits_error"] * 1.001)) == {"bits", "apart"}
    assert fails(bits_error=("bits", law["bits_error"] / 3)) == {"bits", "apart", "functions"}
    assert "numbers" in fails(numbers_error=("numbers", law["numbers_error"] * 0.999))
    assert fails(numbers_error=("numbers", law["numbers_error"] * 1.05)) == {"numbers", "trained"}


def test_an_unknown_start_is_out_of_range():
    claim = LipschitzCodes(**{**LipschitzCodes.tiny, "offset": 0.25})
    assert not all(h.holds for h in claim.hypotheses(claim.setting(jax.random.key(0))))
