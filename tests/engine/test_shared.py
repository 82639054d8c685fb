"""Listening to both sides of a claim."""

import cProfile

from steepest.engine.shared import Shared
from steepest.kernels import bernstein_radius


def shared_by(predict, observe):
    """What two functions both call."""
    shared = Shared()
    with shared.predicting():
        predict()
    with shared.observing():
        observe()
    return shared.functions


def radius():
    """Call one function of the library."""
    bernstein_radius(0.05, 10, 1.0, 1.0)


def test_what_both_sides_call_is_found():
    found = shared_by(radius, radius)
    assert "steepest.kernels._bounds.bernstein_radius" in found


def test_what_one_side_calls_is_not():
    assert shared_by(radius, lambda: None) == []
    assert shared_by(lambda: None, radius) == []


def test_a_reader_who_profiles_keeps_the_profile():
    profiler = cProfile.Profile()
    profiler.enable()
    found = shared_by(radius, radius)
    after()
    profiler.disable()
    assert found == []
    names = {entry.code.co_name for entry in profiler.getstats() if hasattr(entry.code, "co_name")}
    assert {"bernstein_radius", "after"} <= names


def after():
    """Stands in the profile if it goes on after the two sides."""
