"""Ridge and Gaussian processes against scikit-learn and against ridge on explicit features."""

import numpy as np
import pytest
import scipy.stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge as LinearRidge

from steepest.core.errors import UserError
from steepest.kernels._gram import gram
from steepest.kernels.prediction._regression import gaussian_process, kernel_ridge
from steepest.kernels.prediction._solve import solve
from steepest.kernels.tiled._compute import tiled_gram
from steepest.nn.networks import mlp

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4))
NEW = RNG.standard_normal((15, 4))
Y = np.sin(X @ RNG.standard_normal((4, 2))) + 0.1 * RNG.standard_normal((60, 2))
LIMIT = mlp((4, 10, 1), "relu", parameterized="ntk", c_w=2.0, bias=False).limit()
NOISE = 0.05


@pytest.mark.parametrize("columns", [0, slice(None)])
def test_ridge_is_that_of_scikit_learn(columns):
    y = Y[:, columns]
    kernel = gram(LIMIT, X).ntk
    cross = gram(LIMIT, NEW, X).ntk
    wanted = KernelRidge(alpha=0.3, kernel="precomputed").fit(kernel, y).predict(cross)
    np.testing.assert_allclose(
        kernel_ridge(kernel, y, 0.3).predict(cross), wanted, rtol=0, atol=1e-10
    )


def test_ridge_is_that_on_explicit_features():
    """The kernel Φ Φᵀ of 20 features: f = K (K + λ)⁻¹ y is Φ w with the ridge regression's w."""
    features = lambda x: np.tanh(x @ np.random.default_rng(5).standard_normal((4, 20)))
    kernel = features(X) @ features(X).T
    cross = features(NEW) @ features(X).T
    wanted = LinearRidge(alpha=0.3, fit_intercept=False, solver="svd").fit(features(X), Y)
    fitted = kernel_ridge(kernel, Y, 0.3)
    np.testing.assert_allclose(
        fitted.predict(cross), wanted.predict(features(NEW)), rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(
        fitted.predict(kernel), wanted.predict(features(X)), rtol=0, atol=1e-10
    )
    weights = features(X).T @ fitted.solution.coefficients
    np.testing.assert_allclose(weights.T, wanted.coef_, rtol=0, atol=1e-10)


def test_without_regularization_it_interpolates():
    kernel = gram(LIMIT, X).ntk
    np.testing.assert_allclose(kernel_ridge(kernel, Y, 0.0).predict(kernel), Y, rtol=0, atol=1e-10)


@pytest.mark.parametrize("columns", [0, slice(None)])
def test_the_posterior_is_that_of_scikit_learn(columns):
    y = Y[:, columns]
    rbf = RBF(1.3)
    theirs = GaussianProcessRegressor(rbf, alpha=NOISE, optimizer=None).fit(X, y)
    ours = gaussian_process(rbf(X), y, NOISE)
    mean, covariance = theirs.predict(NEW, return_cov=True)
    covariance = covariance[..., 0] if covariance.ndim == 3 else covariance
    np.testing.assert_allclose(ours.mean(rbf(NEW, X)), mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        ours.covariance(rbf(NEW, X), rbf(NEW)), covariance, rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(
        ours.variance(rbf(NEW, X), rbf.diag(NEW)), np.diagonal(covariance), rtol=0, atol=1e-10
    )
    assert ours.log_likelihood.sum() == pytest.approx(
        theirs.log_marginal_likelihood_value_, rel=1e-10
    )


def test_the_posterior_is_the_conditional_of_the_joint_gaussian():
    """By the precision matrix of training and new values together: no formula in common."""
    joint = gram(LIMIT, np.concatenate([X, NEW])).nngp + np.diag([NOISE] * 60 + [0] * 15)
    precision = np.linalg.inv(joint)
    covariance = np.linalg.inv(precision[60:, 60:])
    mean = -covariance @ precision[60:, :60] @ Y
    posterior = gaussian_process(gram(LIMIT, X).nngp, Y, NOISE)
    cross = gram(LIMIT, NEW, X).nngp
    np.testing.assert_allclose(posterior.mean(cross), mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        posterior.covariance(cross, gram(LIMIT, NEW).nngp), covariance, rtol=0, atol=1e-10
    )
    density = scipy.stats.multivariate_normal(np.zeros(60), joint[:60, :60])
    np.testing.assert_allclose(posterior.log_likelihood, density.logpdf(Y.T), rtol=1e-10)


def test_the_mean_of_the_posterior_is_ridge_and_variances_shrink_to_the_noise():
    kernel = gram(LIMIT, X).nngp
    posterior = gaussian_process(kernel, Y, NOISE)
    np.testing.assert_allclose(
        posterior.mean(kernel), kernel_ridge(kernel, Y, NOISE).predict(kernel), atol=1e-12
    )
    variance = posterior.variance(kernel, np.diagonal(kernel))
    assert (variance > 0).all() and (variance < NOISE).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tiles_on_disk_give_the_same(tmp_path, dtype):
    x = X.astype(dtype)
    new = NEW.astype(dtype)
    tiles = tiled_gram(LIMIT, x, tmp_path / "a", tile=25)
    across = tiled_gram(LIMIT, new, tmp_path / "b", x, tile=25)
    kernel = tiles.nngp.toarray()
    cross = across.nngp.toarray()
    test = gram(LIMIT, new).nngp
    here = gaussian_process(kernel, Y, NOISE)
    there = gaussian_process(tiles.nngp, Y, NOISE, tolerance=1e-10)
    assert there.log_likelihood is None and there.solution.method == "cg"
    np.testing.assert_allclose(there.mean(across.nngp), here.mean(cross), atol=1e-8)
    np.testing.assert_allclose(
        there.covariance(cross, test), here.covariance(cross, test), atol=1e-6
    )
    fitted = kernel_ridge(tiles.ntk, Y, 0.3).predict(across.ntk)
    np.testing.assert_allclose(
        fitted, kernel_ridge(tiles.ntk.toarray(), Y, 0.3).predict(across.ntk.toarray()), atol=1e-6
    )


def test_mistakes():
    posterior = gaussian_process(np.eye(3), np.ones(3), NOISE)
    with pytest.raises(UserError, match=r"shape \(m, 3\), got \(3, 2\)"):
        posterior.mean(np.ones((3, 2)))
    with pytest.raises(UserError, match=r"k\(x, x\) of 2 new inputs"):
        posterior.variance(np.ones((2, 3)), np.ones((2, 2)))
    with pytest.raises(UserError, match="kernels of 2 new inputs"):
        posterior.covariance(np.ones((2, 3)), np.ones(2))
    with pytest.raises(UserError, match="inputs 0 and 1 are the same"):
        gaussian_process(np.ones((2, 2)), np.array([1.0, 2.0]), 0.0)
    with pytest.raises(UserError, match="inputs 0 and 1 are the same"):
        kernel_ridge(np.ones((2, 2)), np.array([1.0, 2.0]), 0.0)


def test_noise_of_each_example_is_the_posterior_of_scipy():
    rng = np.random.default_rng(3)
    phi, y, noise = rng.normal(size=(6, 9)), rng.normal(size=(6, 2)), rng.uniform(0.1, 2.0, 6)
    gram = phi @ phi.T
    posterior = gaussian_process(gram, y, noise)
    inverse = np.linalg.inv(gram + np.diag(noise))
    cross = rng.normal(size=(3, 9)) @ phi.T
    np.testing.assert_allclose(posterior.mean(cross), cross @ inverse @ y, atol=1e-10)
    expected = 200.0 - np.diag(cross @ inverse @ cross.T)
    np.testing.assert_allclose(posterior.variance(cross, np.full(3, 200.0)), expected, atol=1e-9)
    for column in range(2):
        law = scipy.stats.multivariate_normal(np.zeros(6), gram + np.diag(noise))
        assert posterior.log_likelihood[column] == pytest.approx(law.logpdf(y[:, column]))


@pytest.mark.parametrize(
    ("y", "noise"),
    [
        (np.ones((4, 3)), np.array([0.1, 1.0, 2.0])),
        (np.ones(4), np.array([0.1, 1.0, 2.0, -1.0])),
        (np.ones(4), np.full(4, np.nan)),
        (np.ones(4), "loud"),
        (np.ones(4) * 1j, 0.1),
    ],
)
def test_other_noise_and_complex_targets_are_refused(y, noise):
    with pytest.raises(UserError):
        gaussian_process(np.eye(4), y, noise)


def test_noise_of_each_example_needs_a_factor():
    with pytest.raises(UserError):
        solve(np.eye(4), np.ones(4), np.ones(4), method="cg")


NOISES = {
    "of each output": np.array([[0.1, 0.4, 0.1]]),
    "of each input and output": np.random.default_rng(6).choice([0.1, 0.4], (20, 1)) * [1, 1, 3],
    "of one output": np.full((1, 1), 0.2),
}


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_noise_of_outputs_is_the_run_of_each_column(noise):
    columns = noise.shape[1]
    kernel = RBF(1.3)(X[:20])
    cross = RBF(1.3)(NEW, X[:20])
    test = RBF(1.3)(NEW)
    y = np.random.default_rng(7).normal(size=(20, columns))
    whole = gaussian_process(kernel, y, noise)
    assert len(whole.parts) == len({column.tobytes() for column in np.ascontiguousarray(noise.T)})
    assert whole.solution.converged and whole.solution.residual < 1e-12
    mean = whole.mean(cross)
    variance = whole.variance(cross, np.ones(15))
    covariance = whole.covariance(cross, test)
    assert mean.shape == variance.shape == (15, columns) and covariance.shape == (15, 15, columns)
    for k in range(columns):
        noise_of_column = noise[0, k] if len(noise) == 1 else noise[:, k]
        of_column = gaussian_process(kernel, y[:, k], noise_of_column)
        np.testing.assert_allclose(mean[:, k], of_column.mean(cross), atol=1e-12)
        np.testing.assert_allclose(
            variance[:, k], of_column.variance(cross, np.ones(15)), atol=1e-12
        )
        np.testing.assert_allclose(
            covariance[..., k], of_column.covariance(cross, test), atol=1e-12
        )
        assert whole.log_likelihood[k] == pytest.approx(float(of_column.log_likelihood), rel=1e-12)
        law = scipy.stats.multivariate_normal(
            np.zeros(20), kernel + np.diag(np.broadcast_to(noise_of_column, 20))
        )
        assert whole.log_likelihood[k] == pytest.approx(law.logpdf(y[:, k]))


def test_noise_of_outputs_on_tiles(tmp_path):
    tiles = tiled_gram(LIMIT, X, tmp_path, tile=25).nngp
    noise = np.array([[0.1, 0.3]])
    on_disk = gaussian_process(tiles, Y, noise, tolerance=1e-10)
    in_memory = gaussian_process(tiles.toarray(), Y, noise)
    cross = gram(LIMIT, NEW, X).nngp
    assert on_disk.log_likelihood is None and on_disk.solution.method == "cg"
    np.testing.assert_allclose(on_disk.mean(cross), in_memory.mean(cross), atol=1e-8)
    diagonal = np.diagonal(gram(LIMIT, NEW).nngp)
    np.testing.assert_allclose(
        on_disk.variance(cross, diagonal), in_memory.variance(cross, diagonal), atol=1e-6
    )
    with pytest.raises(UserError, match="array in memory"):
        gaussian_process(tiles, Y, np.ones((60, 2)))


@pytest.mark.parametrize(
    ("y", "noise"),
    [
        (np.ones((4, 3)), np.ones((3, 4))),
        (np.ones((4, 3)), np.ones((4, 1))),
        (np.ones((4, 3)), np.ones((1, 2))),
        (np.ones((4, 3)), np.ones(3)),
        (np.ones((4, 3)), np.ones((4, 3, 1))),
        (np.ones((4, 3)), -np.ones((1, 3))),
        (np.ones((4, 3)), np.full((1, 3), np.nan)),
        (np.ones((4, 3)), np.ones((1, 3)) * 1j),
        (np.ones(4), np.ones((4, 1))),
        (np.full((4, 3), np.nan), np.ones((1, 3))),
        (np.ones((4, 3)), [[1.0], [2.0, 3.0]]),
    ],
)
def test_noise_of_other_shapes_is_refused(y, noise):
    with pytest.raises(UserError):
        gaussian_process(np.eye(4), y, noise)
