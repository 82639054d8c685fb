"""Margins of two layers in the nuclear norm: sets as written out, a slow flow, powers, wrong laws."""

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest import kit
from steepest.catalogue import load
from steepest.claims.implicit_bias.nuclear_norm_margin.claim import readable_powers
from steepest.claims.implicit_bias.nuclear_norm_margin.experiment import (
    Sets,
    draw,
    follow_all,
    readings,
)
from steepest.core.errors import UserError
from steepest.programs import nuclear_norm_margin


@pytest.fixture(scope="module")
def sets():
    rng = np.random.default_rng(0)
    parts = [draw(rng, 3, 4, 7, 0.5) for _ in range(3)]
    return Sets(*(np.stack(part) for part in zip(*parts, strict=True)))


@pytest.fixture(scope="module")
def ends(sets):
    with jax.enable_x64(True):
        return follow_all(sets, 1e3)


def test_measurements_are_signs_of_entries_labels_of_outputs_and_classes(sets):
    for entries, labels, classes in sets.a:
        assert ((entries != 0).sum((1, 2)) == 1).all()
        assert (np.abs(entries).sum(0) <= 1).all()
        assert np.abs(entries).sum() == 6
        rows = (labels != 0).any(2)  # output j of input i
        assert (rows.sum(1) == 1).all()
        assert (rows.sum(0) == 2).all()
        inputs = [np.abs(a[a.any(1)][0]) for a in labels]
        assert len(np.unique(np.round(inputs, 9), axis=0)) == 2
        assert np.allclose(classes.sum(1), 0)  # one class against another
        for of_input in classes.reshape(3, 2, 3, 4):
            assert np.linalg.matrix_rank(of_input.reshape(-1, 4)) == 1
            assert len({tuple(np.sign(a[:, 0])) for a in of_input}) == 2


def slow_flow(a, start, fall):
    """The flow of log Σ exp(−⟨A, UVᵀ⟩) by a library's integrator, gradients by hand, until its value has fallen."""
    outputs = a.shape[1]

    def parts(z):
        z = z.reshape(start.shape)
        u = z[:outputs]
        v = z[outputs:]
        margins = np.einsum("mij,ih,jh->m", a, u, v)
        value = np.log(np.exp(-(margins - margins.min())).sum()) - margins.min()
        q = np.exp(-margins - value)
        pull = np.tensordot(q, a, 1)
        return value, np.concatenate([pull @ v, pull.T @ u]).ravel()

    def slope(s, z):
        step = parts(z)[1]
        return step / (step @ step)

    end = solve_ivp(slope, (0, fall), start.ravel(), method="LSODA", rtol=1e-8, atol=1e-10).y[:, -1]
    assert parts(start.ravel())[0] - parts(end)[0] == pytest.approx(fall, rel=1e-4)
    z = end.reshape(start.shape)
    return z[:outputs] @ z[outputs:].T


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_networks_follow_the_flow_of_another_integrator(sets, ends, kind):
    a = sets.a[0, kind]
    at = readings(1e3)
    late = [slow_flow(a, sets.starts[0, kind], fall) for fall in at[[4, -2, -1]]]
    margins = [np.einsum("mij,ij->m", a, w).min() / np.linalg.norm(w, "nuc") for w in late]
    assert ends.margin[0, 0, kind, [4, -2, -1]] == pytest.approx(margins, rel=2e-3)
    sizes = np.linalg.svd(np.array(late[1:]), compute_uv=False)
    powers = np.log10(sizes[1] / sizes[0])
    assert ends.power[0, 0, kind, :2] == pytest.approx(powers[:2], abs=0.03)


def test_two_layers_reach_the_nuclear_margin_and_one_layer_that_of_frobenius(sets, ends):
    assert ends.arrived.all()
    for row, margins in zip(sets.a, np.moveaxis(ends.margin[..., -1], 1, 0), strict=True):
        best = np.array([nuclear_norm_margin(a).margin for a in row])
        assert (margins <= best * (1 + 1e-6)).all()
        assert margins[0] == pytest.approx(best, rel=0.06)
        # entries are orthonormal: equal margins have the least Frobenius norm
        frobenius = 1 / np.linalg.norm(row[0].sum(0), "nuc")
        assert margins[1, 0] == pytest.approx(frobenius, rel=0.02)


def test_powers_are_read_off_the_dual_matrix_where_it_is_the_only_one():
    """Singular values of the solution belong to those of the dual matrix that are γ, by complementarity."""
    alone = np.zeros((1, 2, 3))
    alone[0, 0, 0] = 1.0
    assert readable_powers(alone, nuclear_norm_margin(alone)).tolist() == [0.0, 0.0]
    rng = np.random.default_rng(1)
    count = 0
    for _ in range(20):
        entries = draw(rng, 4, 5, 5, 1.0)[0][0]
        best = nuclear_norm_margin(entries)
        powers = readable_powers(entries, best)
        dual = np.linalg.svd(np.tensordot(best.dual, entries, 1), compute_uv=False)
        solution = np.linalg.svd(best.matrix, compute_uv=False)
        assert dual[solution > 1e-4] == pytest.approx(best.margin, rel=1e-3)
        assert ((powers == 0) | (solution < 1e-4)).all()
        count += (powers > 0).sum()
    assert count > 5


def test_the_judge_refutes_wrong_laws():
    claim = load("nuclear-norm-margin")(sets=6)
    rng = np.random.default_rng(2)
    power = np.tile([0.0, 0.0, 0.9, 0.5], (6, 3, 1))
    margin = rng.uniform(0.1, 0.2, (6, 3))
    law = claim.predict(claim.setting(jax.random.key(0))).replace(
        margin=("seed data", margin), power=("seed data place", power)
    )
    reached = margin * (1 - 0.005 * rng.random((6, 3)))
    near = power + 0.05 * rng.standard_normal(power.shape)
    margins = {name: reached for name in ("margin", "one_layer", "tail")}
    observed = claim_observation(margins, near)

    def fails(**wrong):
        checks = claim.checks(law.replace(**wrong), observed)
        return {check.id for check in checks if check.verdict.value == "fails"}

    assert not fails()
    assert fails(margin=("seed data", 1.03 * margin)) == {"margin"}
    slow = margin * np.where(np.arange(18).reshape(6, 3) == 7, 1.2, 1.0)
    assert "every_set" in fails(margin=("seed data", slow))
    assert fails(power=("seed data place", power / 2)) == {"fading"}
    assert fails(power=("seed data place", np.where(power > 0, 1.0, 0.0))) == {"fading"}


def claim_observation(margins, power):
    return kit.seen(
        **{name: ("seed data", values) for name, values in margins.items()},
        power=("seed data place", power),
        power_one_layer=("seed data place", power),
        along=("seed data reading", np.repeat(margins["margin"][..., None], 9, -1)),
        arrived=("seed data", np.ones((6, 3), bool)),
    )


def test_too_few_inputs_are_out_of_range_and_networks_must_be_wide():
    claim = load("nuclear-norm-margin")(inputs=3, sets=3)
    assert not all(h.holds for h in claim.hypotheses(claim.setting(jax.random.key(0))))
    with pytest.raises(UserError, match="raise --hidden"):
        load("nuclear-norm-margin")(hidden=4)
    with pytest.raises(UserError, match="raise --inputs"):
        load("nuclear-norm-margin")(inputs=2)
