"""Noisy descent of networks of squares: the limit against minimizers and differential equations, and the judge."""

import itertools

import jax
import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import minimize

from steepest.claims.features.noisy_mean_field.claim import NoisyMeanField, eigenvalues
from steepest.claims.features.noisy_mean_field.experiment import Lanes, nodes, train
from steepest.claims.features.noisy_mean_field.theory import (
    best,
    moments,
    path,
    regularized,
    slack,
    time_below,
)

DECAY = 0.4
TARGETS = [eigenvalues(empty) for empty in range(4)]


def risk(sizes, target, decay=DECAY):
    return float(regularized(np.diag(sizes), np.diag(target), decay))


@pytest.mark.parametrize("dimension", [2, 3, 4, 5])
def test_nodes_average_polynomials_of_degree_five(dimension):
    x, weights = nodes(dimension)
    second = np.einsum("n,ni,nj->ij", weights, x, x)
    np.testing.assert_allclose(second, np.eye(dimension), atol=1e-12)
    fourth = np.einsum("n,ni,nj,nk,nl->ijkl", weights, x, x, x, x)
    eye = np.eye(dimension)
    pairs = ("ij,kl->ijkl", "ik,jl->ijkl", "il,jk->ijkl")
    wick = sum(np.einsum(pair, eye, eye) for pair in pairs)
    np.testing.assert_allclose(fourth, wick, atol=1e-12)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("temperature", [0.003, 0.1])
def test_moments_minimize_the_free_energy(target, temperature):
    energy = lambda logs: risk(np.exp(logs), target) - temperature / 2 * logs.sum()
    least = minimize(energy, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(moments(target, DECAY, temperature), np.exp(least.x), rtol=1e-4)


def test_moments_are_where_the_equation_rests():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    A = basis @ np.diag(TARGETS[2]) @ basis.T
    root = rng.standard_normal((4, 1))

    def slope(_, flat):
        M = flat.reshape(4, 4)
        B = 4 * (M - A) + (2 * np.trace(M - A) + DECAY) * np.eye(4)
        return (-(B @ M + M @ B) + 2 * 0.05 * np.eye(4)).ravel()

    end = solve_ivp(slope, (0, 20), (root @ root.T).ravel(), rtol=1e-9, atol=1e-12).y[:, -1]
    turned = basis.T @ end.reshape(4, 4) @ basis
    np.testing.assert_allclose(turned, np.diag(moments(TARGETS[2], DECAY, 0.05)), atol=1e-7)
    short = path(root @ root.T, A, DECAY, 0.05, 0.01, 3000)[-1]
    stepped = np.diag(moments(TARGETS[2], DECAY, 0.05, 0.01))
    np.testing.assert_allclose(basis.T @ short @ basis, stepped, atol=1e-9)


@pytest.mark.parametrize("target", [*TARGETS, np.array([1.0, 0.02, 0.9, -0.3])])
@pytest.mark.parametrize("directions", [1, 2, 3, 4])
def test_best_of_a_rank_is_the_best_of_all_sets_of_directions(target, directions):
    values = []
    for chosen in itertools.combinations(range(4), directions):
        inside = np.isin(np.arange(4), chosen)
        bounds = [(0, None if filled else 0) for filled in inside]
        optimum = minimize(risk, np.where(inside, 0.5, 0.0), (target,), "L-BFGS-B", bounds=bounds)
        values.append(optimum.fun)
    assert risk(best(target, DECAY, directions), target) == pytest.approx(min(values), abs=1e-6)


def test_each_empty_direction_costs_half_the_temperature():
    for empty, target in enumerate(TARGETS):
        least = risk(best(target, DECAY), target)
        cost = [(risk(moments(target, DECAY, t), target) - least) / t for t in (1e-5, 1e-4)]
        assert 2 * cost[0] == pytest.approx(empty, abs=1e-3)
        assert (slack(target, DECAY) > 1e-9).sum() == empty


def test_what_few_neurons_add_to_a_filled_direction():
    """One dimension: the law of N neurons is exact, m^(N/2 − 1) exp(−N G(m)/τ), and its mean risk an integral."""
    temperature = 1e-3
    neurons = 50
    energy = lambda m: 1.5 * (m - 1) ** 2 + DECAY / 2 * m
    least = 1 - DECAY / 6
    log = lambda m: (
        (neurons / 2 - 1) * np.log(m) - neurons * (energy(m) - energy(least)) / temperature
    )
    ends = (least - 0.05, least + 0.05)
    mass = quad(lambda m: np.exp(log(m)), *ends)[0]
    mean = quad(lambda m: np.exp(log(m)) * (energy(m) - energy(least)), *ends)[0] / mass
    assert mean / temperature == pytest.approx(1 * 2 / 4 / neurons, rel=0.05)


def test_networks_are_the_equation_for_one_step():
    """Descent by automatic differentiation moves M as the limit's map does, at any width, and has its risk."""
    claim = NoisyMeanField(neurons=20)
    setting = claim.setting(jax.random.key(0))
    lanes = Lanes(setting.targets[:2], setting.starts[[0, 3]], np.zeros(2), np.zeros(2, bool))
    trained = train(jax.random.key(1), lanes, 20, DECAY, 0.01, 5)
    for lane in range(2):
        A = setting.targets[lane]
        # the last third of five steps is the fourth and fifth, the middle the fourth
        after = path(trained.middle[lane], A, DECAY, 0.0, 0.01, 2)
        np.testing.assert_allclose(after.mean(0), trained.moments[lane], rtol=1e-9)
        np.testing.assert_allclose(regularized(after, A, DECAY), trained.risk[lane, 3:], rtol=1e-9)
    assert np.linalg.matrix_rank(trained.middle[0], tol=1e-12) == 1


def test_time_below():
    over = np.exp(-np.arange(10.0))
    assert time_below(over, np.exp(-2.25), 0.1) == pytest.approx(0.225)
    assert time_below(over, 1e-9, 0.1) == pytest.approx(1.0)


def test_wrong_theories_fail():
    claim = NoisyMeanField(neurons=150, temperatures=(0.03, 0.1), seeds=4)
    setting = claim.setting(jax.random.key(2))
    law = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(3))
    assert "fails" not in {check.verdict.value for check in claim.checks(law, observed)}
    wrong = {
        "moments": law.replace(moments=("start direction", 2 * law["moments"])),
        "cost": law.replace(cost=("empty temperature", law["cost"] + 0.5)),
        "heat": law.replace(heat=("empty", law["heat"][::-1])),
        "time": law.replace(time=("empty temperature", 2 * law["time"])),
        "trapped": law.replace(trapped=("start", 0 * law["trapped"])),
    }
    for id, theory in wrong.items():
        verdicts = {check.id: check.verdict.value for check in claim.checks(theory, observed)}
        assert verdicts[id] == "fails"


def test_long_steps_are_out_of_range():
    claim = NoisyMeanField(**{**NoisyMeanField.tiny, **NoisyMeanField.out_of_scope})
    setting = claim.setting(jax.random.key(0))
    assert not all(hypothesis.holds for hypothesis in claim.hypotheses(setting))
