"""Estimates of the risk against refits and their definitions, the kernel and errors against slow ways."""

import numpy as np
import pytest

from steepest.claims.training.cross_validation import experiment, theory
from steepest.claims.training.cross_validation.claim import partition
from steepest.claims.training.cross_validation.experiment import World
from steepest.kernels import gram
from steepest.nn.networks import mlp

RNG = np.random.default_rng(0)
X = experiment.of_length_one(RNG.standard_normal((40, 6)))
LABELS = RNG.standard_normal((40, 2))
WORLD = World(experiment.tangent(X, X, 1), LABELS)
RIDGE = 0.02
TRAIN = np.arange(0, 40, 3)
NEW = np.setdiff1d(np.arange(40), TRAIN)


def of_training():
    return WORLD.gram[np.ix_(TRAIN, TRAIN)], LABELS[TRAIN]


def estimates(kernel, y, ridge=RIDGE):
    """Return estimates of a single training set."""
    return theory.estimates(kernel[None], y[None], ridge)


def test_estimates_are_means_over_sets():
    """Sets are not mixed: two of them have the mean of what each has."""
    kernels = np.array([WORLD.gram[:9, :9], WORLD.gram[9:18, 9:18]])
    labels = np.array([LABELS[:9], LABELS[9:18]])
    apart = [np.array(estimates(kernel, y)) for kernel, y in zip(kernels, labels, strict=True)]
    np.testing.assert_allclose(theory.estimates(kernels, labels, RIDGE), np.mean(apart, 0))


def test_leaving_out_by_refits():
    kernel, y = of_training()
    n = len(y)
    squares = []
    for out in range(n):
        others = np.delete(np.arange(n), out)
        penalized = kernel[np.ix_(others, others)] + n * RIDGE * np.eye(n - 1)
        guess = kernel[out, others] @ np.linalg.solve(penalized, y[others])
        squares.append(((guess - y[out]) ** 2).sum())
    assert estimates(kernel, y).left_out == pytest.approx(np.mean(squares))
    assert theory.folds(kernel, y, RIDGE, n) == pytest.approx(np.mean(squares))


def test_generalized_by_its_definition():
    """GCV is the square of training errors over (1 − tr H/n)², with H the matrix from labels to fits."""
    kernel, y = of_training()
    n = len(y)
    hat = kernel @ np.linalg.inv(kernel + n * RIDGE * np.eye(n))
    of_training_set = ((y - hat @ y) ** 2).sum(1).mean()
    wanted = of_training_set / (1 - np.trace(hat) / n) ** 2
    assert estimates(kernel, y).generalized == pytest.approx(wanted)


def test_labels_of_the_kernel_s_own_process_make_errors_as_expected():
    """With labels of the covariance K + nδI both numbers have a known mean: those of α² and of (α/A_ii)²."""
    kernel, _ = of_training()
    n = len(kernel)
    root = np.linalg.cholesky(kernel + n * RIDGE * np.eye(n))
    labels = root @ RNG.standard_normal((n, 100_000))
    of_labels = estimates(kernel, labels)
    assert of_labels.generalized == pytest.approx(of_labels.as_expected, rel=0.01)


def test_both_are_alike_where_all_examples_are():
    kernel = 0.3 + 0.7 * np.eye(9)
    y = RNG.standard_normal((9, 1))
    both = estimates(kernel, y, 1e-6)
    assert both.generalized == pytest.approx(both.left_out)


def of_linear_kernels(squared_lengths):
    """Return leave-one-out and GCV of linear kernels of Gaussian inputs, over the mean square of a label."""
    both = []
    for _ in range(40):
        x = RNG.standard_normal((80, 240)) * np.sqrt(RNG.choice(squared_lengths, (80, 1)))
        both.append(np.array(estimates(x @ x.T, x[:, :8], 1e-12)[:2]))
    return np.mean(both, 0) / 8


def test_on_gaussian_inputs_both_are_the_known_risk():
    """With p features and no ridge the risk for n < p examples is ‖β‖²(1 − n/p)."""
    np.testing.assert_allclose(of_linear_kernels((1.0,)), 1 - 79 / 240, rtol=0.04)


def test_inputs_of_two_lengths_make_gcv_low_by_a_harmonic_mean():
    """There v is ∝ r², and so is the squared error: the ratio is 1/(mean of r² times mean of 1/r²)."""
    left_out, generalized = of_linear_kernels((0.5, 1.5))
    assert generalized / left_out == pytest.approx(0.75, rel=0.03)


@pytest.mark.parametrize("depth", [1, 3])
def test_kernel_by_the_library(depth):
    x = X * X.shape[1] ** 0.5
    sizes = (X.shape[1], *[8] * depth, 1)
    limit = mlp(sizes, "relu", parameterized="ntk", c_w=2.0, bias=False).limit()
    wanted = gram(limit, x).ntk
    np.testing.assert_allclose(experiment.tangent(X, X, depth), wanted / wanted[0, 0], atol=1e-6)


def test_errors_one_by_one():
    kernel, y = of_training()
    penalty = len(TRAIN) * RIDGE
    inverse = np.linalg.inv(kernel + penalty * np.eye(len(TRAIN)))
    squares = []
    sureness = []
    for new in NEW:
        across = WORLD.gram[new, TRAIN]
        squares.append(((across @ inverse @ y - LABELS[new]) ** 2).sum())
        sureness.append(1 / (WORLD.gram[new, new] + penalty - across @ inverse @ across))
    pair = experiment.errors(WORLD, TRAIN, NEW, (0.5, RIDGE))[1]
    assert pair[0] == pytest.approx(np.mean(squares))
    weighted = np.mean(np.array(squares) * np.array(sureness) ** 2) / np.mean(sureness) ** 2
    assert pair[1] == pytest.approx(weighted)


def test_risks_are_the_first_errors():
    ridges = (1e-3, 0.5)
    risks = experiment.risks(WORLD, TRAIN, NEW, ridges)
    np.testing.assert_allclose(risks, experiment.errors(WORLD, TRAIN, NEW, ridges)[:, 0])


def test_errors_on_changed_inputs_use_their_kernel():
    same = experiment.errors(WORLD, TRAIN, NEW, (RIDGE,), WORLD.gram)
    np.testing.assert_allclose(same, experiment.errors(WORLD, TRAIN, NEW, (RIDGE,)))
    apart = experiment.errors(WORLD, TRAIN, NEW, (RIDGE,), np.zeros_like(WORLD.gram))
    assert apart[0, 0] == pytest.approx((LABELS[NEW] ** 2).sum(1).mean())


def test_gaussian_inputs_have_the_covariances():
    """The mean of Gram matrices is the trace on the diagonal, and labels have the mean square of those given."""
    drawn = [experiment.gaussian(RNG, WORLD) for _ in range(1200)]
    mean = np.mean([world.gram for world in drawn], 0)
    trace = np.trace(WORLD.gram) / 40
    np.testing.assert_allclose(mean, trace * np.eye(40), atol=0.08)
    squares = np.mean([world.labels**2 for world in drawn], (0, 1))
    np.testing.assert_allclose(squares, (LABELS**2).mean(0), rtol=0.05)


def test_gaussian_labels_are_the_same_function_of_features():
    """With as many examples as features labels are fitted exactly by those features, here of a lean kernel."""
    lean = World(X @ X.T, X @ RNG.standard_normal((6, 2)))
    world = experiment.gaussian(RNG, lean)
    fitted = experiment.errors(world, np.arange(20), np.arange(20, 40), (1e-12,))
    assert fitted[0, 0] < 1e-12


def test_images_are_moved_by_a_pixel_and_labels_have_no_mean():
    here, moved, labels = experiment.images(RNG, 50)
    assert here.shape == moved.shape == (50, 64)
    np.testing.assert_allclose(np.linalg.norm(here, axis=1), 1)
    np.testing.assert_allclose(labels.sum(1), 0, atol=1e-6)
    assert np.abs(here - moved).max() > 0.1


def test_partitions_test_on_others_than_they_train_on():
    order = np.array([RNG.permutation(100) for _ in range(3)])
    train, new = partition(order, 25)
    assert train.shape == (3, 4, 25)
    for seed in range(3):
        assert sorted(train[seed].ravel()) == list(range(100))
        for fitted, tested in zip(train[seed], new[seed], strict=True):
            assert sorted([*fitted, *tested]) == list(range(100))
