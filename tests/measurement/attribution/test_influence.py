"""Influence beside models that were fitted again without an example, in closed form and to the end of a descent."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement import attribute, gradient_features

COUNT = 40
TARGETS = 7


def ridge_fit(x, y, penalty):
    return np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y)


def logistic_fit(x, y, penalty):
    """Newton's iteration to the end; y is ±1."""
    w = np.zeros(x.shape[1])
    for _ in range(50):
        wrong = 1 / (1 + np.exp(y * (x @ w)))
        slope = penalty * w - x.T @ (y * wrong)
        hessian = (x.T * (wrong * (1 - wrong))) @ x + penalty * np.eye(len(w))
        w = w - np.linalg.solve(hessian, slope)
    return w


def regression(inputs, penalty):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(COUNT, inputs))
    other = rng.normal(size=(TARGETS, inputs))
    y = x[:, 0] + rng.normal(size=COUNT)
    return x, y, other, ridge_fit(x, y, penalty)


def features_of(w, x, y, **options):
    import jax

    with jax.enable_x64(True):
        weights = jnp.asarray(w)
    return gradient_features((lambda w, x: x @ w, weights), (x, y), dimension=None, **options)


# fewer features than examples, and more
@pytest.mark.parametrize(("inputs", "penalty"), [(6, 0.0), (6, 2.0), (60, 2.0)])
def test_of_ridge_regression_newtons_step_is_what_refits_give(inputs, penalty):
    x, y, other, w = regression(inputs, penalty)
    train = features_of(w, x, y, model_output="value")
    targets = features_of(w, other, np.zeros(TARGETS), model_output="value")
    influence = attribute(train, targets, method="newton", ridge=penalty)
    rows = np.arange(COUNT)
    expected = [other @ (w - ridge_fit(x[rows != i], y[rows != i], penalty)) for i in range(COUNT)]
    np.testing.assert_allclose(influence.scores, np.transpose(expected), atol=1e-9)


def test_residuals_without_an_example_are_over_one_less_its_leverage():
    x, y, _, w = regression(6, 0.0)
    train = features_of(w, x, y, model_output="value")
    influence = attribute(train, train, method="newton", ridge=0.0)
    leverages = np.diag(x @ np.linalg.inv(x.T @ x) @ x.T)
    without = y - x @ w + np.diag(influence.scores)
    np.testing.assert_allclose(without, (y - x @ w) / (1 - leverages), rtol=1e-9)


@pytest.mark.parametrize("inputs", [6, 60])
def test_trak_scores_are_the_formula(inputs):
    x, y, other, w = regression(inputs, 2.0)
    train = features_of(w, x, y, model_output="value")
    targets = features_of(w, other, np.zeros(TARGETS), model_output="value")
    influence = attribute(train, targets, method="trak", ridge=3.0)
    inverse = np.linalg.inv(x.T @ x + 3 * np.eye(inputs))
    np.testing.assert_allclose(influence.scores, (other @ inverse @ x.T) * (y - x @ w), atol=1e-10)


def logistic(penalty=1.0):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(4 * COUNT, 4))
    other = rng.normal(size=(TARGETS, 4))
    y = (x[:, 0] + rng.normal(size=4 * COUNT) > 0).astype(int)
    return x, y, other, logistic_fit(x, 2 * y - 1, penalty)


@pytest.mark.parametrize(("method", "least"), [("newton", 0.9995), ("trak", 0.9)])
def test_of_logistic_regression_scores_agree_with_exact_refits(method, least):
    x, y, other, w = logistic()
    train = features_of(w, x, y)
    targets = features_of(w, other, np.ones(TARGETS, int))  # the margin of class 1 is the logit
    influence = attribute(train, targets, method=method, ridge=1.0)
    rows = np.arange(len(x))
    refits = [other @ (w - logistic_fit(x[rows != i], 2 * y[rows != i] - 1, 1.0)) for i in rows]
    refits = np.transpose(refits)
    for scores, truth in zip(influence.scores, refits, strict=True):
        assert np.corrcoef(scores, truth)[0, 1] > least
    if method == "newton":
        slope = (influence.scores * refits).sum() / (refits**2).sum()
        assert abs(slope - 1) < 0.02


def several(models=5):
    x, y, other, w = regression(6, 2.0)
    rng = np.random.default_rng(7)
    weights = [w + 0.1 * rng.normal(size=6) for _ in range(models)]
    options = {"model_output": "value", "checkpoints": weights}
    train = features_of(w, x, y, **options)
    return train, features_of(w, other, np.zeros(TARGETS), **options)


def test_scores_are_means_over_models_with_their_standard_error():
    train, targets = several()
    influence = attribute(train, targets, ridge=1.0)
    parts = []
    for i in range(5):
        cut = lambda each, i=i: replace(
            each,
            features=each.features[i : i + 1],
            values=each.values[i : i + 1],
            residuals=each.residuals[i : i + 1],
            curvatures=each.curvatures[i : i + 1],
        )
        parts.append(attribute(cut(train), cut(targets), ridge=1.0).scores)
    np.testing.assert_allclose(influence.scores, np.mean(parts, 0))
    np.testing.assert_allclose(influence.errors, np.std(parts, 0, ddof=1) / np.sqrt(5))
    assert np.isnan(attribute(cut(train), cut(targets)).errors).all()


def test_predictions_of_subsets_are_sums_of_scores():
    train, targets = several()
    influence = attribute(train, targets)
    subsets = np.random.default_rng(0).random((3, COUNT)) < 0.5
    expected = [[influence.scores[t, row].sum() for t in range(TARGETS)] for row in subsets]
    np.testing.assert_allclose(influence.predict(subsets), expected)


def test_the_default_ridge_is_the_mean_squared_feature_in_the_units_of_the_loss():
    x, y, _, w = logistic()
    train = features_of(w, x, y)
    wrong = train.residuals[0]
    squares = (train.features[0] ** 2).sum(1)
    np.testing.assert_allclose(attribute(train, train, method="trak").ridge, squares.mean())
    newton = attribute(train, train).ridge
    np.testing.assert_allclose(newton, (wrong * (1 - wrong) * squares).mean())


def refused(**options):
    x, y, _, w = regression(60, 2.0)
    train = features_of(w, x, y, model_output="value")
    return attribute(train, train, **options)


def twice(**options):
    x, y, _, w = regression(60, 2.0)
    train = features_of(w, np.tile(x, (2, 1)), np.tile(y, 2), model_output="value")
    return attribute(train, train, **options)


REFUSED = {
    "an unknown method": lambda: refused(method="hessian"),
    "a negative ridge": lambda: refused(ridge=-1.0),
    "a ridge in words": lambda: refused(ridge="auto"),
    "leverage 1": lambda: refused(method="newton", ridge=0.0),
    "examples twice and no ridge": lambda: twice(ridge=0.0),
    "too few columns": lambda: refused().predict(np.ones((2, 3), bool)),
    "places in place of a mask": lambda: refused().predict(np.arange(COUNT)[None]),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_wrong_calls_are_refused_in_a_sentence(call):
    with pytest.raises(UserError) as caught:
        call()
    assert "\n" not in str(caught.value)
