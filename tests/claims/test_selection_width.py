"""Living neurons by closed form and by the rule for two examples, the law by enumeration, bad fields."""

import itertools

import jax
import numpy as np
import pytest

from steepest.claims.features.selection_width import PAIR, SelectionWidth, living
from steepest.core.errors import UserError
from steepest.nn.data import orthogonal_separability


@pytest.fixture(scope="module")
def claim():
    return SelectionWidth(examples=6, dimension=3, starts=40, seeds=4, widths=(2, 12))


@pytest.fixture(scope="module")
def setting(claim):
    return claim.setting(jax.random.key(2))


def test_pairs_live_where_the_rule_says(claim, setting):
    """A neuron of the first class lives if it sees its own example, or its part orthogonal to the other."""
    lives = living(setting)[PAIR]
    agree = []
    for s in range(claim.seeds):
        x = setting.x[PAIR, s, :2] / np.linalg.norm(setting.x[PAIR, s, :2], axis=1, keepdims=True)
        positive = setting.start.v[PAIR, s] > 0
        for own, other, of in ((x[0], x[1], positive), (x[1], x[0], ~positive)):
            beside = own - (own @ other) * other
            w = setting.start.w[PAIR, s][of]
            agree.append((lives[s][of] == ((w @ own > 0) | (w @ beside > 0))).mean())
    assert np.mean(agree) > 0.985
    share = 0.5 + np.arcsin(claim.mus) / (2 * np.pi)
    spread = np.sqrt(share * (1 - share) / lives[0].size)
    assert (np.abs(lives.mean((1, 2)) - share) < 4 * spread + 0.01).all()


def test_sets_are_as_described(claim, setting):
    x = setting.x.reshape(-1, 6, 3)
    y = setting.y.reshape(-1, 6)
    assert (y.sum(1) == 0).all()
    for one, labels in zip(x, y, strict=True):
        assert float(orthogonal_separability(one, labels)) >= 0.1 - 1e-6
    np.testing.assert_array_equal(setting.x[PAIR, :, 0], setting.x[PAIR, :, 4])
    assert (setting.y[PAIR, :, 0] == 1).all()
    cosines = (setting.x[PAIR, :, 0] * setting.x[PAIR, :, 1]).sum(-1)
    np.testing.assert_allclose(cosines, -claim.mus, atol=1e-6)


def test_the_law_by_enumeration():
    """Kinds positive and negative with p/2 each, dead with 1 − p."""
    p = 0.7
    claim = SelectionWidth(widths=(2, 4))
    for width, law in zip((2, 4), claim.law(p), strict=True):
        total = 0.0
        for draw in itertools.product((0, 1, 2), repeat=width):
            chance = np.prod([(1 - p, p / 2, p / 2)[kind] for kind in draw])
            total += chance * ({1, 2} <= set(draw))
        assert law == pytest.approx(total)
    np.testing.assert_allclose(claim.law(1.0), [0.5, 0.875])


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"examples": 5}, "examples must be even and at least 4, got 5"),
        ({"dimension": 1}, "dimension must be at least 2, got 1"),
        ({"widths": (1,)}, "widths must reach 2"),
    ],
)
def test_bad_fields(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        SelectionWidth(**fields)
