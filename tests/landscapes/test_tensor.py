"""Ascent of a tensor against its derivatives, and the angle of a pair against a scan of the circle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.landscapes import MERGE, pair_angle, strict_saddle, tensor_ascent

RNG = np.random.default_rng(0)
COMPONENTS = RNG.normal(size=(20, 8))
COMPONENTS /= np.linalg.norm(COMPONENTS, axis=1, keepdims=True)
STARTS = RNG.normal(size=(6, 8))


def test_ends_are_maxima():
    """The gradient is normal to the sphere, and no direction on it leads up: dense Hessians in a chart."""
    ends = tensor_ascent(jnp.asarray(COMPONENTS), jnp.asarray(STARTS), 3000)
    assert float(ends.moved.max()) < 1e-9
    for point in np.asarray(ends.points)[:3]:
        basis = np.linalg.svd(point[None])[2][1:]

        def lowered(v, point=point, basis=basis):
            x = point + v @ basis
            return -((COMPONENTS @ x) ** 4).sum() / (x @ x) ** 2

        critical = strict_saddle(lowered, np.zeros(7))
        assert critical.gradient < 1e-7
        assert critical.index == 0


def test_every_step_rises():
    ascend = jax.jit(tensor_ascent, static_argnums=2)
    start = jnp.asarray(STARTS)
    last = 0.0
    for _ in range(15):
        ends = ascend(jnp.asarray(COMPONENTS), start, 1)
        assert (np.asarray(ends.value) >= last - 1e-12).all()
        last = np.asarray(ends.value)
        start = ends.points


def test_rows_of_zeros_count_for_nothing():
    padded = np.vstack([COMPONENTS, np.zeros((5, 8))])
    plain = tensor_ascent(jnp.asarray(COMPONENTS), jnp.asarray(STARTS), 30)
    more = tensor_ascent(jnp.asarray(padded), jnp.asarray(STARTS), 30)
    np.testing.assert_allclose(plain.points, more.points, atol=1e-9)


@pytest.mark.parametrize("overlap", [0.05, 0.2, 0.35, 0.45, 0.499, 0.6])
def test_the_angle_of_a_pair_is_a_maximum_on_the_circle(overlap):
    psi = np.arccos(overlap)
    angles = np.linspace(0, psi / 2 + 1e-3, 400_001)
    value = np.cos(angles) ** 4 + np.cos(psi - angles) ** 4
    first = np.argmax(np.diff(value) < 0)
    assert pair_angle(overlap) == pytest.approx(angles[first], abs=2e-5)


def test_small_overlaps_give_a_cube_and_half_is_where_they_merge():
    assert pair_angle(0.02) == pytest.approx(0.02**3, rel=0.01)
    assert pair_angle(MERGE) == pytest.approx(np.pi / 6)
    # half-way is a maximum above ½ and a minimum below: f'' changes its sign
    for overlap, sign in ((0.51, -1), (0.49, 1)):
        half = np.arccos(overlap) / 2
        bend = 12 * np.cos(half) ** 2 * np.sin(half) ** 2 - 4 * np.cos(half) ** 4
        assert np.sign(bend) == sign


def test_bad_input_is_one_sentence():
    with pytest.raises(UserError, match="starts must be"):
        tensor_ascent(jnp.eye(3), jnp.ones((2, 4)), 5)
    with pytest.raises(UserError, match="at least one step"):
        tensor_ascent(jnp.eye(3), jnp.ones((2, 3)), 0)
    with pytest.raises(UserError, match="from 0 to 1"):
        pair_angle(-0.1)
