"""Inputs made for a wanted covariance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.kernels import first_layer, planar_inputs


@given(st.floats(0, 10), st.floats(0.1, 5), st.floats(0, 3), st.floats(0.1, 3), st.floats(-4, 4))
@settings(max_examples=25, deadline=None)
def test_the_first_layer_has_the_asked_covariance(extra, c_w, c_b, length, angle):
    """K_00 = variance; K_01 = C_b + (variance − C_b) r cos θ; K_11 = C_b + (variance − C_b) r²."""
    x = np.asarray(planar_inputs(c_b + extra, c_w, c_b, (1.0, 0.0), (length, angle)))
    kernel = c_b + c_w * x @ x.T / 2
    expected = [
        [c_b + extra, c_b + extra * length * np.cos(angle)],
        [kernel[1, 0], c_b + extra * length**2],
    ]
    np.testing.assert_allclose(kernel, expected, rtol=1e-10, atol=1e-12)


def test_it_inverts_the_first_layer_of_the_recursion():
    x = planar_inputs(2.0, 1.3, 0.5, (1.0, 0.3), (1.0, 0.3 + np.pi / 3))
    kernel = np.asarray(first_layer(x, 1.3, 0.5))
    np.testing.assert_allclose(
        kernel, [2.0, 2.0, 1.25], rtol=1e-10
    )  # K_00, K_11, K_01 = 0.5 + 1.5 cos 60°


def test_the_least_variance_is_that_of_the_bias():
    np.testing.assert_array_equal(planar_inputs(0.5, 1.0, 0.5, (1.0, 0.0), (2.0, 1.0)), 0.0)


@pytest.mark.parametrize(
    ("variance", "c_w", "c_b", "argument"),
    [
        (0.4, 1.0, 0.5, "variance 0.4"),
        (1.0, 0.0, 0.5, "c_w"),
        (1.0, -1.0, 0.5, "c_w"),
        (np.nan, 1.0, 0.5, "variance"),
    ],
)
def test_what_no_input_has_is_refused(variance, c_w, c_b, argument):
    with pytest.raises(UserError, match=argument):
        planar_inputs(variance, c_w, c_b, (1.0, 0.0))
