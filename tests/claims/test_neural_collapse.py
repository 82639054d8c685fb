"""What neural-collapse compares networks with: random means, orthogonal rows, and its own measure of the collapse."""

import jax
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.curvature.neural_collapse.experiment import random_means, seen_of


@pytest.mark.parametrize(("classes", "width"), [(5, 32), (8, 50)])
def test_random_means_are_as_near_to_a_simplex_as_the_formulas_say(classes, width):
    law = load("neural-collapse")(classes=classes, width=width).predict(None)
    cosines, spread = random_means(jax.random.key(0), (20, classes, width))
    assert np.abs(cosines + 1 / (classes - 1)).mean() == pytest.approx(
        law["chance_angle"], rel=0.05
    )
    assert spread.mean() == pytest.approx(law["chance_spread"], rel=0.05)


def test_orthogonal_rows_are_the_minimum_of_free_features_without_a_bias():
    law = load("neural-collapse")(classes=7).predict(None)
    free = load("free-features")(classes=7).predict(None)
    rows = np.eye(7) / 7**0.5
    means = np.eye(7) - 1 / 7
    distance = np.linalg.norm(rows - means / np.linalg.norm(means))
    assert law["orthogonal_rows"] == pytest.approx(distance)
    assert free["free_duality"][1] == pytest.approx(distance)


def test_collapsed_features_are_seen_as_collapsed_and_others_are_not():
    """A simplex with its own rows; then the same with noise, and with the rows of other classes."""
    y = np.repeat(np.arange(4), 6)
    means = 3 * np.eye(4)
    collapsed = seen_of(means[y], y, means - means.mean(0), np.zeros(4))
    np.testing.assert_allclose(collapsed["cosines"], -1 / 3)
    for name in ("variability", "norm_spread", "duality", "mismatch"):
        assert collapsed[name] == pytest.approx(0, abs=1e-9)
    assert collapsed["dimensions"] == 3
    noise = np.random.default_rng(0).normal(size=(24, 4))
    assert seen_of(means[y] + noise, y, means, np.zeros(4))["variability"] > 0.05
    turned = seen_of(means[y], y, np.roll(means, 1, 0), np.zeros(4))
    assert turned["mismatch"] == 1 and turned["duality"] > 1
