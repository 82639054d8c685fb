"""Colours by meaning, and how much of a panel is drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steepest.core.words import CRASHED, LOOKS

# One colour a role, readable on white; pages replace INK, GRID and these by variables of the theme.
COLOURS = {"observed": "#1f6fb4", "predicted": "#c4451c", "rival": "#707070", "context": "#8a63b8"}
INK = "#222221"
GRID = "#dcdcda"
PALE = "#ffffff"
# Families of curves go from the role's colour towards a yellower or darker relative of it; measured ones, of which
# panels show most, go there by way of a dark teal, so that four of them are told apart.
# All can be read: names stand in them.
MIDDLE = {"observed": "#10303a"}
FAMILY = {"observed": "#587f00", "predicted": "#8f6507", "rival": "#474747", "context": "#b5467f"}
# What differs between the roles besides colour, for print and for those who see colours differently.
DASHES = {
    "predicted": (0, (4.5, 2)),
    "rival": (0, (1.2, 1.6)),
    "context": (0, (6, 2, 1.2, 2)),
    "observed": "--",
}
MARKERS = {"observed": "o", "predicted": "D", "rival": "X", "context": "s"}
SERIES = ("o", "s", "^", "v", "P", "*")
"""Markers of what was measured, one for each curve of a panel, so that they differ in more than a shade."""

# Cells of a map: the atlas's verdicts with their signs, lighter than its text so that a sign can stand on them and
# told apart by lightness too; a point that broke off; nothing at all.
_CELLS = {
    "holds": "#86cfa4",
    "fails": "#c4453b",
    "inconclusive": "#f2c84f",
    "out-of-range": "#a08fdc",
    CRASHED: "#85888c",
}
VERDICTS = {word: (colour, LOOKS[word].sign) for word, colour in _CELLS.items()}
GAP = "#e3e3e0"
GAP_LINE = "#b3b3af"
MARK = "#232120"  # signs on cells: dark in every theme
# Any other words: colours that readers with any kind of colour vision can tell apart, and signs that differ.
OTHERS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#d55e00")
SIGNS = "●▲■◆▼★"
LEVELS = 64


@dataclass(frozen=True)
class Detail:
    """How much of a panel is drawn.

    Attributes:
        size: width and height in inches.
        points: most points of a lone curve; curves of many seeds share six times as many.
        seeds: most seeds drawn of one curve.
        ticks: most labelled ticks of an axis.
        bare: leave out title and grid.
    """

    size: tuple[float, float]
    points: int
    seeds: int
    ticks: int
    bare: bool = False

    def letters_across(self, full: int) -> int:
        """Return how many letters fit where a full figure has room for so many, side by side."""
        return round(full * self.size[0] / FULL.size[0])

    def letters_up(self, full: int) -> int:
        """Return how many letters fit along the vertical axis where a full figure has room for so many."""
        return round(full * self.size[1] / FULL.size[1])


FULL = Detail((4.2, 3.1), points=400, seeds=30, ticks=6)
PAGE = Detail((3.35, 2.6), points=260, seeds=16, ticks=5)
"""A figure of a page. On a phone a chapter has 317 pixels for it, in which letters of 8.5 points are 11 pixels high."""
SMALL = Detail((3.2, 1.9), points=60, seeds=3, ticks=4, bare=True)

STYLE: dict[Any, Any] = {
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color"), INK),
    "svg.hashsalt": "steepest", "svg.fonttype": "none",
    "figure.autolayout": False, "figure.constrained_layout.use": False,
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 9.5,
    "axes.titlesize": 10, "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.linewidth": 0.7, "xtick.labelsize": 8.5, "ytick.labelsize": 8.5,
    "grid.color": GRID, "grid.linewidth": 0.6, "lines.linewidth": 1.5,
    "axes.axisbelow": True, "legend.frameon": False, "legend.fontsize": 8.5,
}  # fmt: skip


def blend(role: str, shade: float) -> str:
    """A role's colour mixed with its relative: shade 0 is the role's own, steps of a hundredth."""
    colours = {"": COLOURS[role], "mid": MIDDLE.get(role, ""), "far": FAMILY[role]}
    first, last, share = mixture(role, shade)
    mixed = (
        int(colours[first][i : i + 2], 16) * (1 - share) + int(colours[last][i : i + 2], 16) * share
        for i in (1, 3, 5)
    )
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def mixture(role: str, shade: float) -> tuple[str, str, float]:
    """Return which two colours of a family make a shade, and the share of the second, in steps of a hundredth.

    Colours are named ``""``, the role's own, ``"mid"`` and ``"far"``.

    >>> mixture("observed", 0.25), mixture("observed", 0.75), mixture("rival", 0.75)
    (('', 'mid', 0.5), ('mid', 'far', 0.5), ('', 'far', 0.75))
    """
    shade = round(float(shade), 2)
    if role not in MIDDLE:
        return "", "far", shade
    if shade < 0.5:
        return "", "mid", round(2 * shade, 2)
    return "mid", "far", round(2 * shade - 1, 2)


def ramp() -> list[str]:
    """The colours of numbers, lowest first: even in lightness, and neither end as dark or light as a page.

    >>> len(ramp()), ramp()[0], ramp()[-1]
    (64, '#472e7c', '#dfe318')
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colormaps["viridis"](0.13 + 0.82 * i / (LEVELS - 1))) for i in range(LEVELS)]


def named(words: Sequence[str]) -> list[tuple[str, str]]:
    """Colour and sign of each word: a verdict's own, else the next of a list that differs for every eye.

    >>> named(["holds", "lazy"])
    [('#86cfa4', '✓'), ('#56b4e9', '●')]
    """
    other_words = [word for word in words if word not in VERDICTS]
    place = {word: i for i, word in enumerate(other_words)}
    other = lambda i: (OTHERS[i % len(OTHERS)], SIGNS[i % len(SIGNS)])
    return [VERDICTS[word] if word in VERDICTS else other(place[word]) for word in words]
