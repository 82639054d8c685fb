"""A claim beside wrong theories: numbers of one place, and what the data leave open."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import xarray

from steepest import kit
from steepest.core.checks import Rejection
from steepest.core.laws import Null
from steepest.site.pages._confronted import at_the_point_of, confronted, not_judged

WIDTHS = (16, 64, 256)


def follows(law: list[float], seen: list[float]) -> kit.Check:
    """Return a check of a law over widths, measured three times with a little noise."""
    coordinates = {"width": list(WIDTHS)}
    noise = 1 + 0.001 * np.array([[-1.0], [0.0], [1.0]])
    return kit.follows(
        "step",
        xarray.DataArray(law, coordinates, name="step"),
        xarray.DataArray(noise * np.array(seen), coordinates, ("seed", "width"), name="step"),
        0.1,
        label="the step",
    )


def test_numbers_of_the_claim_are_those_of_the_point_that_is_shown():
    """The claim is worst at width 16, the rival at width 256: its line has both numbers of width 256."""
    mine = follows([4.0, 2.0, 1.0], [4.3, 2.0, 1.0])
    rival = follows([4.0, 4.0, 4.0], [4.3, 2.0, 1.0])
    assert (mine.predicted, round(mine.measured, 6)) == (4.0, 4.3)
    assert (rival.predicted, round(rival.measured, 6)) == (4.0, 1.0)
    shown = at_the_point_of(rival, mine)
    assert (shown.predicted, round(shown.measured, 6)) == (1.0, 1.0)
    assert shown.verdict is mine.verdict


def test_checks_that_a_rival_leaves_alone_are_not_shown():
    mine = follows([4.0, 2.0, 1.0], [4.0, 2.0, 1.0])
    untouched = replace(mine, id="other")
    wrong = follows([1.0, 1.0, 1.0], [4.0, 2.0, 1.0])
    rival = Rejection("flat", "flat", True, ("step",), (wrong, untouched), "")
    result = SimpleNamespace(checks=(mine, untouched))
    _, pairs, left_out = confronted(rival, result)
    assert [check.id for _, check in pairs] == ["step"]
    assert left_out == 0


def test_what_is_left_open_is_said_by_the_name_of_the_check():
    mine = follows([4.0, 2.0, 1.0], [4.0, 2.0, 1.0])
    nulls = [
        Null("step", "", "larger", ()),
        Null("step", "", "smaller", ()),
        Null("step", "width", "flat", (), accepted="it hardly falls"),
        Null("step", "width", "reversed", ("step",)),
        Null("drawn", "width", "steeper", ()),
        Null("drawn", "optimizer", "exchanged", ()),
    ]
    assert list(not_judged(SimpleNamespace(checks=(mine,), nulls=nulls))) == [
        ("how large “the step” is", ""),
        ("whether “the step” depends on `width` at all", "it hardly falls"),
        ("`drawn` from a law that is steeper in `width` by a square root", ""),
        ("which `optimizer` has which `drawn`", ""),
    ]
