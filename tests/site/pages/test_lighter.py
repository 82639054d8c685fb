"""Lighter figures: the same points to a tenth, the same ticks and grid lines."""

import re
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup

from steepest.core.panels import observed_curve, panel, predicted_curve
from steepest.site.drawing import page_svg
from steepest.site.pages._figures import inline, standalone
from steepest.site.pages._lighter import _stepped, lighten


def decoded(shape: str) -> np.ndarray:
    """Return the points of a path of M and relative l, one number after the other, by a reader of its own."""
    tokens = re.findall(r"[Ml]|-?(?:\d+\.\d+|\d+|\.\d+)", shape)
    points = []
    pen = np.zeros(2)
    command = ""
    while tokens:
        if tokens[0] in "Ml":
            command = tokens.pop(0)
        step = np.array([float(tokens.pop(0)), float(tokens.pop(0))])
        pen = step if command == "M" else pen + step
        points.append(pen)
    return np.array(points)


def test_steps_lead_where_the_path_led():
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 300, (500, 2)).round(3)
    written = "".join(f"{'ML'[i > 0]}{x:g} {y:g}" for i, (x, y) in enumerate(points))
    np.testing.assert_allclose(decoded(_stepped(written)), points, atol=0.051)


def test_gaps_stay_gaps():
    assert decoded(_stepped("M1 2L3 4M5 6L7 8.25")).tolist() == [[1, 2], [3, 4], [5, 6], [7, 8.2]]
    assert _stepped("M1 2L3 4M5 6L7 8").count("M") == 2


def test_ticks_and_grid_are_one_path_each():
    text = (
        '<svg><defs><path id="t" d="M0 0L0 3.5" style="s"/></defs><use href="#t" x="1.04" y="2"/>'
        '<use href="#t" x="5" y="2"/><path d="M1 2L1 9" style="fill:none;stroke:var(--grid);stroke-width:0.6"/>'
        '<path d="M5 2L5 9" style="fill:none;stroke:var(--grid);stroke-width:0.6"/></svg>'
    )
    root = ElementTree.fromstring(text)
    lighten(root)
    shapes = [path.get("d") for path in root.iter("path")]
    assert shapes == ["M1 2v3.5M5 2v3.5", "M1 2l0 7M5 2l0 7"]
    assert not list(root.iter("use")) and not list(root.iter("defs"))


def test_a_page_figure_has_words_that_a_phone_shows_large_enough():
    drawn = panel(
        "t", "x", "y", observed_curve([1, 2], [1, 2], "a"), predicted_curve([1, 2], [1, 2])
    )
    graphic = inline(page_svg(drawn), "f-", "words")
    width = float(re.findall(r'viewBox="\S+ \S+ (\S+)', graphic)[0])
    assert 8.5 * 317 / width >= 11
    sizes = [float(size) for size in re.findall(r"font-size:([\d.]+)px", graphic)]
    assert all(size >= 8.5 for size in sizes if size > 1)  # an empty title has one


def test_a_file_brings_the_colours_that_it_uses():
    graphic = Markup(
        '<svg viewBox="0 0 10 5" role="img" aria-label="w"><path d="M0 0L1 1" style="stroke:var(--rival)"/></svg>'
    )
    text = standalone(graphic)
    used = set(re.findall(r"var\((--[\w-]+)\)", text))
    sheet = text[: text.index("</style>")]
    assert {"--rival", "--ink", "--sans"} == used
    assert all(f"{name}:" in sheet for name in used)
    assert sheet.count("--rival:") == 2  # light and dark
    assert 'width="10"' in text
