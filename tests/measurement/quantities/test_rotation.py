"""Angles against arc cosines, exact small ones, and shapes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.measurement.quantities import rotation


@given(st.floats(0, np.pi), st.floats(0.01, 100))
def test_planar_angles(angle, length):
    turned = length * np.array([np.cos(angle), np.sin(angle)])
    assert rotation(turned, np.array([3.0, 0.0])) == pytest.approx(angle, rel=1e-12, abs=1e-15)


def test_many_neurons_against_the_arc_cosine():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(6, 5, 3))
    start = rng.normal(size=(5, 3))
    size = np.linalg.norm(w, axis=-1) * np.linalg.norm(start, axis=-1)
    np.testing.assert_allclose(rotation(w, start), np.arccos((w * start).sum(-1) / size))


def test_zero_has_no_direction():
    assert np.isnan(rotation(np.zeros(3), np.ones(3)))


def test_bad_input():
    with pytest.raises(UserError, match=r"one length, got shapes \(3,\) and \(2,\)"):
        rotation(np.ones(3), np.ones(2))
