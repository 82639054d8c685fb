"""What saddle-escape rests on: when rooms are left, where descents on Ge's example end, its predictions' forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.descent.saddle_escape.claim import _lattice, _value
from steepest.claims.descent.saddle_escape.experiment import ends_on_wells, exits
from steepest.landscapes import saddle_chain


def test_rooms_are_left_when_descent_by_hand_leaves_them():
    """Without noise, against a loop in Python over the same gradient; then a room that is never left."""
    start = np.array([0.1, -0.05, 0.0])
    with jax.enable_x64(True):
        key = jax.random.key(0)
        first = np.asarray(exits(jnp.asarray(start), key, 0.0, 0.5, 1.0, 0.25, 120))
        slope = jax.jit(jax.grad(saddle_chain(0.5, 1.0)))
        x = start
        wanted = [-1, -1, -1]
        for step in range(1, 121):
            x = x - 0.25 * np.asarray(slope(x))
            for i in range(3):
                if wanted[i] < 0 and abs(x[i]) >= 1:
                    wanted[i] = step
    assert first.tolist() == wanted
    assert wanted[2] == -1


def test_ends_on_wells_are_those_of_each_coordinate():
    starts = np.array([[0.3, -1.2], [0.0, 0.5], [0.0, 0.0]])
    ends = ends_on_wells(starts, 0.05, 600)
    root = 0.5**0.5
    assert np.allclose(ends, [[root, -root], [0, root], [0, 0]])
    assert np.allclose(_value(ends), [-0.5, -0.25, 0])


def test_the_index_on_the_lattice_is_the_number_of_zeros():
    claim = load("saddle-escape")(seeds=3)
    predicted = claim.predict(claim.setting(jax.random.key(0)))
    zeros = (_lattice(2) == 0).sum(1)
    assert predicted["wells_index"].tolist() == zeros.tolist()
    assert sorted(zeros.tolist()) == [0] * 4 + [1] * 4 + [2]


def test_spectra_of_the_chain_have_one_way_out_each():
    spectra = load("saddle-escape")().spectra()
    assert (spectra < 0).sum(1).tolist() == [1, 1, 1, 1, 0]
    assert spectra[0].tolist() == pytest.approx([-1, 2, 2, 2])
