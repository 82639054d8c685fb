"""Aims of neurons with biases: by hand, by search, and by descent."""

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claims.implicit_bias.alignment_with_bias.claim import AlignmentWithBias
from steepest.claims.implicit_bias.alignment_with_bias.experiment import (
    Setting,
    turned_with_constant,
)
from steepest.claims.implicit_bias.alignment_with_bias.theory import bordered_targets
from steepest.nn.networks import Neurons


def with_data(x, y, width=6):
    """One set of examples, with starts of one more input."""
    w = np.random.default_rng(3).standard_normal((1, width, x.shape[1] + 1))
    v = np.linalg.norm(w, axis=-1) * np.resize([1.0, -1.0], width)
    start = Neurons(jnp.asarray(w), jnp.asarray(v))
    return Setting(x[None], y[None], start)


def test_aims_with_a_constant_on_two_opposite_examples():
    """By hand: (1, c) sees (−1, c) from c = 1 on, and then its share α of the pull makes the two orthogonal."""
    setting = with_data(np.array([[2.0, 0.0], [-3.0, 0.0]]), np.array([1.0, -1.0]))
    for c in (0.5, 1.0, 2.0):
        alpha = max(c**2 - 1, 0) / (c**2 + 1)
        aim = np.array([1 + alpha, 0.0, c * (1 - alpha)])
        aim /= np.linalg.norm(aim)
        targets = bordered_targets(setting, [c])[0, 0]
        np.testing.assert_allclose(targets, [aim, aim * [-1, 1, 1]], atol=1e-9)
        if c > 1:
            assert abs(aim @ [-1.0, 0.0, c]) < 1e-12


def test_aims_with_a_constant_are_maxima():
    """Of directions that see all of the class none does better; class sums do worse from c = 1 on."""
    rng = np.random.default_rng(0)
    claim = AlignmentWithBias(n=9, dimension=4, seeds=3, width=8)
    setting = claim.setting(jax.random.key(2))
    x = setting.x[0] / np.linalg.norm(setting.x[0], axis=1, keepdims=True)
    y = setting.y[0]
    for c in (0.3, 1.0, 1.5):
        bordered = np.column_stack([x, np.full(9, c)])
        for place, sign in enumerate((1, -1)):
            climbed = lambda w, sign=sign, bordered=bordered: (
                np.maximum(w @ bordered.T, 0) @ (sign * y)
            )
            aim = bordered_targets(setting, [c])[0, 0, place]
            assert (bordered[y == sign] @ aim > 0).all()
            spread = np.concatenate([[1.0] * 500, 10.0 ** -np.linspace(1, 4, 1500)])[:, None]
            tries = aim + spread * rng.standard_normal((2000, 5))
            tries /= np.linalg.norm(tries, axis=1, keepdims=True)
            tries = tries[(tries @ bordered[y == sign].T > 0).all(1)]
            assert len(tries) > 1000
            assert climbed(tries).max() <= climbed(aim) + 1e-12
            total = bordered[y == sign].sum(0)
            worse = climbed(total / np.linalg.norm(total)) < climbed(aim) - 0.1
            assert worse == (c >= 1)


def test_small_networks_with_biases_turn_to_their_aims():
    """Trained by automatic differentiation on data whose classes are not equal; class sums are missed."""
    rng = np.random.default_rng(1)
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    x = y[:, None] * (np.array([1.0, 0.5, 0.0]) + 0.4 * rng.standard_normal((5, 3)))
    setting = with_data(x, y, 40)
    trained = turned_with_constant(setting, (0.3, 1.2), 1e-8)
    targets = bordered_targets(setting, (0.3, 1.2))
    sums = bordered_targets(setting, (0.3, 1.2), (0.0, 1e-9))
    for at in range(2):
        alive = trained["wider_alive"][1][0, at]
        place = np.where(trained["wider_positive"][1][0], 0, 1)
        directions = trained["wider"][1][0, at]
        assert alive.sum() >= 10
        assert (1 - (directions * targets[0, at, place]).sum(1))[alive].max() < 1e-3
    assert (1 - (directions * sums[0, 1, place]).sum(1))[alive].min() > 0.02
