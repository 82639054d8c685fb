"""Residual streams: the law by its recursion backwards, signals by loops and by finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest import kit
from steepest.claims.training.residual_stream import experiment
from steepest.claims.training.residual_stream.claim import ResidualStream
from steepest.claims.training.residual_stream.point import ROOM
from steepest.core.errors import UserError

KEY = jax.random.key(0)


def law():
    return ResidualStream().predict(None)


def test_gradients_by_the_recursion_backwards():
    """From behind the last normalization each block multiplies the square by 1 + ½/v, v what it normalizes."""
    for depth in (8, 32):
        variances = 1 + 0.5 * np.arange(depth + 1)
        square = 1 / variances[-1]
        squares = [square]
        for variance in variances[-2:0:-1]:
            square *= 1 + 0.5 / variance
            squares.append(square)
        place = ResidualStream().depths.index(depth)
        of_blocks = [squares[depth - block] for block in (1, 2, 4, 8)]
        np.testing.assert_allclose(law()["gradient"][place], np.sqrt(of_blocks))


@pytest.mark.parametrize("step", [experiment.pre, experiment.post, experiment.damped])
def test_signals_by_loops(step):
    weights, start, end = experiment.draw(KEY, 6, 3)
    signals = experiment.signals(weights, start, end, 3, step)
    x = np.asarray(start)
    norm = lambda x: (x - x.mean()) / x.std()
    for number in range(1, 4):
        first = np.asarray(weights.first[number - 1])
        second = np.asarray(weights.second[number - 1])
        read = x if step is experiment.post else norm(x)
        added = second @ np.maximum(first @ read, 0)
        x = x + added / (number**0.5 if step is experiment.damped else 1)
        x = norm(x) if step is experiment.post else x
        assert float(signals.variance[number - 1]) == pytest.approx((x**2).mean())


def test_gradients_by_differences():
    weights, start, end = experiment.draw(KEY, 5, 2)
    signals = experiment.signals(weights, start, end, 2, experiment.pre)

    def output(second):
        x = start
        for number in range(2):
            x = experiment.pre(x, number + 1.0, weights.first[number], second[number])
        return float(end @ experiment.normalized(x))

    slopes = np.zeros((5, 5))
    for place in np.ndindex(5, 5):
        moved = [output(weights.second.at[0, *place].add(s * 1e-5)) for s in (1, -1)]
        slopes[place] = (moved[0] - moved[1]) / 2e-5
    assert float(signals.square[0]) == pytest.approx((slopes**2).sum() / 2.5, rel=1e-5)


def test_fewer_blocks_are_the_first_ones():
    weights, start, end = experiment.draw(KEY, 6, 4)
    long = experiment.signals(weights, start, end, 4, experiment.pre)
    short = experiment.signals(weights, start, end, 2, experiment.pre)
    np.testing.assert_allclose(short.variance, long.variance[:2])
    assert jnp.isfinite(long.square).all()


def test_shallow_networks_are_refused():
    with pytest.raises(UserError, match="at least 8 blocks"):
        ResidualStream(depths=(4, 8))


def test_networks_of_a_point_end_where_their_depth_is():
    """Blocks without a second matrix do nothing, so that one program has networks of every depth."""
    claim = ResidualStream(width=6, depths=(8,), networks=1, seeds=3)
    point = ResidualStream.point.of(claim)
    key = jax.random.key(0)
    of_point = kit.compiled(point.signals)(key)
    drawn = experiment.draw(key, 6, ROOM)
    wanted = kit.compiled(lambda: experiment.signals(*drawn, 8, experiment.pre))()
    np.testing.assert_allclose(of_point.variance[:8], wanted.variance, rtol=1e-4)
    np.testing.assert_allclose(of_point.square[:8], wanted.square, rtol=1e-3)
    law = claim.predict(None)
    predicted = point.predict(None)
    assert predicted["stream"] == pytest.approx(law["stream"][-1])
    assert predicted["first"] == pytest.approx(law["gradient"][0, 0])
