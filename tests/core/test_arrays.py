import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.core.arrays import Observation, Prediction, Quantities, Quantity


def some(kind=Quantities):
    return kind(loss=("seed step", np.arange(6.0).reshape(2, 3), "nats"), width=100.0)


def test_indexing_gives_plain_numpy():
    found = Quantities(loss=("step", jnp.array([1.0, 0.5])), width=100)
    assert type(found["loss"]) is np.ndarray
    assert found["loss"].tolist() == [1.0, 0.5]
    assert found["width"].shape == ()
    assert float(found["width"]) == 100.0


def test_dimensions_and_units_are_kept():
    found = some()
    assert found.quantity("loss").dims == ("seed", "step")
    assert found.quantity("loss").unit == "nats"
    assert found.quantity("width").dims == ()
    assert found.quantity("width").unit == ""
    assert Quantities(a=(("x", "y"), np.ones((1, 2)))).quantity("a").dims == ("x", "y")
    assert Quantities(a=("", 1.0, "steps")).quantity("a").unit == "steps"


@given(st.integers(0, 4), st.integers(0, 4))
@settings(max_examples=25, deadline=None)
def test_every_axis_has_exactly_one_name(axes, names):
    values = np.ones((1,) * axes)
    dims = " ".join("abcde"[:names])
    if axes == names:
        assert Quantities(q=(dims, values)).quantity("q").dims == tuple("abcde"[:names])
    else:
        with pytest.raises(ValueError, match="one name an axis"):
            Quantities(q=(dims, values))


def test_an_array_without_names_is_refused():
    with pytest.raises(ValueError, match=r"shape \(2,\) and dimensions \(\)"):
        Quantities(q=[1.0, 2.0])


@pytest.mark.parametrize(
    "entry", [None, {"a": 1}, ("x", [None, 1.0]), ("x", np.array([{}, {}], object))]
)
def test_objects_are_refused(entry):
    with pytest.raises(ValueError, match="'q' is not an array of numbers"):
        Quantities(q=entry)


def test_text_is_refused():
    with pytest.raises(ValueError, match="not an array of numbers"):
        Quantities(q="converged")


def test_ragged_lists_are_refused():
    with pytest.raises(ValueError):
        Quantities(q=("a b", [[1.0], [1.0, 2.0]]))


def test_it_is_a_mapping():
    found = some()
    assert list(found) == ["loss", "width"]
    assert len(found) == 2
    assert "loss" in found
    assert "lost" not in found
    assert {name: values.ndim for name, values in found.items()} == {"loss": 2, "width": 0}
    assert set({**found}) == {"loss", "width"}
    assert found.get("lost") is None
    with pytest.raises(KeyError):
        found["lost"]
    with pytest.raises(KeyError):
        found.quantity("lost")


def test_it_is_read_only():
    found = some()
    with pytest.raises(TypeError):
        found["loss"] = np.ones(3)
    with pytest.raises(TypeError):
        del found["loss"]
    with pytest.raises(AttributeError):
        found.quantity("loss").unit = "bits"


def test_any_name_is_allowed():
    assert set(Quantities(self=1.0, name=2.0, entries=3.0)) == {"self", "name", "entries"}


@pytest.mark.parametrize("kind", [Prediction, Observation])
def test_replace_copies(kind):
    before = some(kind)
    after = before.replace(width=50.0, depth=("layer", [1.0, 2.0]))
    assert type(after) is kind
    assert list(after) == ["loss", "width", "depth"]
    assert float(after["width"]) == 50.0
    assert float(before["width"]) == 100.0
    assert "depth" not in before
    assert after.quantity("loss") is before.quantity("loss")


def test_a_prediction_is_not_an_observation():
    assert not isinstance(some(Prediction), Observation)
    assert not isinstance(some(Observation), Prediction)


def test_it_shows_names_and_shapes():
    assert repr(some(Prediction)) == "Prediction(loss[2, 3], width[])"
    assert repr(Observation()) == "Observation()"


def test_a_quantity_passes_through():
    one = Quantity(np.ones(2), ("x",), "m")
    assert Quantities(a=one).quantity("a") is one
