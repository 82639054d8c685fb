"""Living neurons by closed form and by the rule for pairs, the law by enumeration, its mutants, bad fields."""

import itertools

import jax
import numpy as np
import pytest

from steepest import kit
from steepest.claims.features.selection_width.claim import SelectionWidth
from steepest.claims.features.selection_width.experiment import Pairs, Sets
from steepest.claims.features.selection_width.theory import (
    living_on_pairs,
    living_on_sets,
    share_that_learns,
)
from steepest.core.errors import UserError
from steepest.core.words import Verdict
from steepest.nn.data import orthogonal_separability


@pytest.fixture(scope="module")
def claim():
    return SelectionWidth(examples=6, dimension=3)


@pytest.fixture(scope="module")
def setting(claim):
    return claim.setting(jax.random.key(2))


@pytest.fixture(scope="module")
def predicted(claim, setting):
    return claim.predict(setting)


@pytest.fixture(scope="module")
def observed(claim, setting, predicted):
    """What training would show if every neuron did what theory says."""
    return kit.seen(
        success=("draw mu width", predicted["success"]),
        pair_lives=("draw neuron mu", np.swapaxes(living_on_pairs(setting.pairs), 1, 2)),
        many_success=("seed start width", predicted["many_success"]),
        many_live=("seed start neuron", living_on_sets(setting.sets)),
    )


def verdicts(claim, predicted, observed):
    return {check.id: check.verdict for check in claim.checks(predicted, observed)}


def test_what_theory_says_holds(claim, predicted, observed):
    assert set(verdicts(claim, predicted, observed).values()) == {Verdict.HOLDS}


@pytest.mark.parametrize(
    ("law", "axis", "kind"),
    [
        *(("rate", "width", kind) for kind in ("flat", "reversed", "steeper", "shallower")),
        *(("many_rate", "width", kind) for kind in ("flat", "reversed", "steeper", "shallower")),
        *(("pair_lives", "mu", kind) for kind in ("flat", "reversed", "steeper", "shallower")),
        ("rate", "mu", "reversed"),
    ],
)
def test_laws_made_wrong_along_their_argument_fail(claim, predicted, observed, law, axis, kind):
    quantity = predicted.quantity(law)
    place = quantity.dims.index(axis)
    wrong = kit.wrong_along(quantity.values, place, claim.axes()[axis])[kind]
    mutant = predicted.replace(**{law: (quantity.dims, wrong)})
    assert verdicts(claim, mutant, observed)[law] is Verdict.FAILS


def test_a_constant_share_fails_at_every_height(claim, predicted, observed):
    for share in (0.5, 0.55, 0.6, 0.65, 0.7):
        constant = predicted.replace(pair_lives=("mu", np.full(3, share)))
        assert verdicts(claim, constant, observed)["pair_lives"] is Verdict.FAILS


def test_the_rule_of_pairs_is_the_limit_of_turning_neurons(setting):
    """Euler's steps of the direction equations at each pair, and the closed form of their share."""
    lives = living_on_pairs(setting.pairs)
    x = np.asarray(setting.pairs.x)
    y = np.broadcast_to(setting.pairs.y, x.shape[:2])
    by_mu = jax.tree.map(lambda leaf: np.swapaxes(leaf, 0, 1)[:, :100], setting.pairs.start)
    turned = np.swapaxes(living_on_sets(Sets(x, y, by_mu)), 0, 1)
    assert (turned == lives[:100]).mean() > 0.985


def test_the_share_of_pairs_has_its_closed_form(claim, predicted, setting):
    lives = living_on_pairs(setting.pairs)
    share = predicted["pair_lives"]
    spread = np.sqrt(share * (1 - share) / (lives.size / len(share)))
    assert (np.abs(lives.mean((0, 2)) - share) < 4 * spread).all()


def test_data_are_as_described(claim, setting):
    pairs, sets = setting
    assert (np.asarray(sets.y).sum(1) == 0).all()
    for images, labels in zip(sets.x, sets.y, strict=True):
        assert float(orthogonal_separability(images, labels)) >= 0.1 - 1e-6
    cosines = (pairs.x[:, 0] * pairs.x[:, 1]).sum(-1)
    np.testing.assert_allclose(cosines, -np.array(claim.mus), atol=1e-6)
    assert isinstance(pairs, Pairs) and pairs.start.w.shape == (1000, 3, 8, 3)


def test_the_law_by_enumeration():
    """Kinds positive and negative with p/2 each, dead with 1 − p."""
    p = 0.7
    for width, law in zip((2, 4), share_that_learns(p, (2, 4)), strict=True):
        total = 0.0
        for draw in itertools.product((0, 1, 2), repeat=width):
            chance = np.prod([(1 - p, p / 2, p / 2)[kind] for kind in draw])
            total += chance * ({1, 2} <= set(draw))
        assert law == pytest.approx(total)
    np.testing.assert_allclose(share_that_learns(1.0, (2, 4)), [0.5, 0.875])


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
