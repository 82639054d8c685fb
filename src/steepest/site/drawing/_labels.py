"""Words of a figure as matplotlib can set them, whoever wrote them."""

from dataclasses import replace
from functools import cache

from steepest.core.panels import Map, Panel
from steepest.core.text import visible


def settable(panel: Panel | Map) -> Panel | Map:
    """Return a panel whose words have no control characters, and dollars only around formulas that can be set."""
    curves = tuple(replace(curve, label=_set(curve.label)) for curve in panel.curves)
    words = {"title": _set(panel.title), "x": _set(panel.x), "y": _set(panel.y), "curves": curves}
    if isinstance(panel, Map):
        words |= {"label": _set(panel.label), "words": tuple(map(_set, panel.words))}
    return replace(panel, **words)


@cache
def _set(text: str) -> str:
    text = visible(text)
    if "$" not in text:
        return text
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(text)
    except (ValueError, RecursionError):
        return text.replace(r"\$", "$").replace("$", r"\$")
    return text
