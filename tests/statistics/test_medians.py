"""Medians of groups against NumPy's, and against intervals of means where a few repetitions are far off."""

import numpy as np
import pytest
import xarray

from steepest.core.errors import UserError
from steepest.statistics import medians


def test_the_medians_are_those_of_numpy_group_by_group():
    values = np.random.default_rng(0).standard_normal((4, 12))
    groups = medians(xarray.DataArray(values, dims=("classes", "seed")), 3, "seed", "draw")
    assert groups.dims == ("classes", "draw")
    assert np.array_equal(groups, np.median(values.reshape(4, 4, 3), axis=-1))


def test_what_is_no_number_is_left_out():
    values = xarray.DataArray([np.nan, 2.0, 4.0, np.nan, np.nan, np.nan], dims="draw")
    groups = medians(values, 3, "draw", "start").values
    assert groups[0] == 3.0
    assert np.isnan(groups[1])


def test_one_repetition_that_is_far_off_moves_no_group():
    values = np.full(12, 3.0)
    values[7] = 5.0
    assert (medians(xarray.DataArray(values, dims="seed"), 3, "seed", "draw") == 3).all()


def test_groups_that_do_not_fit_are_refused():
    with pytest.raises(UserError, match="multiple of 5"):
        medians(xarray.DataArray(np.zeros(12), dims="seed"), 5, "seed", "draw")
