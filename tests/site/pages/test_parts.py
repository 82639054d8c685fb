"""The small parts: figures made fit for pages, interval graphics, numbers."""

import math
import re

import numpy as np
import pytest

from steepest.core.checks import Interval, bound, equal, order
from steepest.core.panels import observed_curve, panel
from steepest.site.drawing import svg
from steepest.site.pages._bars import WIDTH, bar
from steepest.site.pages._figures import inline
from steepest.site.pages._formula import formula
from steepest.site.pages._text import allowed, ends, number, prose

HOSTILE = """<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
 viewBox="0 0 9 9" onload="alert(1)"><style>*{fill:red}</style><script>alert(1)</script>
 <a href="http://x"><path d="M0 0"/></a>
 <image xlink:href="http://x/y.png"/><path id="p" d="M 0 0 L 1 1" style="fill: url(http://x)" onclick="alert(1)"/>
 <use xlink:href="http://x#p"/><use xlink:href="#p" x="1"/><text>a &lt;script&gt;</text></svg>"""


def test_a_stored_figure_brings_nothing_along():
    text = inline(HOSTILE, "f0-", 'a "label" <b>')
    assert not re.search(r"http|<script|<style|<image|<a |onload|onclick|xmlns|<\?xml", text)
    assert '<path d="M0 0L1 1" id="f0-0" />' in text
    assert 'href="#f0-0"' in text
    assert "a &lt;script&gt;" in text
    assert 'aria-label="a &quot;label&quot; &lt;b&gt;"' in text


def test_two_figures_share_no_identifier():
    figure = svg([panel("t", "x", "y", observed_curve(np.arange(9), np.arange(9.0)))])
    first, second = (
        set(re.findall(r' id="([^"]+)"', inline(figure, prefix, "x"))) for prefix in ("a-", "b-")
    )
    assert first and second and not first & second


def test_inlining_makes_figures_lighter():
    figure = svg(
        [panel("t", "x", "y", observed_curve(np.arange(300), np.arange(300.0), kind="points"))]
    )
    assert len(inline(figure, "f-", "x")) < 0.5 * len(figure)


@pytest.mark.parametrize(
    "check",
    [
        equal("a", 1.0, [0.98, 1.01, 1.0], 0.1),
        bound("b", 8.6e-15, at_most=1e-9),
        bound("c", 3.0, at_least=1.0),
        order("d", ["x", "y"], {"x": [0.0, 0.1], "y": [1.0, 1.2]}),
        equal("e", 0.0, 0.0, 0.1),
        equal("f", 1.0, 1e6, 0.01),
    ],
    ids=lambda check: check.name,
)
def test_bars_stay_in_their_box(check):
    text = bar(check)
    for x in re.findall(r'(?:x|cx)="(-?[\d.]+)"|M(-?[\d.]+) ', text):
        assert 0 <= float(x[0] or x[1]) <= WIDTH
    left, width = re.search(r'class="margin" x="([\d.]+)" y="2" width="([\d.]+)"', text).groups()
    assert float(width) >= 2 and float(left) + float(width) <= WIDTH + 2


def test_what_is_not_finite_has_no_bar():
    assert bar(equal("a", 1.0, [math.nan, 1.0], 0.1)) == ""


def test_bars_tell_the_truth():
    """The interval's line lies in the margin's band exactly when the check holds."""
    for measured in np.linspace(0.8, 1.2, 9):
        check = equal("a", 1.0, measured, 0.1)
        left, width = map(
            float,
            re.search(r'class="margin" x="([\d.]+)" y="2" width="([\d.]+)"', bar(check)).groups(),
        )
        dot = float(re.search(r'cx="([\d.]+)"', bar(check))[1])
        assert (left - 0.1 <= dot <= left + width + 0.1) == (check.verdict == "holds")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (1e-9, "10⁻⁹"),
        (123456.0, "1.235×10⁵"),
        (12345.678, "12346"),
        (True, "True"),
        ("sgd", "sgd"),
        ((), ""),
        (None, "none"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (10, "10"),
        (-0.25, "−0.25"),
        (99999.7, "10⁵"),
    ],
)
def test_numbers(value, shown):
    assert number(value) == shown


def test_intervals_and_margins():
    assert ends(Interval(math.nan, math.nan)) == "not finite"
    assert ends(Interval(2.0, 2.0)) == "[2, 2]"
    assert allowed(Interval(3.99999, 4.00001)) == "3.99999 to 4.00001"
    assert allowed(Interval(1.0, math.inf)) == "≥ 1"


def test_prose_and_formulas_escape():
    assert prose("One `a<b`.\n\n    x = 1 < 2\n") == (
        "<p>One <code>a&lt;b</code>.</p>\n<pre><code>x = 1 &lt; 2</code></pre>"
    )
    assert '<math display="block" alttext="\\Theta &lt; \\frac{1}{x}">' in formula(
        r"\Theta < \frac{1}{x}"
    )


def test_formulas_are_set_as_mathematics_is():
    assert '<mi mathvariant="normal">' in formula(r"\Theta(1)")
    assert '<mi>log</mi><mspace width="0.167em" /><mi>t</mi>' in formula(r"\log t")
    assert "<mo>&#8764;</mo>" in formula(r"a \sim b") or "<mo>∼</mo>" in formula(r"a \sim b")
    assert "arg" in formula(r"\arg\min_x f(x)")
    with pytest.warns(UserWarning, match="nonsense"):
        formula(r"\nonsense x")


def test_pixels_of_large_maps_come_along_and_nothing_else_does():
    text = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 1 1">'
        '<image xlink:href="data:image/png;base64,AAAA" width="1" height="1"/>'
        '<image xlink:href="https://example.org/a.png"/><image xlink:href="data:image/svg+xml;base64,AAAA"/></svg>'
    )
    found = inline(text, "f0-", "map")
    assert found.count("<image") == 1
    assert 'href="data:image/png;base64,AAAA"' in found
    assert "example" not in found
    assert "svg+xml" not in found


LABELS = {
    "λ_max of C_W": "λ<max> of C<W>",
    "n^(-1/2), t^−0.3, 2^m": "n<−1/2>, t<−0.3>, 2<m>",
    "‖X‖_F / n^{-1/2}": "‖X‖<F> / n<−1/2>",
    "x_value of my_field": "x_value of my_field",
}


@pytest.mark.parametrize("label", LABELS)
def test_indices_and_exponents_of_labels_are_set(label):
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><text x="1">{label}</text></svg>'
    shown = str(inline(svg, "p-", "words"))
    small = re.sub(r'<tspan dy="[-\d]+" style="font-size:75%">([^<]*)</tspan>', r"⟨\1⟩", shown)
    text = re.sub(r"<[^>]*>", "", small).replace("\u200b", "")
    assert text.replace("⟨", "<").replace("⟩", ">") == LABELS[label]
    moves = [int(move) for move in re.findall(r'dy="([-\d]+)"', shown)]
    assert sum(moves) == 0  # what follows is on the line again
