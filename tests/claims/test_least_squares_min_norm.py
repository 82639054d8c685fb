"""What the claim about least squares rests on: its law by the optimality conditions, and the ends of its rivals."""

import jax
import numpy as np
import pytest

from steepest.catalogue import load


@pytest.fixture(scope="module")
def small():
    claim = load("least-squares-min-norm")(n=4, dimension=8, seeds=3, steps=20_000)
    setting = claim.setting(jax.random.key(0))
    return claim, setting, claim.predict(setting)


@pytest.fixture(scope="module")
def observed(small):
    claim, setting, _ = small
    return claim.observe(setting, jax.random.key(1))


def test_predictions_satisfy_the_optimality_conditions(small):
    """Xw = y, and ∇ψ(w) − ∇ψ(w_0) lies in the row space of X (and of the ones, on the simplex)."""
    claim, setting, predicted = small
    for seed, x in enumerate(np.asarray(setting.x)):
        for law, psi in enumerate(claim.potentials):
            w = predicted["limit"][seed, law]
            start = setting.start[seed, law]
            np.testing.assert_allclose(x @ w, setting.y[seed, law], atol=1e-10)
            moved = np.asarray(psi.mirror(w) - psi.mirror(start))
            rows = np.vstack([x, np.ones(x.shape[1])]) if psi.domain == "simplex" else x
            inside = rows.T @ np.linalg.lstsq(rows.T, moved)[0]
            np.testing.assert_allclose(moved, inside, atol=1e-9)


def test_rivals_interpolate_too(small):
    """They are wrong about which interpolant, not about interpolation."""
    claim, setting, predicted = small
    for rival in claim.wrong_theories(setting, predicted):
        fits = np.einsum("snd,sld->sln", setting.x, rival.prediction["limit"])
        np.testing.assert_allclose(fits, setting.y, atol=1e-6)


def test_a_theory_that_is_off_by_a_hundred_thousandth_fails(small, observed):
    claim, _, predicted = small
    wrong = predicted.replace(limit=("seed law unknown", predicted["limit"] * (1 + 1e-5)))
    assert claim.checks(predicted, observed)[0].verdict.value == "holds"
    assert claim.checks(wrong, observed)[0].verdict.value == "fails"


def test_single_examples_end_at_the_pseudo_inverse(small, observed):
    """w₀ + X⁺(y − Xw₀), which needs no program; another law's limit fails there."""
    claim, setting, predicted = small
    for seed, x in enumerate(np.asarray(setting.x)):
        start = setting.start[seed, 0]
        nearest = start + np.linalg.pinv(x) @ (setting.y[seed, 0] - x @ start)
        for end in observed["examples"][seed]:
            np.testing.assert_allclose(end, nearest, atol=1e-9)
    turned = predicted.replace(limit=("seed law unknown", predicted["limit"][:, [1, 0, 2, 3]]))
    for theory, verdict in ((predicted, "holds"), (turned, "fails")):
        (check,) = (c for c in claim.checks(theory, observed) if c.id == "sgd_distance")
        assert check.verdict.value == verdict
