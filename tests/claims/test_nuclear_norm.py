"""What the claim about nuclear norms rests on: its exact law by the optimality conditions, its problems, its rivals."""

import jax
import numpy as np
import pytest

from steepest.catalogue import load


@pytest.fixture(scope="module")
def small():
    claim = load("nuclear-norm")(
        dimension=5, commuting=2, gaussian=11, entries=12, few=4, alphas=(1e-4, 1e-3, 1e-2)
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
        == [[claim.commuting, claim.gaussian, claim.entries, claim.few]] * claim.seeds
    )
    np.testing.assert_allclose(np.einsum("fsmij,fsij->fsm", a, truth), setting.y, atol=1e-14)
    twisted = load("nuclear-norm")(twist=0.3).setting(jax.random.key(0)).a[0, 0]
    assert np.abs(twisted[0] @ twisted[1] - twisted[1] @ twisted[0]).max() > 1e-2


def test_a_wrong_theory_fails(small):
    """An exact law that is off by a thousandth, and exponents that are off by a tenth."""
    claim, setting, predicted = small
    observed = claim.observe(setting, jax.random.key(1))
    dims = "seed alpha row column"
    wrong = predicted.replace(
        exact=(dims, predicted["exact"] * 1.001), slope=("seed", predicted["slope"] + 0.1)
    )
    assert [c.verdict.value for c in claim.judge(predicted, observed)[:2]] == ["holds", "holds"]
    assert [c.verdict.value for c in claim.judge(wrong, observed)[:2]] == ["fails", "fails"]
