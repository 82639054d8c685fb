"""What the claim about nuclear norms rests on: its exact law by the optimality conditions, its problems, its rivals."""

import jax
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.implicit_bias.nuclear_norm.claim import FEW


@pytest.fixture(scope="module")
def small():
    claim = load("nuclear-norm")(
        dimension=5,
        commuting=2,
        gaussian=11,
        entries=12,
        few=4,
        alphas=(1e-6, 1e-5, 1e-4, 0.1),
        seeds=3,
    )
    setting = claim.setting(jax.random.key(0))
    return claim, setting, claim.predict(setting)


def test_the_exact_law_tends_to_least_nuclear_norm(small):
    """Its traces fall towards the program's as α does, and never below it."""
    _, _, predicted = small
    traces = np.trace(predicted["exact"], axis1=2, axis2=3)
    least = np.trace(predicted["limit"][0], axis1=1, axis2=2)
    assert (np.diff(traces, axis=1) > 0).all() and (traces >= least[:, None] - 1e-8).all()


def test_problems_are_as_described(small):
    claim, setting, _ = small
    a = np.asarray(setting.a)
    truth = np.asarray(setting.truth)
    np.testing.assert_allclose(np.linalg.norm(truth, axis=(2, 3)), 1)
    assert (np.linalg.matrix_rank(truth[1:]) == 1).all() and (
        np.linalg.eigvalsh(truth[0]) > 0
    ).all()
    counted = (np.abs(a).sum((3, 4)) > 0).sum(2)
    assert (
        counted.T.tolist()
        == [[claim.commuting, claim.gaussian, claim.entries, *[claim.few] * FEW]] * claim.seeds
    )
    np.testing.assert_allclose(np.einsum("fsmij,fsij->fsm", a, truth), setting.y, atol=1e-14)
    twisted = load("nuclear-norm")(twist=0.3, seeds=3).setting(jax.random.key(0)).a[0, 0]
    assert np.abs(twisted[0] @ twisted[1] - twisted[1] @ twisted[0]).max() > 1e-2


def test_a_wrong_theory_fails(small):
    """An exact law that is off by a thousandth, and exponents that are off by a tenth."""
    claim, setting, predicted = small
    observed = claim.observe(setting, jax.random.key(1))
    dims = "seed alpha row column"
    wrong = predicted.replace(
        exact=(dims, predicted["exact"] * 1.001), slope=("seed mode", predicted["slope"] + 0.1)
    )
    assert [c.verdict.value for c in claim.judge(predicted, observed)[:2]] == ["holds", "holds"]
    assert [c.verdict.value for c in claim.judge(wrong, observed)[:2]] == ["fails", "fails"]


def test_exponents_that_are_judged_are_those_of_the_exact_law(small):
    """Slopes of the exact law's own eigenvalues; none is on the support."""
    claim, _, predicted = small
    counted = predicted["counted"].astype(bool)
    assert counted.any()
    exact = predicted["exact"][:, :3]
    sizes = np.einsum("sim,saij,sjm->sma", predicted["modes"], exact, predicted["modes"])
    along = np.log(sizes[counted])
    slopes = np.polyfit(np.log(claim.alphas[:3]), along.T, 1)[0]
    np.testing.assert_allclose(slopes, predicted["slope"][counted], atol=0.05)
    assert (np.abs(predicted["slope"][counted]) > 0.05).all()


def test_most_is_told_from_none_and_from_the_other_law(small):
    """With few measurements each law fails where the flow ends at the other's limit."""
    claim, setting, predicted = small
    observed = claim.observe(setting, jax.random.key(1))
    for law, verdicts in (("low_rank", ["holds", "holds"]), ("limit", ["fails", "fails"])):
        w = predicted["low_rank"] if law == "low_rank" else predicted["limit"][3:]
        sizes, vectors = np.linalg.eigh(w)
        u = observed["u"].copy()
        u[3:] = (vectors * np.sqrt(np.maximum(sizes, 0))[..., None, :])[:, :, None]
        moved = {"u": u, **{name: observed[name] for name in ("steps", "residual")}}
        checks = {check.id: check.verdict.value for check in claim.judge(predicted, moved)}
        assert [checks["few_truth"], checks["few_distance"]] == verdicts


def test_commuting_flows_stay_on_their_eigenvectors(small):
    """Entries of U off the diagonal are zero and not rounding, which a flow from a tiny start would amplify."""
    claim, setting, _ = small
    u = claim.observe(setting, jax.random.key(1))["u"][0]
    assert not (u * (1 - np.eye(claim.dimension))).any()
