"""Rows and the semidefinite program of max-cut: duality, second derivatives, and counts of equations by hand."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.descent.burer_monteiro import theory
from steepest.claims.descent.burer_monteiro.claim import BurerMonteiro
from steepest.claims.descent.burer_monteiro.experiment import (
    ascend,
    ends,
    gaussian,
    starts,
    trap,
    unit_rows,
)

RNG = np.random.default_rng(0)


def test_the_program_of_a_cycle_is_known():
    """Goemans and Williamson: the program of a cycle of five cuts (5/2)(1 + cos π/5) edges."""
    n = 5
    a = np.zeros((n, n))
    for i in range(n):
        a[i, (i + 1) % n] = a[(i + 1) % n, i] = -1.0
    # an edge is cut by (1 − z_ij)/2, and the program counts each edge twice
    cut = (n + theory.max_cut_program(a) / 2) / 2
    assert cut == pytest.approx(n / 2 * (1 + np.cos(np.pi / n)), rel=1e-8)


def test_the_program_lies_between_the_best_cut_and_the_eigenvalue():
    for _ in range(5):
        a = gaussian(RNG, 9)
        cuts = [np.array((1, *signs)) for signs in itertools.product((-1, 1), repeat=8)]
        best = max(s @ a @ s for s in cuts)
        value = theory.max_cut_program(a)
        assert best <= value + 1e-9
        assert value <= 9 * np.linalg.eigvalsh(a)[-1]
        # any shift of the diagonal by numbers of sum zero bounds it as well
        shift = RNG.standard_normal(9)
        shift -= shift.mean()
        assert value <= 9 * np.linalg.eigvalsh(a + np.diag(shift))[-1]


def test_ascent_never_falls_and_its_certificate_bounds_the_program():
    a = gaussian(RNG, 10)
    begun = starts(RNG, 10, 4, 3)
    assert np.linalg.norm(begun, axis=-1) == pytest.approx(np.ones((4, 3, 10)))
    assert (begun[1, :, :, 2:] == 0).all()
    reached = ends(a, begun).value
    for _ in range(5):
        begun = ascend(a, begun, 1)
        after = ends(a, begun).value
        assert (after >= reached - 1e-12).all()
        reached = after
    assert (begun[1, :, :, 2:] == 0).all()
    ended = ends(a, ascend(a, begun, 400))
    value = theory.max_cut_program(a)
    assert (ended.value <= value + 1e-8).all()
    # weak duality, for rows of every length
    assert (ended.value - 10 * ended.least >= value - 1e-8).all()
    assert ended.value[3] == pytest.approx(np.full(3, value), rel=1e-6)


@jax.jit
def derivatives(a, x, sides):
    """Slope and second derivative of ⟨A, XXᵀ⟩ over unit rows, by automatic differentiation."""

    def value(moves):
        moved = x + jnp.einsum("ik,ikr->ir", moves.reshape(sides.shape[:2]), sides)
        moved = moved / jnp.linalg.norm(moved, axis=1, keepdims=True)
        return jnp.vdot(a, moved @ moved.T)

    zero = jnp.zeros(sides.shape[0] * sides.shape[1])
    return jax.grad(value)(zero), jax.hessian(value)(zero)


@pytest.mark.parametrize("n, r", [(9, 3), (13, 4)])
def test_a_trap_is_a_maximum_up_to_its_room_and_a_saddle_beyond(n, r):
    turns = r * (r - 1) // 2
    for share, maximum in ((0.5, True), (2.0, False)):
        made = trap(RNG, n, r, share)
        assert np.linalg.norm(made.x, axis=1) == pytest.approx(np.ones(n))
        assert made.x.sum(0) == pytest.approx(np.zeros(r), abs=1e-12)
        assert np.diag(made.a) == pytest.approx(np.zeros(n))
        sides = np.linalg.svd(made.x[:, None, :])[2][:, 1:]
        slope, second = map(np.asarray, derivatives(made.a, made.x, sides))
        curvature = np.linalg.eigvalsh(second)
        assert slope == pytest.approx(np.zeros(len(slope)), abs=1e-9)
        assert (made.room > 0) == theory.traps(n, r)
        if made.room > 0:
            above = curvature > 1e-9 * abs(curvature[0])
            assert above.any() != maximum
            if maximum:
                assert (np.abs(curvature) < 1e-9 * abs(curvature[0])).sum() == turns
        else:
            assert curvature[-1] > 1e-3
        best = made.a.sum()
        assert theory.max_cut_program(made.a) == pytest.approx(best, rel=1e-8)
        value = np.vdot(made.a, made.x @ made.x.T)
        assert best - value == pytest.approx(made.t * n, rel=1e-6)


def test_the_room_by_equations_of_the_rows():
    """U = XB + zyᵀ + WC: the least ‖C‖² for a given y, by Lagrange's method on the conditions ⟨u_i, x_i⟩ = 0."""
    n = 15
    r = 3
    made = trap(RNG, n, r, 0.5)
    x = made.x
    z = np.full(n, n**-0.5)
    span = np.linalg.qr(np.column_stack([z, x]))[0]
    gram = (np.eye(n) - span @ span.T) * (x @ x.T)  # of the conditions on C, whose sum is none
    pairs = list(itertools.combinations_with_replacement(range(r), 2))
    of_b = np.column_stack([x[:, i] * x[:, j] for i, j in pairs])
    of_b = of_b @ np.linalg.svd(of_b.sum(0)[None])[2][1:].T
    of_y = z[:, None] * x
    inverse = np.linalg.pinv(gram)
    form = lambda left, right: left.T @ inverse @ right
    schur = form(of_y, of_y) - form(of_y, of_b) @ np.linalg.solve(
        form(of_b, of_b), form(of_b, of_y)
    )
    assert made.room == pytest.approx(np.linalg.eigvalsh(schur)[0], rel=1e-6)


def test_a_trap_stays_one_if_its_matrix_is_changed_a_little():
    made = trap(RNG, 14, 3, 0.5)
    changed = made.a + 1e-4 * gaussian(RNG, 14)
    near = unit_rows(made.x + 1e-5 * RNG.standard_normal((2, *made.x.shape)))
    ended = ends(changed, ascend(changed, near, 1000))
    assert ended.residual.max() < 1e-6
    best = theory.max_cut_program(changed)
    assert (best - ended.value > 0.9 * made.t * 14).all()
    assert (ended.least < -0.5 * made.t).all()


def test_counts_by_hand():
    assert [theory.enough(n, 4) for n in (9, 10, 11)] == [True, False, False]
    assert [theory.traps(n, 4) for n in (13, 14, 15)] == [False, True, True]
    for n in range(4, 40):
        for r in range(1, 9):
            assert not (theory.enough(n, r) and theory.traps(n, r))


def test_right_laws_hold_and_wrong_ones_fail():
    claim = BurerMonteiro(sizes=(13, 14), longest=5, starts=2, near=1, sweeps=200)
    setting = claim.setting(jax.random.key(0))
    law = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    verdicts = lambda law: {check.id: check.verdict.value for check in claim.checks(law, observed)}
    assert set(verdicts(law).values()) == {"holds"}
    assert verdicts(law.replace(best=("seed n", law["best"] * 1.0001)))["solved"] == "fails"
    for n, r in np.ndindex(law["trapped"].shape):
        wrong = np.array(law["trapped"])
        wrong[n, r] = 1 - wrong[n, r]
        assert verdicts(law.replace(trapped=("n r", wrong)))["trapped"] == "fails"
    short = BurerMonteiro(longest=4)
    assert not all(h.holds for h in short.hypotheses(short.setting(jax.random.key(0))))
