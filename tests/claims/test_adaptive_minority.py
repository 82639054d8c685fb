"""Adaptive rules and descent on sets with own features: a linear program, pseudo-inverses and a loop by hand."""

import jax
import numpy as np
import pytest
from scipy.optimize import linprog

from steepest.claims.implicit_bias.adaptive_minority import theory
from steepest.claims.implicit_bias.adaptive_minority.claim import AdaptiveMinority
from steepest.claims.implicit_bias.adaptive_minority.experiment import (
    RULES,
    Design,
    Sets,
    adaptive,
    draw,
    fit,
)
from steepest.programs import hard_margin


@pytest.fixture(scope="module")
def small():
    claim = AdaptiveMinority(
        n=12, shares=(0.25, 0.4), new=20, steps=2000, single_steps=4000, seeds=3
    )
    setting = claim.setting(jax.random.key(0))
    return claim, setting, claim.predict(setting), claim.observe(setting, jax.random.key(1))


def every_set(setting):
    for place in np.ndindex(setting.y.shape[:2]):
        yield place, *(part[place] for part in setting)


def test_the_signs_have_the_largest_margin_in_the_largest_entry(small):
    claim, setting, predicted, _ = small
    of_training = 1 + claim.constants + claim.features * claim.n  # the others are of new examples
    for place, x, y, new, new_y in every_set(setting):
        d = x.shape[1]
        # largest t with y⟨w, x⟩ ≥ t and |w| ≤ 1
        bound = np.column_stack([-y[:, None] * x, np.ones(len(y))])
        program = linprog(
            -np.eye(d + 1)[d], bound, np.zeros(len(y)), bounds=[(-1, 1)] * d + [(None, None)]
        )
        w = program.x[:of_training]
        assert program.x[d] == pytest.approx(1 + claim.constants + claim.own_norm)
        signs = predicted["direction"][place] * np.sqrt(of_training)
        assert signs[:of_training] == pytest.approx(w, abs=1e-9)
        assert (signs[of_training:] == 0).all()
        outputs = new[:, :of_training] @ w / program.x[d]
        law = dict(zip((1.0, -1.0), predicted["adaptive"], strict=True))
        assert outputs == pytest.approx([law[label] for label in new_y])


def test_the_least_norm_solution_is_the_pseudo_inverse_and_the_largest_margin(small):
    claim, setting, predicted, _ = small
    for place, x, y, new, new_y in every_set(setting):
        outputs = new @ (np.linalg.pinv(x) @ y)
        law = dict(zip((1.0, -1.0), predicted["descent"][place], strict=True))
        assert outputs == pytest.approx([law[label] for label in new_y])
        if place[0] == 0:
            best = hard_margin(x, y)
            assert new @ best.direction / best.margin == pytest.approx(outputs, abs=1e-6)
        squares = (x[:, 1 + claim.constants :] ** 2).sum(1)
        right = theory.evidence(claim.constants, squares, y) > 1
        assert right == (outputs * new_y > 0).all()


def test_descent_fails_where_the_rare_class_is_too_rare():
    """One rare example, with own features so long that it is learned by heart."""
    for length, right in ((2.0, True), (4.0, False)):
        squares = np.where(np.arange(30) < 1, length**2, 1.0)
        y = np.where(np.arange(30) < 1, -1.0, 1.0)
        # one own feature each
        x = np.column_stack([y, np.ones((30, 2)), np.diag(np.sqrt(squares))])
        rare = np.zeros(33)
        rare[:3] = (-1, 1, 1)
        output = rare @ (np.linalg.pinv(x) @ y)
        assert output == pytest.approx(theory.least_norm_outputs(2, squares, y)[1])
        assert (output < 0) == right == (theory.evidence(2, squares, y) > 1)


def by_hand(rule, x, y, lr, steps):
    """A rule on squares, in a loop over weights that have been seen."""
    w = np.zeros(x.shape[1])
    mean = np.zeros_like(w)
    square = np.zeros_like(w)
    for step in range(1, steps + 1):
        gradient = x.T @ (x @ w - y) / len(y)
        if rule == "AdaGrad":
            square += gradient**2
            move = gradient / np.sqrt(square)
        elif rule == "RMSprop":
            square = 0.9 * square + 0.1 * gradient**2
            move = gradient / np.sqrt(square)
        else:
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            move = mean / (1 - 0.9**step) / np.sqrt(square / (1 - 0.999**step))
        w = w - lr * move
    return w


def test_the_rules_are_those_of_a_loop_by_hand_on_the_set_of_wilson():
    n = 10
    y = np.where(np.arange(n) < 3, -1.0, 1.0)
    x = np.zeros((n, 3 + 5 * n))
    x[:, 0] = y
    x[:, 1:3] = 1
    for i in range(n):
        x[i, 3 + 5 * i : 3 + 5 * i + (1 if y[i] > 0 else 5)] = 1
    x = x[:, x.any(0)]
    new = np.column_stack([y, np.ones((n, 2)), np.zeros((n, x.shape[1] - 3))])
    sets = Sets(x[None, None], y[None, None], new[None, None], y[None, None])
    weights = adaptive(sets, 0.15, 30)[0, 0]
    for i, rule in enumerate(RULES):
        assert weights[i, 0] == pytest.approx(by_hand(rule, x, y, 0.15 / 30, 30), rel=1e-9)
    fitted = fit(sets, weights[None, None])
    assert fitted.outputs == pytest.approx(np.broadcast_to([0.75, 0.25], fitted.outputs.shape))
    assert fitted.error == pytest.approx(np.full(fitted.error.shape, 0.3))


def test_own_features_have_the_norms_of_their_class_and_new_ones_are_unseen():
    design = Design(constants=3, features=4, common=1.5, rare=7.5)
    x, y, new, new_y = draw(np.random.default_rng(0), design, (8, 6), np.array([[3, 2]]))
    assert ((y < 0).sum(), (new_y < 0).sum()) == (3, 2)
    assert np.abs(x[0, :, 4:]).sum(1) == pytest.approx(np.where(y[0] < 0, 7.5, 1.5))
    assert np.abs(new[0, :, 4:]).sum(1) == pytest.approx(np.where(new_y[0] < 0, 7.5, 1.5))
    assert (x[0, :, 0] == y[0]).all()
    assert (x[0, :, 1:4] == 1).all()
    assert ((x[0, :, 4:] != 0).sum(0) <= 1).all()
    assert not (x[0].any(0) & new[0].any(0))[4:].any()


def test_right_laws_hold_and_slightly_wrong_ones_fail(small):
    claim, _, predicted, observed = small
    verdicts = lambda law: {c.id: c.verdict.value for c in claim.checks(law, observed)}
    assert set(verdicts(predicted).values()) == {"holds"}
    for name, dims in (
        ("adaptive", "class"),
        ("adaptive_error", "share"),
        ("descent", "seed share class"),
    ):
        wrong = predicted.replace(**{name: (dims, predicted[name] * (1 + 1e-5))})
        assert verdicts(wrong)[name] == "fails"
    turned = np.array(predicted["direction"])
    turned[..., 0] *= 1 + 1e-7
    assert (
        verdicts(predicted.replace(direction=("seed share weight", turned)))["direction"] == "fails"
    )


def test_labels_of_the_next_example_are_missed_where_they_are_others(small):
    """What fits all labels misses each that is another."""
    _, setting, _, observed = small
    others = (setting.y != np.roll(setting.y, 1, axis=-1)).mean(-1)
    assert (others > 0).all()
    missed = observed["missed_of_others"]
    np.testing.assert_allclose(missed, np.broadcast_to(others[..., None], missed.shape))


@pytest.mark.parametrize(
    "fields", [{"unequal": 0.01}, {"shares": (0.5,)}, {"constants": 6, "n": 20}]
)
def test_outside_of_its_hypotheses(fields):
    claim = AdaptiveMinority(**fields)
    assert not all(h.holds for h in claim.hypotheses(claim.setting(jax.random.key(0))))
