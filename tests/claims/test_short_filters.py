"""Convolutions with short filters: norms by search, margins by another program, a slow flow, wrong laws."""

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

from steepest import kit
from steepest.catalogue import load
from steepest.claims.implicit_bias.short_filters.experiment import (
    Setting,
    draw_starts,
    follow_all,
)
from steepest.claims.implicit_bias.short_filters.theory import (
    haar_basis,
    largest_margin,
    norm,
    shifted,
)
from steepest.core.errors import UserError
from steepest.programs import fourier_margin, hard_margin, nuclear_norm_margin

RNG = np.random.default_rng(0)


def circular(u, w):
    """The convolution by its definition."""
    d = len(u)
    return np.array([sum(u[(i - b) % d] * w[b] for b in range(len(w))) for i in range(d)])


def separable_set(n=6, d=8, seed=1):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(d)
    x = rng.standard_normal((n, d))
    return x, np.sign(x @ truth)


def shape(s, d):
    """|ŵ|² of the unit filter of two taps with 2 w_0 w_1 = s."""
    return 1 + s * np.cos(2 * np.pi * np.arange(d) / d)


def test_shifts_make_outputs_bilinear_in_both_filters():
    u, x = RNG.standard_normal((2, 7))
    w = RNG.standard_normal(3)
    assert u @ shifted(x, 3) @ w == pytest.approx(circular(u, w) @ x)


@pytest.mark.parametrize("d", [5, 8])
def test_the_norm_of_two_taps_is_that_of_the_best_angle(d):
    beta = RNG.standard_normal(d)
    energy = np.abs(np.fft.fft(beta, norm="ortho")) ** 2
    squared = lambda s: (energy / shape(s, d)).sum()
    best = minimize_scalar(squared, bounds=(-1, 1), method="bounded")
    assert norm(beta, 2) == pytest.approx(np.sqrt(best.fun), rel=1e-5)


def test_the_norm_of_three_taps_is_the_shortest_pair_of_filters():
    """A search over unit filters on a sphere: one channel is as short as any number of them."""
    beta = RNG.standard_normal(7)
    energy = np.abs(np.fft.fft(beta, norm="ortho")) ** 2
    filters = RNG.standard_normal((200_000, 3))
    filters /= np.linalg.norm(filters, axis=1, keepdims=True)
    lengths = (energy / np.abs(np.fft.fft(filters, n=7, axis=1)) ** 2).sum(1)
    exact = norm(beta, 3) ** 2
    assert exact * (1 - 1e-9) <= lengths.min() <= 1.01 * exact


def test_the_ends_are_l2_and_l1_of_the_spectrum():
    beta = RNG.standard_normal(6)
    assert norm(beta, 1) == pytest.approx(np.linalg.norm(beta))
    assert norm(beta, 6) == pytest.approx(
        np.abs(np.fft.fft(beta, norm="ortho")).sum() / np.sqrt(6), rel=1e-6
    )
    norms = [norm(beta, k) for k in range(1, 7)]
    assert (np.diff(norms) < 1e-7).all()


def test_the_norm_is_convex():
    for taps in (2, 3):
        for a, b in RNG.standard_normal((5, 2, 6)):
            assert norm(a + b, taps) <= norm(a, taps) + norm(b, taps) + 1e-7


def test_the_largest_margin_is_that_over_angles_of_weighted_margins():
    x, y = separable_set()
    d = x.shape[1]

    def lost(s):
        # x through the filter: coordinates in which the norm is ℓ2
        root = np.fft.ifft(np.sqrt(shape(s, d))).real
        return -hard_margin(np.array([circular(row, root) for row in x]), y).margin

    best = minimize_scalar(lost, bounds=(-1, 1), method="bounded", options={"xatol": 1e-4})
    assert largest_margin(x, y, 2) == pytest.approx(-best.fun, rel=1e-5)


def test_at_the_ends_the_program_of_matrices_agrees_with_those_of_vectors():
    x, y = separable_set(seed=2)
    signed = y[:, None] * x
    one_tap = nuclear_norm_margin(shifted(signed, 1)).margin
    assert one_tap == pytest.approx(hard_margin(x, y).margin, rel=1e-6)
    all_taps = nuclear_norm_margin(shifted(signed, 8)).margin
    assert all_taps == pytest.approx(np.sqrt(8) * fourier_margin(x, y).margin, rel=1e-6)


def test_haar_wavelets_are_an_orthonormal_basis_of_steps():
    basis = haar_basis(8)
    assert np.allclose(basis @ basis.T, np.eye(8))
    assert sorted((basis != 0).sum(1)) == [2, 2, 2, 2, 4, 4, 8, 8]


@pytest.fixture(scope="module")
def followed():
    sets = [separable_set(seed=seed) for seed in (3, 4)]
    x, y = map(np.stack, zip(*sets, strict=True))
    setting = Setting(x, y, draw_starts(RNG, (2, 8), (1, 2), (1, 2, 8), 0.5))
    with jax.enable_x64(True):
        return setting, follow_all(setting, (1, 2, 8), 1e3)


def test_networks_follow_the_flow_of_another_integrator(followed):
    setting, ends = followed
    x = setting.x[0]
    y = setting.y[0]
    start = setting.starts[0, 0, 1, 0]
    matrices = y[:, None, None] * shifted(x, 2)

    def parts(z):
        u = z[:8]
        w = z[8:]
        margins = np.einsum("nib,i,b->n", matrices, u, w)
        q = np.exp(-(margins - margins.min()))
        value = np.log(q.sum()) - margins.min()
        pull = np.tensordot(q / q.sum(), matrices, 1)
        return value, margins, np.concatenate([pull @ w, pull.T @ u])

    def slope(s, z):
        step = parts(z)[2]
        return step / (step @ step)

    first = np.concatenate([start[0], start[1, :2]])
    end = solve_ivp(slope, (0, 1e3), first, method="LSODA", rtol=1e-8, atol=1e-10).y[:, -1]
    margin = parts(end)[1].min() / np.linalg.norm(end[:8]) / np.linalg.norm(end[8:])
    assert ends.margin[0, 0, 0, 1, -1] == pytest.approx(margin, rel=1e-3)


def test_networks_reach_the_margin_from_below_and_a_power_tail_does_not(followed):
    setting, ends = followed
    assert ends.arrived.all()
    for x, y, margins, tails in zip(setting.x, setting.y, *ends.margin[..., -1], strict=True):
        best = np.array([largest_margin(x, y, k) for k in (1, 2, 8)])
        assert (margins <= best * (1 + 1e-6)).all()
        assert margins == pytest.approx(np.tile(best, (2, 1)), rel=0.06)
        assert (tails[:, 0] < 0.95 * best[0]).all()


def test_filters_that_are_not_used_stay_zero():
    starts = draw_starts(RNG, (3, 6), (1, 2), (1, 4, 6), 0.5)
    assert (starts[:, 0, :, 1] == 0).all()
    assert (starts[..., 0, :] == 0).all()
    assert (starts[:, :, 1, :, 1, 4:] == 0).all()
    assert (starts[:, 1, 1, :, 1, :4] != 0).all()


def test_the_judge_refutes_wrong_laws():
    claim = load("short-filters")(sets=8)
    rng = np.random.default_rng(5)
    margin = np.array([1.0, 1.05, 1.15, 1.25]) * rng.uniform(0.9, 1.1, (8, 1))
    reached = margin[:, None] * (1 - 0.01 * rng.random((8, 2, 4)))
    law = kit.law(margin=("seed taps", margin))
    observed = kit.seen(
        margin=("seed channels taps", reached),
        along=("seed channels taps reading", np.repeat(reached[..., None], 9, -1)),
        arrived=("seed channels taps", np.ones((8, 2, 4), bool)),
        power_tail=("seed channels taps", reached),
    )

    def fails(values):
        checks = claim.checks(law.replace(margin=("seed taps", values)), observed)
        return {check.id for check in checks if check.verdict.value == "fails"}

    assert not fails(margin)
    assert fails(margin * [1, 1, 1, 1.05]) == {"margin"}
    assert "margin" in fails(margin[:, [0, 0, 0, 0]])
    one_wrong = margin * np.where(np.arange(32).reshape(8, 4) == 9, 1.2, 1.0)
    assert "every_set" in fails(one_wrong)


def test_sets_that_no_weights_separate_are_out_of_range_and_taps_increase_from_one():
    claim = load("short-filters")(n=40, flipped=0.3, sets=3)
    assert not all(h.holds for h in claim.hypotheses(claim.setting(jax.random.key(0))))
    for taps in ((2, 3), (1, 8), (1, 3, 2)):
        with pytest.raises(UserError, match="taps must increase"):
            load("short-filters")(taps=taps)
