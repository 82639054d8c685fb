"""Title and legend above an axes."""

import textwrap
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ._colours import Detail


def heading(ax: Any, title: str, detail: Detail) -> int:
    """The title, and below it the legend in as few rows as fit, never over a curve; returns how many."""
    handles, labels = ax.get_legend_handles_labels()
    labels = [textwrap.fill(label, detail.letters_across(44)) for label in labels]
    rows = 0
    if labels:
        columns = next(
            n
            for n in range(len(labels), 0, -1)
            if n == 1 or _width(labels, n) < 60 * detail.size[0]
        )
        per = -(-len(labels) // columns)
        columns = -(-len(labels) // per)
        rows = sum(max(label.count("\n") + 1 for label in labels[i::per]) for i in range(per))
        place = {
            "loc": "lower left",
            "bbox_to_anchor": (-0.01, 1),
            "borderaxespad": 0.2,
            "borderpad": 0.2,
        }
        gaps = {"columnspacing": 1.4, "handlelength": 2, "labelspacing": 0.25}
        ax.legend(handles, labels, ncols=columns, **place, **gaps).set_in_layout(
            False
        )  # the title makes room for it
    # a blank title of no height keeps the legend's room
    ax.set_title(
        textwrap.fill(title, detail.letters_across(46)) or " ",
        pad=12.2 * rows + 6 * bool(title),
        fontsize=10 if title else 0.5,
    )
    return rows


def _width(labels: Sequence[str], columns: int) -> float:
    """How wide a legend is, in points: text, handle and gaps of every column."""
    wide = [_letters(label.replace("\n", "  ")) for label in labels]
    return sum(max(column) + 35 for column in np.array_split(wide, columns))


@cache
def _letters(text: str) -> float:
    """How wide a label is, in points; the outlines of its letters would take thirty times as long."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=8.5)
    return text_to_path.get_text_width_height_descent(text, font, ismath="$" in text)[0]
