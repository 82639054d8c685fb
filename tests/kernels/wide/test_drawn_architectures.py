"""Forty drawn architectures beside matrices in extended precision: no entry errs by more than ``gram`` says."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import gram
from tests.kernels.wide import long_double
from tests.kernels.wide.drawn import draw

SEEDS = 40


def references(drawn):
    """Return both kernels, and the mask that leaves some position to each input; all exist where it does not."""
    everywhere = np.ones(drawn.x.shape[:-1], bool)
    if drawn.mask is not None:
        try:
            behind = long_double.kernels(drawn.steps, drawn.x, drawn.mask, bias=drawn.bias)
        except long_double.NothingExistsError:
            pass
        else:
            return behind, drawn.mask
    return long_double.kernels(drawn.steps, drawn.x, everywhere, bias=drawn.bias), None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_entry_errs_by_more_than_the_bound(seed, dtype):
    drawn = draw(seed, dtype)
    right, mask = references(drawn)
    both = gram(drawn.limit, drawn.x, mask=mask, tolerance=drawn.tolerance)
    for kernel, reference in ((both.nngp, right.k), (both.ntk, right.theta)):
        size = np.sqrt(np.outer(np.diag(reference), np.diag(reference)))
        assert (np.abs(kernel - reference) <= both.error * size).all()


def test_a_matrix_may_change_the_number_of_dimensions():
    """Positions of an image become a line, over which a window then moves."""
    rows = ((0.5, 0.5, 0, 0, 0, 0), (0, 0, 1.0, -1.0, 0, 0), (0, 0.3, 0, 0, 0.3, 0.3))
    steps = [
        ("conv", 2, 1, "zero", 1.5, 0.1),
        ("act", "relu"),
        ("mix", rows),
        ("conv", 2, 1, "zero", 1.5, 0.1),
        ("act", "relu"),
        ("mean",),
        ("dense", 1.5, 0.1),
    ]
    x = np.random.default_rng(0).normal(size=(3, 2, 3, 2))
    drawn = draw(0, float)._replace(steps=steps, bias=True, x=x, mask=None, tolerance=None)
    right, _ = references(drawn)
    np.testing.assert_allclose(gram(drawn.limit, x).ntk, right.theta.astype(float), rtol=1e-7)


CANCELS = ((0.5, -0.5, 0.25, -0.25), (0.2, 0.2, 0.2, 0.2))


@pytest.mark.parametrize("behind", ["relu", "tanh"])
def test_signals_that_cancel_have_a_bound_or_are_refused(behind):
    """Equal signals at all positions, of which a matrix takes a difference: its variance is a rounding error."""
    steps = [
        ("dense", 1.5, 0.1),
        ("act", "relu"),
        ("mix", ((0.1, 0.7, 0.13, 0.07),) * 4),
        ("mix", CANCELS),
        ("dense", 1.5, 0.0),
        ("act", behind),
        ("flatten",),
        ("dense", 1.5, 0.1),
    ]
    x = np.random.default_rng(0).normal(size=(3, 4, 2))
    drawn = draw(0, float)._replace(steps=steps, bias=True, x=x, mask=None, tolerance=None)
    if behind == "relu":
        with pytest.raises(UserError):
            gram(drawn.limit, x)
        return
    right, _ = references(drawn)
    both = gram(drawn.limit, x)
    for kernel, reference in ((both.nngp, right.k), (both.ntk, right.theta)):
        size = np.sqrt(np.outer(np.diag(reference), np.diag(reference)))
        assert (np.abs(kernel - reference) <= both.error * size).all()
