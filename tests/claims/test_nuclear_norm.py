"""What the claim about nuclear norms rests on: its exact law by the optimality conditions, its problems, its rivals."""

import jax
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.kit._laws import completed_rival, labelled


@pytest.fixture(scope="module")
def small():
    with jax.enable_x64(True):
        claim = load("nuclear-norm")(
            dimension=5,
            commuting=2,
            gaussian=11,
            entries=12,
            few=4,
            alphas=(1e-6, 1e-5, 1e-4, 0.1),
            seeds=3,
            draws=6,
        )
        setting = claim.setting(jax.random.key(0))
        yield claim, setting, claim.predict(setting), claim.observe(setting, jax.random.key(1))


def verdicts(claim, predicted, observed):
    return {check.id: check.verdict.value for check in claim.checks(predicted, observed)}


def test_the_exact_law_tends_to_least_nuclear_norm(small):
    """Its traces fall towards the program's as α does, and never below it."""
    _, _, predicted, _ = small
    traces = predicted["exact"].sum(2)
    least = predicted["limit"].sum(1)
    assert (np.diff(traces, axis=1) > 0).all() and (traces >= least[:, None] - 1e-8).all()


def test_problems_are_as_described(small):
    claim, setting, _, _ = small
    counts = {"commuting": [2], "sufficient": [11, 12], "few": [4]}
    for name, wanted in counts.items():
        problem = getattr(setting, name)
        np.testing.assert_allclose(np.linalg.norm(problem.truth, axis=(-2, -1)), 1)
        np.testing.assert_array_equal(problem.a, problem.a.swapaxes(-1, -2))
        measured = np.einsum("...mij,...ij->...m", problem.a, problem.truth)
        np.testing.assert_allclose(measured, problem.y, atol=1e-14)
        counted = (np.abs(problem.a).sum((-2, -1)) > 0).sum(-1)
        assert sorted(set(counted.ravel().tolist())) == wanted
        ranks = np.linalg.matrix_rank(problem.truth)
        assert (ranks == (claim.dimension if name == "commuting" else 1)).all()
    twisted = load("nuclear-norm")(twist=0.3, seeds=3, draws=3).setting(jax.random.key(0))
    a, b = twisted.commuting.a[0, :2]
    assert np.abs(a @ b - b @ a).max() > 1e-2


def test_a_wrong_theory_fails(small):
    """An exact law that is off by a thousandth, and exponents that are off by a tenth."""
    claim, _, predicted, observed = small
    right = verdicts(claim, predicted, observed)
    assert [right[id] for id in ("exact_limit", "commuting", "slope")] == ["holds"] * 3
    wrong = predicted.replace(
        exact=("seed alpha row", predicted["exact"] * 1.001),
        slope=("seed row", predicted["slope"] + 0.1),
    )
    refuted = verdicts(claim, wrong, observed)
    assert [refuted[id] for id in ("exact_limit", "slope")] == ["fails"] * 2


def test_exponents_that_are_judged_are_those_of_the_exact_law(small):
    """Slopes of the exact law's own eigenvalues; none is on the support."""
    claim, _, predicted, observed = small
    derived = claim.derive(labelled(claim, predicted), labelled(claim, observed))
    counted = derived["counted"].values
    assert counted.any()
    along = np.log(predicted["exact"][:, :3].swapaxes(1, 2)[counted])
    slopes = np.polyfit(np.log(claim.alphas[:3]), along.T, 1)[0]
    np.testing.assert_allclose(slopes, predicted["slope"][counted], atol=0.05)
    assert (np.abs(predicted["slope"][counted]) > 0.05).all()


def test_most_is_told_from_none_and_from_the_other_law(small):
    claim, setting, predicted, observed = small
    law = labelled(claim, predicted)
    dims = "draw row column"
    wrong = {rival.id: rival for rival in claim.rivals(setting, law)}
    everywhere = completed_rival(wrong["nuclear_everywhere"], predicted).prediction
    for name, shares in (("low_rank", [1, 0]), ("low_norm", [0, 1])):
        moved = observed.replace(few=(dims, predicted[name]))
        derived = claim.derive(law, labelled(claim, moved))
        assert [float(derived[at].mean()) for at in ("at_truth", "at_program")] == shares
    at_truth = observed.replace(few=(dims, predicted["low_rank"]))
    assert verdicts(claim, everywhere, at_truth)["few_truth"] == "fails"


def test_commuting_flows_stay_on_their_eigenvectors(small):
    """Entries of U off the diagonal are zero and not rounding, which a flow from a tiny start would amplify."""
    _, _, _, observed = small
    assert not observed["off_diagonal"].any()
