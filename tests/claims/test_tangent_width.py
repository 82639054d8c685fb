"""The claim tangent-width: its condition by hand, its programs against others, and the chance of a switch."""

import jax
import numpy as np
import pytest

from steepest.claims.features.tangent_width.claim import TangentWidth
from steepest.claims.features.tangent_width.experiment import (
    separating_width,
    share_switched,
    width_for_each_face,
)
from steepest.claims.features.tangent_width.theory import (
    chance_of_a_switch,
    width_for_every_pattern,
    width_for_first_bit,
)
from steepest.nn.data import hypercube
from steepest.programs import separable


def xor(gates):
    return hypercube(gates.shape[1])[:, :2].prod(1)


def tangent_features(gates):
    signs = hypercube(gates.shape[1])
    active = signs @ gates.T >= 0
    return (signs[:, None, :] * active[:, :, None]).reshape(len(signs), -1)


@pytest.mark.parametrize("seed", range(4))
def test_the_width_is_where_a_scan_by_another_program_finds_it(seed):
    gates = np.random.default_rng(seed).normal(size=(30, 4))
    width = int(separating_width(gates, xor(gates)))
    features = tangent_features(gates[:width])
    assert separable(features, xor(gates))
    assert width == 1 or not separable(features[:, :-4], xor(gates))
    assert width >= width_for_every_pattern(gates)


@pytest.mark.parametrize("seed", range(4))
def test_faces_are_separated_where_a_scan_of_their_features_finds_it(seed):
    gates = np.random.default_rng(seed).normal(size=(30, 4))
    other_bits = hypercube(4)[:, 2:]

    def all_faces(width):
        features = tangent_features(gates[:width])
        on_face = [(other_bits == pattern).all(1) for pattern in hypercube(2)]
        return all(separable(features[face], xor(gates)[face]) for face in on_face)

    scanned = next(width for width in range(1, 31) if all_faces(width))
    assert width_for_each_face(gates, xor(gates)) == scanned == width_for_every_pattern(gates)


def test_the_condition_by_hand():
    # patterns ±1 of one more bit: the first gate is never switched, the second always
    gates = np.array([[0.1, 0.2, 1.0], [1.0, 0.5, 1.2]])
    assert width_for_every_pattern(gates, seen=False) == 2
    # at −1 no gate sees the corner (−1, −1)
    assert width_for_every_pattern(gates) == np.inf
    assert width_for_each_face(gates, xor(gates)) == np.inf
    assert width_for_every_pattern(gates, switches=2, seen=False) == np.inf
    # the first bit alone has to beat |w₂ s₂ + w₃ s₃|, up to 1.7
    assert width_for_first_bit(gates) == np.inf


def test_without_a_switched_gate_nothing_separates():
    rng = np.random.default_rng(5)
    gates = rng.normal(size=(40, 5))
    pattern = np.array([1.0, -1.0, 1.0])
    kept = np.abs(gates[:, 2:] @ pattern) > np.abs(gates[:, :2]).sum(1)
    assert separating_width(gates[kept], xor(gates)) == np.inf
    assert width_for_each_face(gates[kept], xor(gates)) == np.inf
    assert separating_width(gates[:0:-1], xor(gates)) < np.inf


@pytest.mark.parametrize("d", [3, 6])
def test_the_chance_is_the_share_of_switched_faces_and_that_of_three_normal_numbers(d):
    rng = np.random.default_rng(6)
    assert share_switched(rng.normal(size=(4000, d))) == pytest.approx(
        chance_of_a_switch(d), abs=0.02
    )
    z = np.abs(rng.normal(size=(3, 200_000)))
    by_numbers = (np.sqrt(d - 2) * z[2] <= z[0] + z[1]).mean()
    assert by_numbers == pytest.approx(chance_of_a_switch(d), abs=0.005)
    assert chance_of_a_switch(2) == pytest.approx(1)


def test_gates_that_are_not_isotropic_are_out_of_range():
    claim = TangentWidth(spread=2.0, seeds=3)
    (hypothesis,) = claim.hypotheses(claim.setting(jax.random.key(0)))
    assert not hypothesis.holds
