"""Eigenpairs, traces and spectral densities of operators against dense matrices.

Intervals are tested by their coverage over 200 fixed seeds: at 95 %, fewer than 90 % or more than 99 % hits have a
probability below 0.2 %. Unbiased means that the average over the seeds is within four of its standard errors.
"""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from steepest.core.errors import UserError
from steepest.linalg import spectral_density, squared_frobenius, top_eigenpairs, trace
from tests.oracles import random_symmetric

SEEDS = range(200)
UNKNOWN: dict[str, Any] = {"which": "larges"}
ORDER = {"largest": lambda e: -e, "smallest": lambda e: e, "magnitude": lambda e: -np.abs(e)}


def operator(A):
    return lambda vectors: vectors @ A


def start(p, seed=0, dtype: Any = np.float64):
    return np.random.default_rng(seed).standard_normal(p).astype(dtype)


def true_residuals(A, pairs):
    v = pairs.vectors.astype(float)
    return np.linalg.norm(v @ A - pairs.values[:, None] * v, axis=1)


# --------------------------------------------------------------------------------------------- eigenpairs


@pytest.mark.parametrize("which", ORDER)
@pytest.mark.parametrize(
    ("p", "count"), [(1, 1), (2, 1), (2, 2), (16, 5), (16, 16), (17, 3), (17, 17), (60, 1), (60, 7)]
)
def test_eigenpairs_are_the_dense_ones(p, count, which):
    A = random_symmetric(p, p)
    values, vectors = np.linalg.eigh(A)
    best = np.argsort(ORDER[which](values))[:count]
    found = top_eigenpairs(operator(A), start(p), count, which=which, tolerance=1e-9)
    np.testing.assert_allclose(found.values, values[best], atol=1e-10)
    np.testing.assert_allclose(np.abs(found.vectors @ vectors[:, best]), np.eye(count), atol=1e-6)
    np.testing.assert_allclose(found.vectors @ found.vectors.T, np.eye(count), atol=1e-12)
    np.testing.assert_allclose(found.residuals, true_residuals(A, found), atol=1e-13)
    assert found.converged.all()


def test_as_many_eigenpairs_as_there_are():
    A = random_symmetric(3, 60)
    found = top_eigenpairs(operator(A), start(60), 60)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(A)[::-1], atol=1e-12)


@pytest.mark.parametrize("count", [1, 3])
def test_a_multiple_eigenvalue_is_found_once_at_least(count):
    spectrum = np.r_[5, 5, 5, np.linspace(0, 4, 57)]
    A = random_symmetric(1, 60, spectrum)
    found = top_eigenpairs(operator(A), start(60), count)
    assert found.values[0] == pytest.approx(5, rel=1e-6)
    assert (np.abs(found.values[:, None] - spectrum).min(1) <= found.residuals + 1e-12).all()
    np.testing.assert_allclose(found.vectors @ found.vectors.T, np.eye(count), atol=1e-12)


@pytest.mark.parametrize("which", ORDER)
@pytest.mark.parametrize("spectrum", [np.zeros(40), 3 * np.ones(40), np.r_[7, np.zeros(39)]])
def test_krylov_spaces_that_end_early(spectrum, which):
    """After the invariant subspace a random vector goes on, so that all copies are found."""
    found = top_eigenpairs(operator(random_symmetric(0, 40, spectrum)), start(40), 3, which=which)
    wanted = spectrum[np.argsort(ORDER[which](spectrum))][:3]
    np.testing.assert_allclose(found.values, wanted, atol=1e-13)
    assert found.converged.all()
    assert found.products <= 23


@pytest.mark.parametrize(
    "given", [np.eye(40)[0], np.zeros(40), np.arange(40)], ids=["wrong", "zero", "integer"]
)
def test_a_bad_start_finds_the_top(given):
    found = top_eigenpairs(operator(np.diag(np.arange(40.0))), given)
    assert found.values[0] == pytest.approx(39, abs=float(found.residuals[0]) + 1e-12)


@pytest.mark.parametrize("seed", [0, 2])
def test_a_start_drawn_by_the_caller_is_not_drawn_again(seed):
    # an invariant space ends at once; the direction that continues must not be the start, whatever seed that had
    for size in (2, 3):
        start = np.random.default_rng(seed).standard_normal(size)
        assert top_eigenpairs(lambda v: v / 2, start, size).values == pytest.approx([0.5] * size)


def test_an_eigenvalue_of_zero_converges():
    """The residual of the lowest eigenvalue of a singular matrix can fall to rounding, not to a share of zero."""
    A = np.diag(np.linspace(0, 1, 60))
    found = top_eigenpairs(operator(A), start(60), which="smallest", limit=1000)
    assert found.values[0] == pytest.approx(0, abs=1e-13)
    assert found.converged.all()
    assert found.products < 200


def test_a_warm_start_saves_products():
    """After a change by one part in a thousand, over ten matrices."""
    p = 200
    saved = []
    for seed in range(10):
        A = random_symmetric(seed, p, np.linspace(0, 1, p))
        changed = A + 1e-3 * random_symmetric(100 + seed, p) / np.sqrt(2 * p)
        last = top_eigenpairs(operator(A), start(p, seed), 2)
        cold, warm = (
            top_eigenpairs(operator(changed), v, 2).products
            for v in (start(p, 50 + seed), last.vectors.sum(0))
        )
        saved.append(cold - warm)
    assert np.mean(saved) > 4 * stats.sem(saved)


def test_products_are_counted_and_limited():
    A = np.diag(np.linspace(0, 1, 400))
    seen = []

    def counted(vectors):
        seen.append(np.atleast_2d(vectors).shape[0])
        return vectors @ A

    for limit in (6, 10, 30, 60):
        seen.clear()
        found = top_eigenpairs(counted, start(400), 3, limit=limit)
        assert found.products == sum(seen) == limit


def test_a_low_limit_returns_what_was_found():
    """All that was asked for, unconverged, with true residuals; more products bring the residuals down."""
    A = np.diag(np.linspace(0, 1, 400))
    found = [top_eigenpairs(operator(A), start(400), 3, limit=limit) for limit in (10, 20, 40, 80)]
    for pairs in found[:3]:
        assert pairs.values.shape == (3,)
        assert not pairs.converged.all()
        np.testing.assert_allclose(pairs.residuals, true_residuals(A, pairs), rtol=1e-10)
    assert (np.diff([pairs.residuals.max() for pairs in found]) < 0).all()
    assert (
        found[1].values[0] > 0.98
    )  # a Ritz value of seventeen products, not a Rayleigh quotient of the start


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64], ids=["start in single", "start in double"]
)
def test_operators_in_single_precision(dtype):
    A = random_symmetric(5, 60).astype(np.float32)
    found = top_eigenpairs(lambda v: v.astype(np.float32) @ A, start(60, dtype=dtype), 3)
    assert found.vectors.dtype == dtype
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(A.astype(float))[:-4:-1], rtol=1e-5)
    np.testing.assert_allclose(found.residuals, true_residuals(A.astype(float), found), atol=1e-5)
    assert found.converged.all()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: top_eigenpairs(operator(np.eye(3)), np.ones(3), **UNKNOWN),
            "did you mean 'largest'",
        ),
        (
            lambda: top_eigenpairs(operator(np.eye(3)), np.ones(3), 4),
            "has 1 to 3 eigenpairs, got 4",
        ),
        (
            lambda: top_eigenpairs(operator(np.eye(3)), np.ones(3), 0),
            "has 1 to 3 eigenpairs, got 0",
        ),
        (lambda: top_eigenpairs(operator(np.nan * np.eye(3)), np.ones(3)), "not finite"),
        (
            lambda: trace(operator(np.eye(3)), 3, np.random.default_rng(), probes=1),
            "two probes, got 1",
        ),
        (
            lambda: squared_frobenius(operator(np.eye(3)), 3, np.random.default_rng(), probes=1),
            "two probes, got 1",
        ),
        (
            lambda: spectral_density(operator(np.eye(3)), 3, np.random.default_rng(), probes=1),
            "two probes.*got 1",
        ),
        (
            lambda: spectral_density(operator(np.eye(3)), 3, np.random.default_rng(), steps=0),
            "one step.*and 0",
        ),
        (
            lambda: spectral_density(
                operator(np.inf * np.ones((3, 3))), 3, np.random.default_rng()
            ),
            "not finite",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    with np.errstate(invalid="ignore"), pytest.raises(UserError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


# ----------------------------------------------------------------------------------------- traces and norms

P = 100
OUTLIERS = random_symmetric(1, P, np.r_[50, 30, 20, start(P - 3)])
POSITIVE = random_symmetric(2, P, np.r_[50, 30, 20, np.random.default_rng(0).uniform(size=P - 3)])
BULK = random_symmetric(3, P, start(P))
MATRICES = pytest.mark.parametrize(
    "A", [OUTLIERS, POSITIVE, BULK], ids=["outliers", "positive", "bulk"]
)


def hits(estimate, truth):
    """Share of the seeds whose 95 % interval holds the truth, after a test that the estimates are unbiased."""
    found = [estimate(np.random.default_rng(seed)) for seed in SEEDS]
    values = np.array([each.value for each in found])
    assert abs(values.mean() - truth) <= 4 * stats.sem(values)
    low, high = np.array([each.interval() for each in found]).T
    return np.mean((low <= truth) & (truth <= high))


@MATRICES
@pytest.mark.parametrize("sketch", [0, 3, 10])
def test_intervals_of_the_trace_cover(A, sketch):
    assert 0.90 <= hits(lambda rng: trace(operator(A), P, rng, sketch=sketch), np.trace(A)) <= 0.99


@MATRICES
def test_intervals_of_the_squared_norm_cover(A):
    assert 0.90 <= hits(lambda rng: squared_frobenius(operator(A), P, rng), (A**2).sum()) <= 0.99


def test_a_sketch_as_large_as_the_rank_is_exact():
    A = random_symmetric(4, P, np.r_[5, 4, -3, 2, 1, np.zeros(P - 5)])
    found = trace(operator(A), P, np.random.default_rng(0), probes=2, sketch=5)
    assert found.value == pytest.approx(9, rel=1e-12)
    assert found.standard_error <= 1e-12
    assert found.products == 12
    everything = trace(operator(BULK), P, np.random.default_rng(0), probes=2, sketch=1000)
    assert everything.value == pytest.approx(np.trace(BULK), rel=1e-10)
    assert everything.products == 2 * P + 2


def test_a_sketch_of_the_outliers_lowers_the_error():
    plain, sketched = (
        np.mean(
            [
                trace(operator(OUTLIERS), P, np.random.default_rng(s), sketch=k).standard_error
                for s in range(20)
            ]
        )
        for k in (0, 6)
    )
    assert sketched < plain / 2


def test_random_signs_are_exact_on_a_diagonal():
    A = np.diag(np.arange(-20.0, 31.0))
    found = trace(operator(A), 51, np.random.default_rng(0), sketch=0)
    assert (found.value, found.standard_error) == (np.trace(A), 0)
    found = squared_frobenius(operator(A), 51, np.random.default_rng(0))
    assert (found.value, found.standard_error) == ((A**2).sum(), 0)


def test_many_weights_in_single_precision():
    """Sums over p k entries in float32 would err by 4e-5 here, and the standard error would be 1e-14."""
    p = 200_000
    u = start(p, dtype=np.float32)
    found = trace(
        lambda v: (v.astype(np.float32) @ u)[:, None] * u, p, np.random.default_rng(1), probes=2
    )
    assert found.value == pytest.approx(float(u.astype(float) @ u), rel=1e-5)


# -------------------------------------------------------------------------------------- spectral densities


def marchenko_pastur(n=600, p=300):
    X = np.random.default_rng(3).standard_normal((n, p))
    return np.linalg.eigvalsh(X.T @ X / n)


@pytest.mark.parametrize(("probes", "steps"), [(2, 60), (10, 20), (40, 20), (40, 60)])
@pytest.mark.parametrize(
    ("spectrum", "heaviest"),
    [(np.linspace(-1, 2, 300), np.pi / 2), (marchenko_pastur(), 2)],
    ids=["uniform", "Marchenko–Pastur"],
)
def test_the_distribution_of_eigenvalues(spectrum, heaviest, probes, steps):
    """Kolmogorov's distance is at most resolution + noise.

    Between a measure and its Gauss quadrature with m nodes it is at most the heaviest weight (Chebyshev, Markov,
    Stieltjes), π w(x) √((x − a)(b − x)) / m for a density w on [a, b]: π/2m if it is uniform, 2/m if it is Marchenko
    and Pastur's. A probe's share of weight below x is Beta distributed with variance 2F(1 − F)/(p + 2), so that the
    noise is a Brownian bridge of scale √(2/(p probes)); its maximum exceeds the quantile in one of 10 000 draws.
    """
    p = len(spectrum)
    found = spectral_density(
        operator(random_symmetric(1, p, spectrum)),
        p,
        np.random.default_rng(0),
        probes=probes,
        steps=steps,
    )
    bound = heaviest / steps + stats.kstwobign.ppf(1 - 1e-4) * np.sqrt(2 / (p * probes))
    x = np.linspace(spectrum[0] - 0.1, spectrum[-1] + 0.1, 3001)
    distance = lambda e: np.abs(
        found.share_below(x)[0] - np.searchsorted(np.sort(e), x, side="right") / p
    ).max()
    assert distance(spectrum) <= bound
    assert distance(spectrum + 0.45) > bound


@pytest.mark.parametrize("power", [1, 2, 3, 4])
def test_intervals_of_the_moments_cover(power):
    p = 20
    spectrum = np.linspace(-1, 2, 20)
    A = random_symmetric(0, p, spectrum)
    estimate = lambda rng: spectral_density(operator(A), p, rng, probes=20, steps=4).moment(power)
    assert 0.90 <= hits(estimate, (spectrum**power).mean()) <= 0.99


def test_few_probes_of_a_dominated_spectrum_cover_less_than_they_say():
    """What ``ProbeEstimate.interval`` warns of: samples of λ_max⁴ (v·z)² are skewed."""
    p = 30
    spectrum = np.r_[np.linspace(0, 1, 28), 5, 10]
    A = random_symmetric(1, p, spectrum)
    few, more = (
        hits(
            lambda rng, n=n: spectral_density(operator(A), p, rng, probes=n, steps=4).moment(4),
            (spectrum**4).mean(),
        )
        for n in (10, 30)
    )
    assert 0.80 <= few < 0.90 <= more


def test_errors_of_shares_cover():
    """With as many steps as eigenvalues nothing is lost to the resolution, so the error is that of the probes."""
    p = 20
    spectrum = np.linspace(-1, 2, 20)
    A = random_symmetric(0, p, spectrum)
    x = np.array([-0.5, 0.5, 1.5])
    truth = (spectrum[:, None] <= x).mean(0)
    found = [
        spectral_density(operator(A), p, np.random.default_rng(s), probes=20, steps=p).share_below(
            x
        )
        for s in SEEDS
    ]
    share, error = np.array(found).transpose(1, 0, 2)
    covered = (np.abs(share - truth) <= stats.t.ppf(0.975, 19) * error).mean(0)
    assert ((covered >= 0.90) & (covered <= 0.99)).all()


@pytest.mark.parametrize("steps", [40, 60])
def test_as_many_steps_as_eigenvalues_find_them(steps):
    """Each probe then has the nodes λ_i and, for its unit vector z, the weights (v_i·z)²."""
    A = random_symmetric(0, 40)
    values, vectors = np.linalg.eigh(A)
    found = spectral_density(operator(A), 40, np.random.default_rng(0), probes=3, steps=steps)
    z = np.random.default_rng(0).standard_normal((3, 40))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    np.testing.assert_allclose(found.nodes, np.broadcast_to(values, (3, 40)), atol=1e-12)
    np.testing.assert_allclose(found.weights, (z @ vectors) ** 2, atol=1e-12)
    assert found.products == 120


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "spectrum",
    [np.zeros(40), 2.3 * np.ones(40), np.r_[7, np.zeros(39)], np.r_[7 * np.ones(10), -np.ones(30)]],
    ids=["zero", "identity", "rank one", "two values"],
)
def test_weights_lie_on_the_eigenvalues_when_krylov_spaces_end(spectrum, dtype):
    A = random_symmetric(0, 40, spectrum).astype(dtype)
    found = spectral_density(lambda v: v.astype(dtype) @ A, 40, np.random.default_rng(0), probes=5)
    assert np.isfinite(found.nodes).all()
    far = np.abs(found.nodes[:, :, None] - spectrum).min(2) > 30 * np.finfo(dtype).eps
    assert found.weights[far].sum() <= 1e-12
    np.testing.assert_allclose(found.weights.sum(1), 1, rtol=1e-12)


def test_weights_of_every_probe_sum_to_one():
    found = spectral_density(operator(BULK), P, np.random.default_rng(0), steps=30)
    np.testing.assert_allclose(found.weights.sum(1), 1, rtol=1e-12)
    assert (found.weights >= 0).all()
    assert found.moment(0).value == pytest.approx(1, rel=1e-12)


def test_the_smoothed_density_integrates_to_one():
    """Over an axis that leaves out less than 1e-12 of the bumps; its mean is the first moment."""
    found = spectral_density(operator(BULK), P, np.random.default_rng(0), steps=30)
    x = np.linspace(found.nodes.min() - 2, found.nodes.max() + 2, 2000)
    density = found.smoothed(x, 0.25)
    assert np.trapezoid(density, x) == pytest.approx(1, abs=1e-10)
    assert np.trapezoid(x * density, x) == pytest.approx(found.moment(1).value, abs=1e-10)


def test_an_operator_may_return_what_must_not_be_changed():
    def frozen(vectors):
        image = vectors @ BULK
        image.flags.writeable = False
        return image

    rng = np.random.default_rng
    assert spectral_density(frozen, P, rng(0), steps=5).moment(1) == spectral_density(
        operator(BULK), P, rng(0), steps=5
    ).moment(1)
