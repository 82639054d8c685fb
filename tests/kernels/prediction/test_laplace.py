"""Laplace's approximation against scikit-learn, generic optimizers, dense determinants and integrals by brute force."""

import itertools

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.stats
from scipy.special import expit, log_softmax, softmax
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from steepest.core.errors import UserError
from steepest.kernels import laplace
from steepest.kernels.prediction._class_probabilities import mean_logistic, softmax_probabilities

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
NEW = RNG.normal(size=(15, 3))
SIGNS = np.where(X[:, 0] + 0.5 * RNG.normal(size=60) > 0, 1.0, -1.0)
CLASSES = (X @ RNG.normal(size=(3, 4))).argmax(1)
RADIAL = ConstantKernel(4.0) * RBF(1.3)
K = RADIAL(X)
CROSS = RADIAL(NEW, X)
OWN = RADIAL.diag(NEW)


def test_labels_of_two_signs_are_those_of_scikit_learn():
    theirs = GaussianProcessClassifier(RADIAL, optimizer=None).fit(X, SIGNS)
    ours = laplace(K, SIGNS)
    assert ours.mode.converged and ours.mode.residual < 1e-12
    assert ours.log_marginal_likelihood == pytest.approx(
        theirs.log_marginal_likelihood_value_, rel=1e-12
    )
    mean, variance = theirs.latent_mean_and_variance(NEW)
    latent = ours.latent(CROSS, OWN)
    np.testing.assert_allclose(latent[0], mean, atol=1e-10)
    np.testing.assert_allclose(latent[1], variance, atol=1e-10)
    # theirs are sums of five error functions
    probability = ours.predict(CROSS, OWN)
    np.testing.assert_allclose(probability.mean, theirs.predict_proba(NEW)[:, 1], atol=3e-4)


def dense(kernel, y):
    """Mode, covariance and evidence for one-hot rows, by a generic optimizer and the dense Hessian."""
    n, classes = y.shape
    whole = np.kron(kernel, np.eye(classes))
    precision = np.linalg.inv(whole)

    def objective(f):
        return 0.5 * f @ precision @ f - (y * log_softmax(f.reshape(y.shape), axis=1)).sum()

    def slope(f):
        return precision @ f - (y - softmax(f.reshape(y.shape), axis=1)).ravel()

    def hessian(f):
        share = softmax(f.reshape(y.shape), axis=1)
        w = np.zeros_like(whole)
        for i, p in enumerate(share):
            block = slice(i * classes, (i + 1) * classes)
            w[block, block] = np.diag(p) - np.outer(p, p)
        return precision + w

    start = np.zeros(n * classes)
    climbed = scipy.optimize.minimize(
        objective, start, jac=slope, hess=hessian, method="trust-exact", options={"gtol": 1e-10}
    ).x
    evidence = -objective(climbed) - 0.5 * np.linalg.slogdet(whole @ hessian(climbed))[1]
    return climbed.reshape(y.shape), np.linalg.inv(hessian(climbed)), evidence, whole, precision


def test_classes_are_those_of_a_generic_optimizer_and_dense_determinants():
    """Latent values at new inputs by the Gaussian N(mode, inverse Hessian) and the conditional law of the prior."""
    kernel = K[:25, :25] + 0.1 * np.eye(25)
    y = np.eye(4)[CLASSES[:25]]
    mode, covariance, evidence, _, precision = dense(kernel, y)
    ours = laplace(kernel, CLASSES[:25], classes=4)
    assert ours.mode.converged and ours.mode.residual < 1e-11
    np.testing.assert_allclose(ours.mode.latent, mode, atol=1e-7)
    np.testing.assert_allclose(kernel @ ours.mode.coefficients, ours.mode.latent, atol=1e-12)
    assert ours.log_marginal_likelihood == pytest.approx(evidence, rel=1e-10)
    mean, spread = ours.latent(CROSS[:, :25], OWN)
    across = np.kron(CROSS[:, :25], np.eye(4)) @ precision
    np.testing.assert_allclose(mean.ravel(), across @ mode.ravel(), atol=1e-6)
    law = across @ (covariance - np.linalg.inv(precision)) @ across.T
    for i in range(15):
        block = slice(4 * i, 4 * i + 4)
        expected = OWN[i] * np.eye(4) + law[block, block]
        np.testing.assert_allclose(spread[i], expected, atol=1e-6)


def test_one_hot_rows_and_numbers_are_the_same():
    of_numbers = laplace(K, CLASSES)
    other = laplace(K, np.eye(4, dtype=int)[CLASSES])
    assert of_numbers.log_marginal_likelihood == other.log_marginal_likelihood
    for ours, theirs in zip(of_numbers.predict(CROSS, OWN), other.predict(CROSS, OWN), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_two_classes_are_two_signs_of_twice_the_kernel():
    """The difference of two latent functions has the kernel 2 K, and their sum is not observed."""
    signs = laplace(K, SIGNS)
    classes = laplace(K / 2, (SIGNS > 0).astype(int), classes=2)
    assert classes.log_marginal_likelihood == pytest.approx(signs.log_marginal_likelihood, rel=1e-9)
    gap = classes.mode.latent[:, 1] - classes.mode.latent[:, 0]
    np.testing.assert_allclose(gap, signs.mode.latent, atol=1e-8)
    ours = classes.predict(CROSS / 2, OWN / 2)
    theirs = signs.predict(CROSS, OWN)
    assert (np.abs(ours.mean[:, 1] - theirs.mean) <= 5 * ours.error[:, 1] + 1e-12).all()
    np.testing.assert_allclose(ours.lower[:, 1], theirs.lower, atol=5e-3)
    np.testing.assert_allclose(ours.upper[:, 1], theirs.upper, atol=5e-3)


@pytest.mark.parametrize(
    ("mean", "variance"),
    [(0, 1e-6), (1, 0.5), (-3, 1.0), (2, 1.0001), (5, 30), (-40, 1e4), (0.3, 1e6), (1, 0)],
)
def test_the_mean_of_the_logistic_function_is_the_integral(mean, variance):
    deviation = np.sqrt(variance)
    density = lambda z: expit(mean + deviation * z) * scipy.stats.norm.pdf(z)
    edge = -mean / deviation if deviation else 0.0
    width = min(1.0, 40 / deviation) if deviation else 1.0
    cuts = np.unique(np.clip(edge + width * np.linspace(-1, 1, 41), -12, 12))
    pieces = np.concatenate([[-12], cuts, [12]])
    expected = sum(
        scipy.integrate.quad(density, *pair, epsabs=1e-15)[0] for pair in itertools.pairwise(pieces)
    )
    integral = mean_logistic(np.array([float(mean)]), np.array([float(variance)]))
    assert integral[0] == pytest.approx(expected, abs=1e-12)


def test_the_mean_of_softmax_is_the_integral_within_its_error():
    """Of three classes the softmax is a function of two differences: a grid over the plane."""
    mean = np.array([0.3, -1.0, 0.8])
    root = np.array([[1.2, 0.0, 0.0], [0.5, 0.9, 0.0], [-0.3, 0.2, 2.0]])
    covariance = root @ root.T
    probabilities = softmax_probabilities(mean[None], covariance[None], 0.9)
    differences = np.array([[1, 0, -1], [0, 1, -1]])
    small = np.linalg.cholesky(differences @ covariance @ differences.T)
    z = np.linspace(-8, 8, 321)
    grid = np.stack(np.meshgrid(z, z, indexing="ij"), -1)
    weights = np.exp(-(grid**2).sum(-1) / 2)
    gaps = differences @ mean + grid @ small.T
    share = softmax(np.concatenate([gaps, np.zeros((*gaps.shape[:2], 1))], -1), axis=-1)
    expected = (weights[..., None] * share).sum((0, 1)) / weights.sum()
    assert (np.abs(probabilities.mean[0] - expected) < 5 * probabilities.error[0]).all()
    assert probabilities.error.max() < 1e-3 and probabilities.mean.sum() == pytest.approx(1)
    # the interval holds its share of the law of the probability
    for c in range(3):
        inside = (share[..., c] > probabilities.lower[0, c]) & (
            share[..., c] < probabilities.upper[0, c]
        )
        assert (weights * inside).sum() / weights.sum() == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_one_and_two_labels_tend_to_integration_by_brute_force(scale):
    """Each label's fourth derivative, at most 1/8, moves the log evidence by 1/8 of it times k(x, x)²."""
    kernel = scale * np.array([[1.0, 0.6], [0.6, 1.0]])
    cross = scale * np.array([[0.8, 0.2]])
    diagonal = scale * np.ones(1)
    labels = np.array([1, -1])
    z = np.linspace(-7, 7, 121)
    for n in (1, 2):
        joint = np.block([[kernel[:n, :n], cross[:, :n].T], [cross[:, :n], diagonal[:, None]]])
        root = np.linalg.cholesky(joint)
        grid = np.stack(np.meshgrid(*[z] * (n + 1), indexing="ij"), -1)
        f = grid @ root.T
        weights = np.exp(-(grid**2).sum(-1) / 2)
        weights = weights / weights.sum() * expit(f[..., :n] * labels[:n]).prod(-1)
        ours = laplace(kernel[:n, :n], labels[:n])
        assert ours.log_marginal_likelihood == pytest.approx(
            np.log(weights.sum()), abs=0.016 * n * scale**2
        )
        exact = (weights * expit(f[..., -1])).sum() / weights.sum()
        probabilities = ours.predict(cross[:, :n], diagonal)
        assert probabilities.mean[0] == pytest.approx(exact, abs=0.01 * scale**2)
        assert probabilities.lower[0] < exact < probabilities.upper[0]


def test_a_new_input_that_is_independent_of_all_has_the_prior():
    probabilities = laplace(K, SIGNS).predict(np.zeros((1, 60)), np.array([4.0]), 0.5)
    assert probabilities.mean[0] == pytest.approx(0.5, abs=1e-15)
    assert probabilities.upper[0] == pytest.approx(expit(2 * scipy.stats.norm.ppf(0.75)))
    several = laplace(K, CLASSES).predict(np.zeros((1, 60)), np.array([4.0]))
    np.testing.assert_allclose(several.mean, 0.25, atol=5 * several.error.max())


@pytest.mark.parametrize("scale", [1e-6, 1e4, 1e8])
@pytest.mark.parametrize("labels", [SIGNS, CLASSES], ids=["signs", "classes"])
def test_kernels_of_any_size_with_equal_inputs_converge(scale, labels):
    """Far from the quadratic region Newton's steps are halved; rows that are the same do no harm."""
    twice = np.r_[0:60, 0:5]
    posterior = laplace(scale * K[np.ix_(twice, twice)], labels[twice])
    assert posterior.mode.converged and np.isfinite(posterior.log_marginal_likelihood)
    mean = posterior.predict(scale * CROSS[:, twice], scale * OWN).mean
    assert np.isfinite(mean).all() and (mean >= 0).all() and (mean <= 1).all()


@pytest.mark.parametrize(
    ("gram", "labels", "options"),
    [
        (np.eye(3), np.ones(2), {}),
        (np.eye(3), np.ones((3, 1, 1)), {}),
        (np.eye(3), np.array([0, 1, 1]), {}),
        (np.eye(3), np.zeros(3), {}),
        (np.eye(3), np.array([0.5, 1.0, 2.0]), {}),
        (np.eye(3), np.array([-1, 0, 1]), {}),
        (np.eye(3), np.array([0, 1, 3]), {}),
        (np.eye(3), np.array([0, 1, 3]), {"classes": 3}),
        (np.eye(3), np.array([0, 1, 1]), {"classes": 1}),
        (np.eye(3), np.array([-1, 1, 1]), {"classes": 2}),
        (np.eye(3), np.array([0, np.nan, 1]), {}),
        (np.eye(3), np.array([0, 1, 1j]), {}),
        (np.eye(3), np.array(["cat", "dog", "cat"]), {}),
        (np.eye(3), np.ones((3, 2)), {}),
        (np.eye(3), np.ones((3, 1)), {}),
        (np.eye(3), np.eye(3), {"classes": 4}),
        (np.eye(3) * 1j, np.ones(3), {}),
        (np.full((3, 3), np.nan), np.ones(3), {}),
        (np.ones((3, 2)), np.ones(3), {}),
        (np.zeros((0, 0)), np.ones(0), {}),
        (-9 * np.eye(3), np.array([-1, 1, 1]), {}),
        (np.array([[1.0, 0.5], [0.1, 1.0]]), np.array([-1, 1]), {}),
        ([[1.0], [2.0, 3.0]], np.array([-1, 1]), {}),
    ],
)
def test_bad_inputs_are_refused(gram, labels, options):
    with pytest.raises(UserError):
        laplace(gram, labels, **options)


@pytest.mark.parametrize(
    "arguments",
    [
        (CROSS[:, :5], OWN),
        (CROSS, OWN[:3]),
        (CROSS, OWN[:, None]),
        (CROSS * np.nan, OWN),
        (CROSS * 1j, OWN),
        (CROSS, OWN, 1.0),
        (CROSS, OWN, 0.0),
        (CROSS, OWN, "most"),
    ],
)
def test_bad_new_inputs_are_refused(arguments):
    with pytest.raises(UserError):
        laplace(K, SIGNS).predict(*arguments)


def test_all_labels_of_one_sign_and_the_missing_class_that_is_meant():
    assert laplace(np.eye(3), np.ones(3)).classes is None
    assert laplace(np.eye(3), np.array([0, 1, 3]), classes=5).mode.latent.shape == (3, 5)
