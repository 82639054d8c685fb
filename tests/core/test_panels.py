import dataclasses
import json

import numpy as np
import pytest

from steepest.core.panels import (
    Curve,
    Panel,
    context_curve,
    observed_curve,
    panel,
    panels_from_json,
    panels_to_json,
    predicted_curve,
    rival_curve,
)


@pytest.mark.parametrize(
    ("make", "role", "kind"),
    [
        (observed_curve, "observed", "line"),
        (predicted_curve, "predicted", "dashed"),
        (rival_curve, "rival", "dashed"),
        (context_curve, "context", "line"),
    ],
)
def test_each_maker_has_its_role_and_look(make, role, kind):
    curve = make([0, 1], [2.0, 3.0], "name")
    assert curve == Curve([0, 1], [2.0, 3.0], "name", role, kind, 0.0)
    assert make([0], [1], kind="points", shade=0.5).kind == "points"
    assert make([0], [1], kind="points", shade=0.5).shade == 0.5
    assert make([0], [1]).label == ""


@pytest.mark.parametrize(
    ("log", "xscale", "yscale"),
    [
        ("", "linear", "linear"),
        ("x", "log", "linear"),
        ("y", "linear", "log"),
        ("xy", "log", "log"),
    ],
)
def test_logarithmic_axes_are_named(log, xscale, yscale):
    found = panel("t", "x", "y", log=log)
    assert (found.xscale, found.yscale) == (xscale, yscale)


def test_a_panel_keeps_its_curves_in_order_and_its_limits():
    first = observed_curve([0], [0])
    second = predicted_curve([0], [1])
    found = panel("title", "step", "loss", first, second, xlim=(0, None), ylim=(None, 2))
    assert isinstance(found, Panel)
    assert found.curves == (first, second)
    assert (found.title, found.x, found.y) == ("title", "step", "loss")
    assert (found.xlim, found.ylim) == ((0, None), (None, 2))
    assert panel("t", "x", "y").xlim is None


def test_panels_are_data():
    with pytest.raises(dataclasses.FrozenInstanceError):
        panel("t", "x", "y").title = "other"
    with pytest.raises(dataclasses.FrozenInstanceError):
        observed_curve([0], [0]).label = "other"
    with pytest.raises(TypeError):
        panel("t", "x", "y", zlim=(0, 1))
    with pytest.raises(TypeError):
        observed_curve([0], [0], colour="red")


def test_panels_come_back_from_json():
    curves = (
        observed_curve(
            [1, 2], [[1.0, float("nan")], [3.0, 4.0]], "seeds", kind="points", shade=0.5
        ),
        predicted_curve([1, 2], [1.0, float("inf")]),
    )
    first = panel("t", "x", "y", *curves, log="y", ylim=(1e-9, None))
    text = json.dumps(panels_to_json([first]), allow_nan=False)
    (back,) = panels_from_json(json.loads(text))
    assert (back.title, back.yscale, back.xlim, back.ylim) == ("t", "log", None, (1e-9, None))
    np.testing.assert_array_equal(back.curves[0].y, curves[0].y)
    assert np.isnan(back.curves[1].y[1])  # what is not finite is not drawn either way
    for ours, theirs in zip(back.curves, curves, strict=True):
        assert (ours.label, ours.role, ours.kind) == (theirs.label, theirs.role, theirs.kind)
    assert panels_to_json([back]) == panels_to_json([first])
