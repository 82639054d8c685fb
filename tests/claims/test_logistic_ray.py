"""What the claim about rays rests on: its sets have the structure it says, and readings find a path made by hand."""

import jax
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.implicit_bias.logistic_ray.experiment import velocity
from steepest.measurement.quantities import relative_distance


@pytest.fixture(scope="module")
def setting():
    return load("logistic-ray")(seeds=3).setting(jax.random.key(0))


def test_the_split_finds_what_was_built(setting):
    for x, part, split in zip(setting.x, setting.part, setting.splits, strict=False):
        assert int(part.sum()) == 15 and split.basis.shape == (6, 3)
        assert split.margin >= 0.5
        assert not np.asarray(x)[~np.asarray(part), 3:].any()


def test_the_digits_have_images_with_pixels_of_their_own(setting):
    """Every image of the part lights a pixel direction that no other image outside it does."""
    split = setting.splits[-1]
    assert split.part.sum() == 14 and split.basis.shape[1] == 57
    off = np.asarray(setting.real.x)[:, 57:]
    assert not off[~split.part].any()
    assert np.abs(off[split.part]).max(1).min() > 1e-3


def test_predictions_are_turned_like_the_inputs(setting):
    """Margins and optima are those of the turned coordinates: the gradient of the rest vanishes at the offset."""
    predicted = load("logistic-ray")(seeds=3).predict(setting)
    for i, (x, y, part) in enumerate(zip(*(np.asarray(a) for a in setting[:3]), strict=True)):
        signed = y[:, None] * x
        wrong = 1 / (1 + np.exp(signed[~part] @ predicted["offset"][i]))
        np.testing.assert_allclose(wrong @ signed[~part], 0, atol=1e-10)
        assert (signed[part] @ predicted["velocity"][i]).min() == pytest.approx(1, rel=1e-7)
        np.testing.assert_allclose(predicted["velocity"][i][:3], 0, atol=1e-9)


def test_the_velocity_of_a_path_made_by_hand():
    time = np.linspace(1, 40, 40)
    offset = np.array([2.0, -1.0, 0.0])
    ray = np.array([0.0, 0.0, 3.0])
    path = offset + time[:, None] * ray + np.exp(-time)[:, None] * np.array([1.0, 0.0, 5.0])
    assert relative_distance(velocity(time, path), ray) < 1e-9
