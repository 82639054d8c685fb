"""The claim tangent-width: its condition by hand, its programs against others, and Wald's bound."""

import jax
import numpy as np
import pytest

from steepest.claims.features.tangent_width.claim import (
    TangentWidth,
    _chance,
    _switched,
    _switched_by_first,
    separating_width,
)
from steepest.nn.data import hypercube
from steepest.programs import separable


def xor(signs):
    return signs[:, 0] * signs[:, 1]


def tangent_features(gates):
    signs = hypercube(gates.shape[1])
    active = signs @ gates.T >= 0
    return (signs[:, None, :] * active[:, :, None]).reshape(len(signs), -1), xor(signs)


@pytest.mark.parametrize("seed", range(4))
def test_the_width_is_where_a_scan_by_another_program_finds_it(seed):
    gates = np.random.default_rng(seed).normal(size=(30, 4))
    width = int(separating_width(gates, xor))
    features, y = tangent_features(gates[:width])
    assert separable(features, y)
    assert width == 1 or not separable(features[:, :-4], y)
    assert width >= _switched(gates)


def test_the_condition_by_hand():
    # patterns ±1 of one more bit: the first gate is never switched, the second always
    gates = np.array([[0.1, 0.2, 1.0], [1.0, 0.5, 1.2]])
    assert _switched(gates) == 2
    assert _switched(gates, 2) == np.inf
    # the first bit alone has to beat |w₂ s₂ + w₃ s₃|, up to 1.7
    assert _switched_by_first(gates) == np.inf


def test_without_a_switched_gate_nothing_separates():
    rng = np.random.default_rng(5)
    gates = rng.normal(size=(40, 5))
    pattern = np.array([1.0, -1.0, 1.0])
    kept = np.abs(gates[:, 2:] @ pattern) > np.abs(gates[:, :2]).sum(1)
    assert separating_width(gates[kept], xor) == np.inf
    assert separating_width(gates[:0:-1], xor) < np.inf


def test_the_chance_is_the_share_of_switched_patterns():
    d = 6
    gates = np.random.default_rng(6).normal(size=(4000, d))
    patterns = hypercube(d - 2)
    switched = np.abs(patterns @ gates[:, 2:].T) <= np.abs(gates[:, :2]).sum(1)
    assert switched.mean() == pytest.approx(_chance(d), abs=0.02)
    # √(2/π) times E(|z₁| + |z₂|) over √d, for large d
    assert _chance(4002) * np.sqrt(4000) == pytest.approx(4 / np.pi, rel=0.05)


def test_gates_that_are_not_isotropic_are_out_of_range():
    claim = TangentWidth(spread=2.0, seeds=3)
    (hypothesis,) = claim.hypotheses(claim.setting(jax.random.key(0)))
    assert not hypothesis.holds
