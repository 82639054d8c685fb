"""Panels drawn with matplotlib: figures for notebooks, deterministic SVG for pages."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from steepest.panels import Curve, Panel

# One colour a role, readable on white; pages replace INK, GRID and these by variables of the theme.
COLOURS = {"observed": "#1f6fb4", "predicted": "#c4451c", "rival": "#7a7a7a", "context": "#8a63b8"}
INK = "#222221"
GRID = "#c9c9c8"
# Families of curves go from the role's colour towards a lighter or greener relative of it.
FAMILY = {"observed": "#35b8a0", "predicted": "#e0a92e", "rival": "#b5b5b5", "context": "#d06fb0"}
PANEL_SIZE = (4.6, 3.4)  # inches


def draw(panels: Sequence[Panel]) -> Any:
    """A matplotlib ``Figure`` with one axes a panel, at most two in a row.

    It belongs to no window system: show it in a notebook, or save it with ``figure.savefig``.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    columns = min(2, max(1, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    with rc_context(STYLE):
        figure = Figure(figsize=(PANEL_SIZE[0] * columns, PANEL_SIZE[1] * rows), layout="constrained")
        figure.patch.set_alpha(0)
        axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
        for ax, panel in zip(axes, panels, strict=False):
            _panel(ax, panel)
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
    return figure


def svg(panels: Sequence[Panel]) -> str:
    """The figure as SVG text: the same panels give the same bytes."""
    from matplotlib import rc_context

    figure = draw(panels)
    text = io.StringIO()
    with rc_context(STYLE):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    return text.getvalue()


STYLE = {
    "svg.hashsalt": "steepest",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.5,
    "axes.formatter.useoffset": False,
}


def _panel(ax: Any, panel: Panel) -> None:
    ax.set(title=panel.title, xlabel=panel.x, ylabel=panel.y, xscale=panel.xscale, yscale=panel.yscale)
    for curve in panel.curves:
        _curve(ax, curve)
    if panel.ylim:
        ax.set_ylim(*panel.ylim)
    if panel.xlim:
        ax.set_xlim(*panel.xlim)
    if any(curve.label for curve in panel.curves):
        ax.legend()


def _curve(ax: Any, curve: Curve) -> None:
    x, y = np.asarray(curve.x, float), np.asarray(curve.y, float)
    look = {"color": _colour(curve)}
    if y.ndim == 2:
        # Every seed faintly; the label once.
        for row in y[1:]:
            ax.plot(np.broadcast_to(x, y.shape)[0], row, lw=0.7, alpha=0.45, **look)
        x, y, look = np.broadcast_to(x, y.shape)[0], y[0], {**look, "lw": 0.7, "alpha": 0.9}
    label = curve.label or None
    if curve.kind == "points":
        ax.plot(x, y, "o", ms=4, label=label, **look)
    elif curve.kind == "steps":
        ax.step(x, y, where="post", label=label, **look)
    else:
        ax.plot(x, y, "--" if curve.kind == "dashed" else "-", label=label, **look)


def _colour(curve: Curve) -> str:
    first, last = COLOURS[curve.role], FAMILY[curve.role]
    mix = [
        round(int(first[i : i + 2], 16) * (1 - curve.shade) + int(last[i : i + 2], 16) * curve.shade)
        for i in (1, 3, 5)
    ]
    return "#" + "".join(f"{part:02x}" for part in mix)
