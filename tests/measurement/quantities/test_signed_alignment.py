"""Alignment with signed directions: by hand, against a loop, and under symmetries."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement.quantities import signed_alignment

UNITS = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
SIGNS = np.array([1.0, 1.0, -1.0, -1.0])


def test_it_is_what_a_loop_finds():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(3, 7, 2))
    v = rng.normal(size=(3, 7))
    aligned = signed_alignment(w, v, UNITS, SIGNS)
    for batch in range(3):
        weights = np.abs(v[batch]) * np.linalg.norm(w[batch], axis=1)
        shares = np.zeros(4)
        total = 0.0
        for j in range(7):
            cosines = [
                w[batch, j] @ unit / np.linalg.norm(w[batch, j]) / np.sqrt(2)
                if sign * v[batch, j] > 0
                else -2
                for unit, sign in zip(UNITS, SIGNS, strict=True)
            ]
            assert aligned.nearest[batch, j] == np.argmax(cosines)
            shares[np.argmax(cosines)] += weights[j] / weights.sum()
            total += weights[j] / weights.sum() * max(cosines)
        np.testing.assert_allclose(aligned.shares[batch], shares)
        assert float(aligned.cosine[batch]) == pytest.approx(total)


def test_splitting_a_neuron_changes_nothing():
    rng = np.random.default_rng(1)
    w = rng.normal(size=(4, 2))
    v = rng.normal(size=4)
    half = np.sqrt(0.5)
    one = signed_alignment(w, v, UNITS, SIGNS)
    two = signed_alignment(half * np.tile(w, (2, 1)), half * np.tile(v, 2), 3 * UNITS, SIGNS)
    np.testing.assert_allclose(one.shares, two.shares)
    assert float(one.cosine) == pytest.approx(float(two.cosine))


def test_dead_neurons_count_nothing():
    aligned = signed_alignment([[0.0, 0.0], [1.0, 1.0], [-1.0, 0.0]], [1.0, 2.0, 0.0], UNITS, SIGNS)
    assert aligned.weights.tolist() == [0.0, 1.0, 0.0]
    assert float(aligned.cosine) == pytest.approx(1.0)
    nothing = signed_alignment([[0.0, 0.0]], [0.0], UNITS, SIGNS)
    assert float(nothing.cosine) == 0 and not np.isnan(np.asarray(nothing.shares)).any()


@pytest.mark.parametrize(
    "w, v, directions, signs, sentence",
    [
        ([[1.0, 0.0]], [1.0, 2.0], UNITS, SIGNS, "got shapes"),
        ([[1.0, 0.0]], [1.0], UNITS, np.ones(4), "both present"),
        ([[1.0, 0.0]], [1.0], 0 * UNITS, SIGNS, "not zero"),
    ],
)
def test_bad_input_is_a_sentence(w, v, directions, signs, sentence):
    with pytest.raises(UserError, match=sentence):
        signed_alignment(w, v, directions, signs)
