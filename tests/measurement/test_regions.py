"""Linear regions: networks whose corners are known, and dense sampling of others."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.geometry import preactivations
from steepest.measurement import _regions
from steepest.measurement._chain import compose
from steepest.measurement._context import Context
from steepest.measurement._regions import measure_regions, on_segment, pattern, piecewise
from steepest.measurement.adapters import Dense, subject
from steepest.nn.networks import mlp

TENT = (
    [[2.0], [4.0]],
    [0.0, -2.0],
    [[1.0, -1.0]],
)  # 2 relu(x) − relu(4x − 2): from 0 up to 1 at ½ and down again


def tents(count):
    """The tent map, composed: 2^count linear pieces on [0, 1] (Telgarsky 2016)."""
    into, bias, out = (np.array(each) for each in TENT)
    first = Dense("0", into, bias, "relu")
    return [
        first,
        *[Dense(str(i), into @ out, bias, "relu") for i in range(1, count)],
        Dense("out", out, None, "linear"),
    ]


def random_layers(widths, seed=0, name="relu"):
    rng = np.random.default_rng(seed)
    shapes = list(zip(widths[1:], widths[:-1], strict=True))
    made = [
        Dense("", rng.standard_normal(s) / s[1] ** 0.5, rng.standard_normal(s[0]) / 2, name)
        for s in shapes
    ]
    return [*made[:-1], made[-1]._replace(activation="linear")]


def test_corners_of_one_layer_can_be_counted():
    rng = np.random.default_rng(0)
    w = rng.standard_normal((30, 1))
    b = rng.standard_normal(30)
    layers = [Dense("", w, b, "relu"), Dense("", np.ones((1, 30)), None, "linear")]
    corners = -b / w[:, 0]
    for low, high in [(-1.0, 1.0), (0.2, 3.0), (-9.0, 9.0), (0.0, 1e-9)]:
        inside = ((low < corners) & (corners < high)).sum()
        assert on_segment(layers, np.array([[low], [high]])) == 1 + inside


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_composed_tents_have_two_to_the_depth_pieces(count):
    assert on_segment(tents(count), np.array([[0.0], [1.0]])) == 2**count
    assert on_segment(tents(count), np.array([[0.0], [0.5]])) == 2 ** (count - 1)


@pytest.mark.parametrize("name", ["relu", "leaky_relu(0.1)"])
def test_a_deep_network_has_the_patterns_that_dense_sampling_finds(name):
    layers = random_layers((3, 6, 6, 6, 2), name=name)
    ends = np.random.default_rng(1).standard_normal((2, 3)) * 3
    t = np.linspace(0, 1, 200_001)[:, None]
    seen = pattern(layers, ends[0] + t * (ends[1] - ends[0]))
    changes = (seen[1:] != seen[:-1]).any(1)
    assert on_segment(layers, ends) == 1 + changes.sum() == len(np.unique(seen, axis=0))
    assert on_segment(layers, ends) > 8
    assert on_segment(layers, ends[::-1]) == on_segment(layers, ends)


@pytest.mark.parametrize("name", ["relu", "leaky_relu(0.1)", "abs"])
def test_the_chain_is_cut_up_as_it_computes(name):
    layers = random_layers((3, 6, 5, 2), name=name)
    x = np.random.default_rng(2).standard_normal((9, 3))
    np.testing.assert_allclose(preactivations(piecewise(layers), x)[-1], compose(layers, x)[-1])


def test_regions_in_a_plane_are_all_counted():
    """A fine grid sees as many patterns, but for slivers; any of three examples may be the parallelogram's corner."""
    x = np.random.default_rng(1).standard_normal((3, 2))
    context = context_of(mlp((2, 8, 8, 1), "relu"), x, x[:, 0])
    plane = measure_regions(context)[1]
    layers = context.subject.dense()
    assert layers is not None
    s, t = np.meshgrid(*[np.linspace(0, 1, 1000)] * 2)
    counts = []
    for first, second, third in (x, np.roll(x, 1, axis=0), np.roll(x, 2, axis=0)):
        points = first + s.reshape(-1, 1) * (second - first) + t.reshape(-1, 1) * (third - first)
        counts.append(len({row.tobytes() for row in pattern(layers, points)}))
    assert any(0.9 * plane.value <= count <= plane.value for count in counts)
    assert plane.parts["area"] == pytest.approx(abs(np.linalg.det(x[1:] - x[0])))


def test_counting_stops_where_there_are_too_many_regions(monkeypatch):
    monkeypatch.setattr(_regions, "MOST", 3)
    x = np.random.default_rng(1).standard_normal((3, 2))
    plane = measure_regions(context_of(mlp((2, 8, 8, 1), "relu"), x, x[:, 0]))[1]
    assert plane.value == 3
    assert "lower bound" in plane.interpretation


def squared(outputs, targets):
    return ((outputs - targets) ** 2).mean()


def context_of(network, x, y, seed=0):
    drawn = random_layers(network.widths)
    params = tuple({"w": each.matrix * 1.4, "b": each.bias} for each in drawn)
    found = subject(
        (network, params), lambda outputs, targets: (outputs**2).mean(), (x, y), check=False
    )
    return Context(found, np.random.default_rng(seed))


def test_pairs_join_different_classes():
    """All examples of a class are one point, so that every segment is the same one, there or back."""
    labels = np.array([0, 0, 0, 0, 1, 0])
    points = np.array([[-2.0, 1.0], [2.0, 0.5]])
    context = context_of(mlp((2, 9, 9, 2), "relu"), points[labels], labels)
    (along,) = measure_regions(context)  # and no plane, as there are two points
    layers = context.subject.dense()
    assert layers is not None
    count = on_segment(layers, points)
    assert along.value == pytest.approx(count / 18) and along.interval == pytest.approx(
        (along.value, along.value)
    )
    assert along.parts == {"most": count, "fewest": count} and count > 1


def test_regression_joins_different_examples(monkeypatch):
    x = np.random.default_rng(0).standard_normal((5, 2))
    context = context_of(mlp((2, 9, 1), "relu"), x, x[:, 0])
    layers = context.subject.dense()
    assert layers is not None
    each = {on_segment(layers, x[[i, j]]) / 9 for i in range(5) for j in range(i)}
    monkeypatch.setattr(_regions, "PAIRS", 400)
    along = measure_regions(context)[0]
    assert (along.parts["fewest"] / 9, along.parts["most"] / 9) == (min(each), max(each))
    exact = np.mean([on_segment(layers, x[[i, j]]) / 9 for i in range(5) for j in range(i)])
    low, high = along.interval
    assert abs(along.value - exact) <= 4 * (high - low) / (2 * 1.96)


def test_what_has_no_regions_is_refused():
    x = np.random.default_rng(0).standard_normal((6, 2))
    y = np.array([0, 1, 1, 0, 1, 0])
    for network in (mlp((2, 5, 2), "tanh"), mlp((2, 2), "relu"), mlp((2, 5, 2), "linear")):
        with pytest.raises(UserError, match="corner at zero"):
            measure_regions(context_of(network, x, y))
    with pytest.raises(UserError, match="chain"):
        measure_regions(context_of(mlp((2, 5, 5, 2), "relu", skip=1.0), x, y))
    with pytest.raises(UserError, match="different classes"):
        measure_regions(context_of(mlp((2, 5, 2), "relu"), x, 0 * y))
