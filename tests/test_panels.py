import dataclasses

import pytest

from steepest.panels import Curve, Panel, context, panel, rival, seen, theory


@pytest.mark.parametrize(
    ("make", "role", "kind"),
    [
        (seen, "observed", "line"),
        (theory, "predicted", "dashed"),
        (rival, "rival", "dashed"),
        (context, "context", "line"),
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
    [("", "linear", "linear"), ("x", "log", "linear"), ("y", "linear", "log"), ("xy", "log", "log")],
)
def test_logarithmic_axes_are_named(log, xscale, yscale):
    found = panel("t", "x", "y", log=log)
    assert (found.xscale, found.yscale) == (xscale, yscale)


def test_a_panel_keeps_its_curves_in_order_and_its_limits():
    first, second = seen([0], [0]), theory([0], [1])
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
        seen([0], [0]).label = "other"
    with pytest.raises(TypeError):
        panel("t", "x", "y", zlim=(0, 1))
    with pytest.raises(TypeError):
        seen([0], [0], colour="red")
