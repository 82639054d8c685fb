"""Maps: every cell lies where it belongs in the colour that it means, and what is missing is said."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_hex

from steepest.core.panels import Map, observed_curve, panel, predicted_curve
from steepest.site.drawing import (
    GAP,
    PALE,
    VERDICTS,
    blend,
    cleaned,
    draw,
    edges,
    named,
    ramp,
    span,
    svg,
    thumbnail,
)
from steepest.site.pages._figures import theme

WORDS = ("holds", "fails", "inconclusive", "out-of-range", "crashed")


def numbers(rows=3, columns=4, **other):
    values = np.arange(float(rows * columns)).reshape(rows, columns)
    given = {
        "across": np.arange(1.0, columns + 1),
        "up": np.geomspace(1, 100, rows),
        "values": values,
        **other,
    }
    return Map(
        "A title", "abscissa", "ordinate", **{"label": "quantity [1]", "yscale": "log", **given}
    )


def words(values, **other):
    values = np.array(values, float)
    rows, columns = values.shape
    return Map("", "x", "y", np.arange(columns), np.arange(rows), values, "verdict", WORDS, **other)


def cells(ax):
    """Left, right, bottom and top of every rectangle by colour."""
    found = {}
    for patch in ax.patches:
        corners = patch.get_path().vertices.reshape(-1, 5, 2)
        boxes = np.concatenate([corners.min(1), corners.max(1)], 1)[:, [0, 2, 1, 3]]
        found[to_hex(patch.get_facecolor())] = boxes
    return found


def area(boxes):
    return float(np.sum((boxes[:, 1] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 2])))


@pytest.mark.parametrize(("scale", "to"), [("linear", np.asarray), ("log", np.log)])
def test_edges_lie_midway_in_the_axis_own_scale(scale, to):
    centres = np.array([0.1, 0.3, 2.0, 50.0])
    found = edges(centres, scale)
    np.testing.assert_allclose(
        to(found[1:-1]), (to(centres[1:]) + to(centres[:-1])) / 2, rtol=1e-12
    )
    np.testing.assert_allclose(
        to(centres[[0, -1]]), [to(found[:2]).mean(), to(found[-2:]).mean()], rtol=1e-12
    )


@pytest.mark.parametrize(
    ("value", "scale"), [(3.0, "linear"), (0.0, "linear"), (-2.0, "linear"), (1e-6, "log")]
)
def test_a_lone_cell_has_a_width_around_its_value(value, scale):
    low, high = edges([value], scale)
    assert low < value < high
    assert high - low < 4 * abs(value) + 2
    assert scale == "linear" or low > 0


def test_every_cell_has_the_colour_of_its_value():
    (ax, *_) = draw([numbers()]).axes
    found = cells(ax)
    x = edges(np.arange(1.0, 5), "linear")
    y = edges([1, 10, 100], "log")
    for value in range(12):
        row, column = divmod(value, 4)
        box = np.array([x[column], x[column + 1], y[row], y[row + 1]])
        colour = ramp()[min(int(value / 11 * len(ramp())), len(ramp()) - 1)]
        assert any(np.allclose(box, other) for other in found[colour]), value
    assert ax.get_xlim() == (0.5, 4.5) and ax.get_yscale() == "log"


def test_categories_have_their_own_colours_and_neighbours_become_one():
    (ax,) = draw([words([[0, 0, 1], [0, 2, 2], [4, 3, 3]])]).axes
    found = cells(ax)
    assert {colour: area(boxes) for colour, boxes in found.items()} == {
        VERDICTS[word][0]: count for word, count in zip(WORDS, (3, 1, 2, 2, 1), strict=True)
    }
    assert len(found[VERDICTS["inconclusive"][0]]) == 1
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["✓ holds", "✗ fails", "? inconclusive", "– out of range", "! crashed"]


def test_only_words_that_occur_are_in_the_legend():
    (ax,) = draw([words([[0, 0], [3, np.nan]])]).axes
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "✓ holds",
        "– out of range",
        "no value",
    ]


def test_other_words_have_colours_and_signs_of_their_own():
    found = named(["lazy", "fails", "rich", "divergent"])
    assert found[1] == VERDICTS["fails"]
    assert len({colour for colour, _ in found}) == len({sign for _, sign in found}) == 4


def test_cells_have_signs_only_where_there_is_room():
    signs = lambda n: sum(
        len(line.get_xdata()) for line in draw([words(np.zeros((n, n)))]).axes[0].lines
    )
    assert signs(5) == 25
    assert signs(60) == 0
    assert not draw([words(np.zeros((5, 5)))]).axes[0].lines[0].get_markevery()


def test_what_has_no_value_is_grey_struck_out_and_said():
    values = np.arange(12.0).reshape(3, 4)
    values[0, 1], values[2, 3] = np.nan, np.inf
    (ax, *_) = draw([numbers(values=values)]).axes
    assert len(cells(ax)[GAP]) == 2
    strokes = ax.lines[0].get_xdata()
    np.testing.assert_allclose(strokes[np.isfinite(strokes)], [1.5, 2.5, 3.5, 4.5])
    assert "no value" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert GAP not in ramp() and GAP not in {colour for colour, _ in VERDICTS.values()}


def test_nothing_but_gaps_is_said():
    assert "no finite value" in svg([numbers(values=np.full((3, 4), np.nan))])


@pytest.mark.parametrize("shape", [(3, 1), (1, 4), (1, 1)])
def test_one_row_or_column(shape):
    (ax, *_) = draw([numbers(*shape)]).axes
    assert np.all(np.diff([ax.get_xlim(), ax.get_ylim()], axis=1) > 0)
    assert sum(area(boxes) for boxes in cells(ax).values()) > 0


def test_what_a_logarithmic_axis_cannot_show_is_left_out():
    across, _, values = cleaned(numbers(across=[-1.0, 0.0, 1.0, 10.0], xscale="log"))
    assert across.tolist() == [1.0, 10.0]
    assert values.tolist() == [[2, 3], [6, 7], [10, 11]]
    (ax, *_) = draw([numbers(across=[-1.0, 0.0, 1.0, 10.0], xscale="log")]).axes
    np.testing.assert_allclose(ax.get_xlim(), (10**-0.5, 10**1.5))


def test_scattered_points_lie_where_they_are_and_gaps_are_crosses():
    x = np.array([1.0, 2, 3])
    y = np.array([0.1, 1, 10])
    values = np.array([0.0, 1.0, np.nan])
    (ax, *_) = draw([Map("", "x", "y", x, y, values, "v", yscale="log")]).axes
    found = {(line.get_color(), line.get_marker()): line.get_xydata().tolist() for line in ax.lines}
    assert found[ramp()[0], "o"] == [[1, 0.1]] and found[ramp()[-1], "o"] == [[2, 1]]
    assert [at for (_, marker), at in found.items() if marker == "x"] == [[[3, 10]]]
    assert ax.get_xlim()[0] < 1 and ax.get_xlim()[1] > 3 and 0 < ax.get_ylim()[0] < 0.1


def test_a_boundary_is_drawn_over_the_cells_with_a_pale_outline():
    edge = predicted_curve([1, 4], [2, 50], "the edge")
    (ax, *_) = draw([numbers(curves=(edge,))]).axes
    line = next(line for line in ax.lines if len(line.get_xdata()) == 2)
    assert line.get_color() == blend("predicted", 0)
    assert line.get_zorder() > max(patch.get_zorder() for patch in ax.patches)
    root = ElementTree.fromstring(svg([numbers(curves=(edge,))]))
    strokes = re.findall(
        r"stroke: (#\w{6}).*?stroke-width: ([\d.]+)",
        " ".join(e.get("style", "") for e in root.iter()),
    )
    widths = {colour: float(width) for colour, width in strokes}
    assert widths[PALE] > widths[blend("predicted", 0)]
    assert "the edge" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_limits_are_shared_and_what_lies_beyond_is_said():
    inside = replace(numbers(), limits=(0.0, 22.0))
    ax = draw([inside]).axes[0]
    bar = draw([inside]).axes[0].child_axes[0]
    assert bar.get_ylim() == (0.0, 22.0) and bar.get_ylabel() == "quantity [1]"
    assert ramp()[-1] not in cells(ax) and ramp()[len(ramp()) // 2] in cells(ax)
    (beyond, *_) = draw([replace(numbers(), limits=(0.0, 4.5))]).axes
    assert "beyond" in beyond.child_axes[0].get_ylabel()
    last = cells(beyond)[
        ramp()[-1]
    ]  # 5 … 11: three cells of the middle row as one, four of the last as one
    assert len(last) == 2 and sorted((last[:, 1] - last[:, 0]).tolist()) == [3.0, 4.0]


@pytest.mark.parametrize("value", [0.0, 3.0, -2.0, 1e-9])
def test_equal_values_have_a_span(value):
    low, high = span(numbers(values=np.full((3, 4), value)))
    assert low < value < high


def test_colours_of_numbers_are_even_in_lightness():
    linear = [np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)]) / 255 for c in ramp()]
    linear = [np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) for c in linear]
    lightness = np.array([116 * np.cbrt(c @ [0.2126, 0.7152, 0.0722]) - 16 for c in linear])
    steps = np.diff(lightness)
    assert steps.min() > 0 and steps.max() < 2.5 * steps.mean()
    assert (
        lightness[0] > 15 and lightness[-1] < 95
    )  # a page is darker than the one and lighter than the other


def test_no_colour_of_numbers_is_taken_for_one_of_the_theme():
    assert [colour for colour in ramp() if theme(colour) != colour] == []
    assert theme(VERDICTS["out-of-range"][0]) == "var(--cell-out-of-range)"


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (numbers(values=np.zeros((4, 3))), r"shape \(4, 3\) over \(4,\) and \(3,\)"),
        (numbers(values=np.zeros(4)), "scattered points one value each"),
        (words([[0, 5]]), "none of its 5 words"),
        (words([[0, 0.5]]), "none of its 5 words"),
    ],
)
def test_what_does_not_fit_is_refused(made, message):
    with pytest.raises(ValueError, match=message):
        draw([made])


def test_the_same_map_gives_the_same_bytes_and_stays_light():
    noise = np.random.default_rng(0)
    centres = np.geomspace(0.1, 10, 64)
    rough = Map(
        "", "x", "y", centres, centres, noise.random((64, 64)), "v", xscale="log", yscale="log"
    )
    mixed = replace(rough, values=noise.integers(0, 5, (64, 64)), words=WORDS)
    for each in (rough, mixed):
        text = svg([each])
        assert text == svg([each])
        assert len(text) < 150_000
        assert thumbnail(each) == thumbnail(each)
        assert len(thumbnail(each)) < len(text)


def test_cells_close_the_gap_between_them_in_the_svg():
    """Neighbours share their rounded edge, and each has a thin edge of its own colour over it."""
    root = ElementTree.fromstring(svg([numbers(curves=())]))
    rows = [e for e in root.iter() if re.search(r"M[\d.]+ [\d.]+H", e.get("d", ""))]
    assert all(
        re.search(r"fill: (#\w{6}); stroke: \1; stroke-width", e.get("style", "")) for e in rows
    )
    ends = [
        tuple(map(float, m))
        for e in rows
        for m in re.findall(r"M([\d.]+) [\d.]+H([\d.]+)V", e.get("d", ""))
    ]
    inner = {left for left, _ in ends} & {right for _, right in ends}
    assert len(inner) == 3


def test_maps_and_panels_stand_side_by_side():
    figure = draw([numbers(), panel("t", "x", "y", observed_curve([1, 2], [1, 2]))])
    figure.canvas.draw()
    assert [ax.get_xlabel() for ax in figure.axes] == ["abscissa", "x"]


@pytest.mark.parametrize("words", [(), ("holds", "fails")])
def test_very_many_cells_are_pixels_of_the_same_colours(words):
    """A map of 10⁵ cells stays small; what it shows is what one of its corners shows as paths."""
    import base64
    import io

    from matplotlib.image import imread

    rng = np.random.default_rng(0)
    values = (rng.random((100, 1000)) > 0.5).astype(float)
    values[:, :500] = 1.0
    values[:50, 900:] = np.nan
    picture = Map(
        "t",
        "x",
        "y",
        np.geomspace(1, 100, 1000),
        np.arange(100.0),
        values,
        "v",
        words,
        xscale="log",
    )
    text = svg([picture])
    assert len(text) < 400_000
    assert text == svg([picture])
    (found,) = re.findall(r'xlink:href="data:image/png;base64,\s*([^"]+)"', text)
    pixels = imread(io.BytesIO(base64.b64decode(found)))
    colours = [colour for colour, _ in named(words)] if words else [ramp()[0], ramp()[-1]]
    last = tuple(int(colours[1][i : i + 2], 16) for i in (1, 3, 5))
    gap = tuple(int(GAP[i : i + 2], 16) for i in (1, 3, 5))
    at = lambda row, column: tuple((255 * pixels[row, column, :3]).round().astype(int))
    assert at(len(pixels) // 2, len(pixels[0]) // 4) == last
    assert "scale(1 -1)" in text  # the picture is stored with its first row lowest
    assert at(len(pixels) // 4, len(pixels[0]) - 4) == gap  # below the middle, at the right
    if words:
        assert "✓ holds" in text
        assert "✗ fails" in text
