"""A sheet on which ideas are drawn: lines, arrows, dots and words in the colours of the page, as SVG in text."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

WIDTH = 420.0  # of a sheet, in its own units; a phone shows it at 0.85
SIZE = 13.6  # of words: 11 pixels where a phone shows the sheet 342 pixels wide
HEAD = 7.0  # length of the head of an arrow
DASHES = {"": "", "dashed": "6 3", "dotted": "1.5 3"}


class Ranges(NamedTuple):
    """What a part of a sheet shows, in the units of what is drawn."""

    x: tuple[float, float]
    y: tuple[float, float]


class Box(NamedTuple):
    """Where a part of a sheet lies, from its upper left corner."""

    left: float
    top: float
    width: float
    height: float


@dataclass
class Sheet:
    """A drawing as it grows.

    Attributes:
        height: in the units of ``WIDTH``.
        marks: its elements, in the order in which they cover each other.
    """

    height: float
    marks: list[str] = field(default_factory=list)

    def part(self, box: Box, ranges: Ranges) -> "Part":
        """Return a part of the sheet with units of its own."""
        return Part(self, box, ranges)

    def svg(self, label: str) -> str:
        """Return the drawing.

        Args:
            label: what it shows, for those who do not see it.
        """
        return (
            f'<svg viewBox="0 0 {WIDTH:g} {self.height:g}" role="img" aria-label="{escape(label)}">'
            f"{''.join(self.marks)}</svg>"
        )


@dataclass(frozen=True)
class Part:
    """A part of a sheet, drawn in the units of what it shows; colours are the roles of the style sheet."""

    sheet: Sheet
    box: Box
    ranges: Ranges

    def place(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        """Return points of the sheet, ``(points, 2)``."""
        (left, right), (low, high) = self.ranges
        box = self.box
        across = box.left + (np.asarray(x, float) - left) / (right - left) * box.width
        down = box.top + (high - np.asarray(y, float)) / (high - low) * box.height
        return np.stack(np.broadcast_arrays(across, down), -1).reshape(-1, 2)

    def line(
        self,
        x: ArrayLike,
        y: ArrayLike,
        role: str = "ink",
        width: float = 1.6,
        dash: str = "",
        moves: str = "",
    ) -> None:
        """Draw a line through points.

        Args:
            x: abscissae.
            y: ordinates.
            role: the colour.
            width: of the line, in units of the sheet.
            dash: ``"dashed"``, ``"dotted"`` or nothing.
            moves: the name by which a script finds it to draw it anew, with what it needs to place points.
        """
        points = " ".join(f"{across:.1f},{down:.1f}" for across, down in self.place(x, y))
        dashes = f' stroke-dasharray="{DASHES[dash]}"' if dash else ""
        self._add(
            f'<polyline points="{points}" fill="none" style="stroke:var(--{role})" stroke-width="{width:g}"'
            f' stroke-linejoin="round" stroke-linecap="round"{dashes}{self._found_by(moves)}/>'
        )

    def _found_by(self, name: str) -> str:
        """Return what tells a script which line this is, and where its units lie on the sheet."""
        if not name:
            return ""
        numbers = (*self.box, *self.ranges.x, *self.ranges.y)
        return f' data-curve="{name}" data-place="{" ".join(f"{number:g}" for number in numbers)}"'

    def area(self, x: ArrayLike, y: ArrayLike, role: str, share: float = 0.14) -> None:
        """Fill the area inside of points with a part of a colour."""
        points = " ".join(f"{across:.1f},{down:.1f}" for across, down in self.place(x, y))
        self._add(
            f'<polygon points="{points}" style="fill:var(--{role})" fill-opacity="{share:g}"/>'
        )

    def forbidden(self, x: tuple[float, float], y: tuple[float, float], gap: float = 7.0) -> None:
        """Hatch a rectangle where nothing can be for long."""
        (left, low), (right, high) = self.place(x, y)
        bottom = max(low, high)
        top = min(low, high)
        height = bottom - top
        for start in np.arange(left - height, right, gap):
            from_x = max(start, left)
            to_x = min(start + height, right)
            if to_x > from_x:
                self._add(
                    f'<line x1="{from_x:.1f}" y1="{bottom - (from_x - start):.1f}" x2="{to_x:.1f}" '
                    f'y2="{bottom - (to_x - start):.1f}" style="stroke:var(--gap-line)" stroke-width="1"/>'
                )

    def dots(
        self,
        x: ArrayLike,
        y: ArrayLike,
        role: str = "ink",
        radius: ArrayLike = 3.2,
        hollow: bool = False,
    ) -> None:
        """Draw dots."""
        places = self.place(x, y)
        radii = np.broadcast_to(radius, len(places))
        inside = "var(--paper)" if hollow else f"var(--{role})"
        for (across, down), size in zip(places, radii, strict=True):
            self._add(
                f'<circle cx="{across:.1f}" cy="{down:.1f}" r="{size:.1f}" '
                f'style="fill:{inside};stroke:var(--{role})" stroke-width="1.4"/>'
            )

    def arrow(
        self,
        start: tuple[float, float],
        end: tuple[float, float],
        role: str = "ink",
        width: float = 1.8,
        dash: str = "",
    ) -> None:
        """Draw an arrow from one point to another."""
        first, last = self.place([start[0], end[0]], [start[1], end[1]])
        along = last - first
        length = float(np.hypot(*along))
        if not length:
            return
        along = along / length
        across = np.array([-along[1], along[0]])
        neck = last - HEAD * along
        dashes = f' stroke-dasharray="{DASHES[dash]}"' if dash else ""
        self._add(
            f'<line x1="{first[0]:.1f}" y1="{first[1]:.1f}" x2="{neck[0]:.1f}" y2="{neck[1]:.1f}" '
            f'style="stroke:var(--{role})" stroke-width="{width:g}"{dashes}/>'
        )
        corners = (last, neck + 0.45 * HEAD * across, neck - 0.45 * HEAD * across)
        points = " ".join(f"{corner[0]:.1f},{corner[1]:.1f}" for corner in corners)
        self._add(f'<polygon points="{points}" style="fill:var(--{role})"/>')

    def words(
        self,
        text: str | Sequence[str],
        at: tuple[float, float],
        role: str = "ink",
        anchor: str = "start",
        shift: tuple[float, float] = (0.0, 0.0),
        bold: bool = False,
    ) -> None:
        """Write words beside a point; several lines go downwards.

        Args:
            text: a line, or several.
            at: the point.
            role: the colour.
            anchor: which end of the line is at the point: start, middle or end.
            shift: right and down from the point, in units of the sheet.
            bold: whether they are a title.
        """
        lines = [text] if isinstance(text, str) else list(text)
        across, down = self.place(*at)[0] + shift
        weight = ' class="bold"' if bold else ""
        for number, line in enumerate(lines):
            self._add(
                f'<text x="{across:.1f}" y="{down + 1.25 * SIZE * number:.1f}" text-anchor="{anchor}" '
                f'font-size="{SIZE:g}"{weight} style="fill:var(--{role})">{escape(line)}</text>'
            )

    def frame(self, role: str = "rule") -> None:
        """Draw the border of the part."""
        box = self.box
        self._add(
            f'<rect x="{box.left:g}" y="{box.top:g}" width="{box.width:g}" height="{box.height:g}" fill="none" '
            f'style="stroke:var(--{role})" stroke-width="1"/>'
        )

    def axes(self, x: str, y: str) -> None:
        """Draw two axes with their names at the ends; the name of the first may be empty."""
        box = self.box
        left = self.ranges.x[0]
        low, high = self.ranges.y
        self.line([left, self.ranges.x[1]], [low, low], "soft", 1)
        self.line([left, left], [low, high], "soft", 1)
        if x:
            self.words(x, (self.ranges.x[1], low), "soft", "end", (0, 16))
        self.words(y, (left, high), "soft", "start", (0, -6 if box.top > SIZE else SIZE))

    def _add(self, mark: str) -> None:
        self.sheet.marks.append(mark)
