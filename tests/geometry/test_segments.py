"""Networks along polylines: against dense sampling, known corners, and directions at infinity."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.geometry import Layer, crossings, homogeneous, preactivations, relu_layers, trace

LINE = [[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]


def random_network(seed, widths=(3, 6, 6, 2)):
    rng = np.random.default_rng(seed)
    shapes = list(zip(widths[1:], widths[:-1], strict=True))
    weights = [rng.standard_normal(shape) / shape[1] ** 0.5 for shape in shapes]
    return relu_layers(weights, [rng.standard_normal(shape[0]) / 2 for shape in shapes])


def test_sign_changes_are_those_that_dense_sampling_sees():
    layers = random_network(0, (3, 12, 12, 2))
    ends = np.array([[-3.0, 1.0, 2.0], [2.0, -1.0, -3.0]])
    t = np.linspace(0, 1, 100_001)[:, None]
    signals = preactivations(layers, ends[0] + t * (ends[1] - ends[0]))
    expected = [((z[1:] > 0) != (z[:-1] > 0)).sum() for z in signals]
    assert crossings(layers, ends).tolist() == [*expected[:-1], 0]
    assert sum(expected[:-1]) > 5


def test_outputs_at_the_places_are_the_network_s_and_linear_in_between():
    layers = random_network(1)
    vertices = np.array([[-3.0, 1.0, 2.0], [2.0, -1.0, -3.0], [0.0, 4.0, 0.0]])
    along = trace(layers, vertices)
    places = np.linspace(0, 2, 777)
    whole = np.minimum(places.astype(int), 1)
    x = vertices[whole] + (places - whole)[:, None] * (vertices[whole + 1] - vertices[whole])
    outputs = preactivations(layers, x)[-1]
    for unit in range(2):
        np.testing.assert_allclose(
            np.interp(places, along.places, along.outputs[:, unit]), outputs[:, unit], atol=1e-12
        )


def test_the_whole_line_has_the_corners_that_can_be_computed():
    rng = np.random.default_rng(2)
    w = rng.standard_normal((30, 1))
    b = rng.standard_normal(30)
    layers = relu_layers([w, np.ones((1, 30))], [b, np.zeros(1)])
    assert crossings(homogeneous(layers), LINE)[0] == 30
    inside = (np.abs(b / w[:, 0]) < 0.5).sum()
    assert crossings(layers, [[-0.5], [0.5]])[0] == inside
    along = trace(homogeneous(layers), LINE)
    np.testing.assert_allclose(along.outputs[:, -1], 1 - np.abs(along.places - 1), atol=1e-12)


def test_homogeneous_networks_scale():
    layers = random_network(3)
    x = np.random.default_rng(0).standard_normal((5, 3))
    lifted = preactivations(homogeneous(layers), np.append(2.5 * x, np.full((5, 1), 2.5), 1))[-1]
    np.testing.assert_allclose(lifted[:, :-1], 2.5 * preactivations(layers, x)[-1])
    assert np.allclose(lifted[:, -1], 2.5)


def test_touching_zero_is_no_crossing_and_linear_units_have_none():
    touch = relu_layers([[[1.0], [-1.0]], [[1.0, 1.0]], [[1.0]]])  # |x|, then its ReLU
    assert crossings(touch, [[-1.0], [1.0]]).tolist() == [2, 0, 0]
    linear = [Layer(np.eye(2), np.zeros(2), np.ones(2), np.ones(2))]
    assert crossings(linear, [[-1.0, 1.0], [1.0, 1.0]]).tolist() == [0]


@pytest.mark.parametrize(
    ("vertices", "words"),
    [
        ([[0.0, 0.0, 0.0]], "two vertices"),
        ([[0.0], [1.0]], "network's 3 inputs"),
        ([[0.0, 0.0, 0.0], [np.nan, 0.0, 0.0]], "finite"),
    ],
)
def test_what_is_no_polyline_is_refused(vertices, words):
    with pytest.raises(UserError, match=words):
        crossings(random_network(0), vertices)
