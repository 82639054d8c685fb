"""Figures: what is drawn stays true to the data, light, and the same every time."""

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from steepest.core.panels import context_curve, observed_curve, panel, predicted_curve, rival_curve
from steepest.site import pages
from steepest.site.drawing import COLOURS, FAMILY, blend, draw, power, svg, thin, thumbnail

LONG = np.arange(50_000.0)


def crowded():
    """A panel as heavy as a claim may make it: forty seeds, long runs, every role."""
    noise = np.random.default_rng(0).random((40, LONG.size))
    return panel(
        "Many seeds",
        "step",
        "loss",
        observed_curve(LONG, np.exp(-LONG / 9000) * (1 + 0.3 * noise), "seeds"),
        predicted_curve(LONG, np.exp(-LONG / 9000), "theory"),
        rival_curve(LONG, np.exp(-LONG / 4000), "rival"),
        context_curve(LONG, 0.1 + noise[0], "scatter", kind="points"),
        log="y",
    )


def test_the_same_panels_give_the_same_bytes():
    assert svg([crowded()]) == svg([crowded()])
    assert thumbnail(crowded()) == thumbnail(crowded())


def test_long_runs_of_many_seeds_stay_light():
    assert len(svg([crowded()])) < 160_000
    assert len(thumbnail(crowded())) < 30_000


def test_coordinates_have_at_most_two_decimals():
    assert not re.search(r'd="[^"]*\.\d{3,}', svg([crowded()]))


@pytest.mark.parametrize("log", [False, True])
def test_thinning_keeps_ends_and_extremes(log):
    x = np.arange(1.0, 30_001)
    y = np.sin(x / 700)
    y[12_345], y[23_456] = 9.0, -9.0
    a, b = thin(x, y, 200, log)
    assert len(a) <= 200
    assert (a[0], a[-1], b.max(), b.min()) == (1.0, 30_000.0, 9.0, -9.0)
    assert np.all(np.diff(a) > 0)
    middle = np.sqrt(30_000) if log else 15_000
    assert 0.3 < np.mean(a < middle) < 0.7  # even in the scale of the axis


def test_thinning_keeps_gaps():
    y = np.ones(10_000)
    y[4000:6000] = np.nan
    assert np.isnan(thin(np.arange(10_000.0), y, 100)[1]).any()


def test_short_curves_and_clouds():
    x = np.array([3.0, 1.0, 2.0])
    assert thin(x, x, 10)[0] is x
    cloud = np.random.default_rng(1).normal(size=1000)
    assert len(thin(cloud, cloud, 100)[0]) == 100


def test_values_that_cannot_be_shown_are_named_and_single_ones_marked():
    gappy = panel(
        "",
        "x",
        "y",
        observed_curve([0, 1, 2], [np.nan, 2.0, np.inf], kind="line"),
        predicted_curve([0, 1], [np.nan] * 2, "lost"),
    )
    (ax,) = draw([gappy]).axes
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["lost (not finite)"]
    assert any(line.get_marker() == "o" for line in ax.lines)


def test_zero_on_a_logarithmic_axis_is_a_gap():
    (ax,) = draw([panel("", "x", "y", observed_curve([1, 2, 3], [1.0, 0.0, 1e-3]), log="y")]).axes
    assert np.isnan(ax.lines[0].get_ydata()[1])
    assert ax.get_ylim()[0] > 1e-4


def test_points_between_gaps_are_all_marked():
    (ax,) = draw(
        [panel("", "x", "y", observed_curve([1, 2, 3], [1.0, 2.0, 3.0], kind="points"))]
    ).axes
    assert len(ax.lines[0].get_xdata()) == 3
    assert ax.lines[0].get_markevery() is None


def test_an_open_limit_follows_what_is_visible():
    y = 10.0 ** -np.arange(300.0)
    (ax,) = draw(
        [panel("", "x", "y", observed_curve(np.arange(300), y), log="y", ylim=(1e-8, None))]
    ).axes
    assert ax.get_ylim()[0] == pytest.approx(1e-8)
    assert 1 < ax.get_ylim()[1] < 10


@pytest.mark.parametrize(
    "panels",
    [
        (),
        (panel("t", "x", "y"),),
        (panel("t", "x", "y", observed_curve([1], [np.nan], "a"), log="xy"),),
    ],
)
def test_nothing_to_show_is_said(panels):
    assert re.search("nothing was observed|no finite value", svg(panels))


def test_labels_are_text_and_markup_in_them_is_harmless():
    root = ElementTree.fromstring(
        svg([panel("<b> & λ₀", "x", "y", observed_curve([1, 2], [1, 2], "<script>"))])
    )
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"<b> & λ₀", "<script>"} <= texts


def test_every_blend_belongs_to_one_role():
    shades = {role: {blend(role, i / 100) for i in range(101)} for role in COLOURS}
    roles = list(shades)
    assert all(not shades[a] & shades[b] for i, a in enumerate(roles) for b in roles[:i])
    assert all(blend(role, 0) == COLOURS[role] and blend(role, 1) == FAMILY[role] for role in roles)


def test_four_measured_curves_are_told_apart():
    """In Oklab, where equal distances look equally far; a tenth is a difference that nobody overlooks."""
    for count in (2, 3, 4):
        places = [_oklab(blend("observed", shade)) for shade in np.linspace(0, 0.8, count)]
        apart = [np.linalg.norm(a - b) for i, a in enumerate(places) for b in places[:i]]
        assert min(apart) > 0.095
        others = [_oklab(COLOURS[role]) for role in COLOURS if role != "observed"]
        assert min(np.linalg.norm(a - b) for a in places for b in others) > 0.1


@pytest.mark.parametrize("sheet", ["light", "dark"])
def test_names_in_the_colours_of_curves_can_be_read(sheet):
    """Each colour of a role has a contrast of 4.5 to the page, as WCAG 2 asks of text."""
    text = (Path(pages.__file__).parent / "css" / f"{sheet}.css").read_text("utf-8")
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", text))
    for name, colour in colours.items():
        if name.split("-")[0] in COLOURS:
            for ground in ("paper", "raised"):
                assert _contrast(colour, colours[ground]) >= 4.5, (name, ground)


@pytest.mark.parametrize("role", COLOURS)
def test_the_page_has_the_colours_of_figures(role):
    text = (Path(pages.__file__).parent / "css" / "light.css").read_text("utf-8")
    assert f"--{role}: {COLOURS[role]};" in text
    assert f"--{role}-far: {FAMILY[role]};" in text


def _contrast(colour, ground):
    lights = sorted(map(_light, (colour, ground)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def _light(colour):
    share = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def _oklab(colour):
    """The coordinates of a colour such as #1f6fb4 (Ottosson 2020)."""
    share = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    opponents = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return opponents @ np.cbrt(cones @ linear)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1e-8, "10⁻⁸"),
        (3e5, "3×10⁵"),
        (10, "10"),
        (0, "0"),
        (-1e6, "−10⁶"),
        (-2.5e-7, "−2.5×10⁻⁷"),
        (999.9999, "10³"),
    ],
)
def test_powers(value, shown):
    assert power(value) == shown


def test_many_labels_do_not_widen_or_cover_the_figure():
    curves = [
        observed_curve([0, 1], [k, k], f"a rather long label {k}", shade=k / 8) for k in range(9)
    ]
    figure = draw([panel("A title " * 12, "x", "y", *curves)])
    figure.canvas.draw()
    (ax,) = figure.axes
    legend = ax.get_legend().get_window_extent()
    box = ax.get_window_extent()
    assert legend.y0 >= box.y1
    assert legend.x1 <= figure.bbox.x1 + 2
    assert legend.y1 <= ax.title.get_window_extent().y0 + 2
    assert box.height > 0.3 * figure.bbox.height


def test_names_at_the_ends_of_curves_stay_where_the_axes_end():
    """Curves that go on beyond the last abscissa that is shown: their names pushed the axes out of the figure."""
    x = np.arange(200.0)
    lines = panel(
        "Forgetting",
        "step",
        "mean",
        observed_curve(x, np.exp(-x / 20), "with momentum"),
        observed_curve(x, np.exp(-x / 100), "without"),
        xlim=(0, 80),
    )
    figure = draw([lines])
    figure.draw_without_rendering()
    names = [text for text in figure.axes[0].texts if text.get_text()]
    assert {text.get_text() for text in names} == {"with momentum", "without"}
    for text in names:
        assert text.xy[0] == pytest.approx(1, abs=0.02)
        assert text.xy[1] == pytest.approx(
            np.exp(-80 / (20 if text.get_text() == "with momentum" else 100)), abs=0.06
        )


def _named(figure):
    figure.draw_without_rendering()
    return {text.get_text(): text for text in figure.axes[0].texts if text.get_text()}


def test_names_of_crowded_ends_do_not_cover_each_other():
    x = np.linspace(0, 1, 50)
    ends = (0.5, 0.505, 0.51, 0.9)
    curves = [observed_curve(x, end * x, f"c{i}", shade=i / 4) for i, end in enumerate(ends)]
    figure = draw([panel("Ends", "x", "y", *curves, ylim=(0, 1))])
    names = _named(figure)
    assert set(names) == {"c0", "c1", "c2", "c3"}
    boxes = [names[name].get_window_extent() for name in sorted(names)]
    assert all(below.y1 <= above.y0 + 1 for below, above in pairwise(boxes))


def test_lines_of_many_seeds_and_thresholds_are_named_at_their_ends():
    x = np.linspace(1, 2, 20)
    rows = np.outer([0.9, 1.0, 1.1], x)
    lines = (observed_curve(x, rows, "seeds"), predicted_curve(x, 0 * x + 0.2, "threshold"))
    figure = draw([panel("Seeds", "x", "y", *lines)])
    names = _named(figure)
    assert set(names) == {"seeds", "threshold"}
    assert figure.axes[0].get_legend() is None


def test_names_that_would_stand_far_from_their_curves_are_in_the_legend():
    x = np.linspace(0, 1, 20)
    curves = [observed_curve(x, x * (1 + k / 1e4), f"c{k}", shade=k / 9) for k in range(9)]
    figure = draw([panel("Ends", "x", "y", *curves)])
    assert not _named(figure)
    assert len(figure.axes[0].get_legend().get_texts()) == 9


@pytest.mark.parametrize("end", [1.1, 30.0])
def test_a_circle_is_round(end):
    angle = np.linspace(0, 2 * np.pi, 100)
    curve = predicted_curve(end * np.cos(angle) / 2, end * np.sin(angle) / 2)
    figure = draw([panel("Circle", "x", "y", curve, xlim=(-end, end), ylim=(-end, end))])
    figure.draw_without_rendering()
    box = figure.axes[0].get_window_extent()
    assert box.width == pytest.approx(box.height, rel=0.01)


def test_cards_name_their_curves():
    x = np.linspace(0, 1, 20)
    text = thumbnail(
        panel("T", "x", "y", observed_curve(x, x, "lazy"), observed_curve(x, 0 * x, "rich"))
    )
    assert "lazy" in text and "rich" in text
