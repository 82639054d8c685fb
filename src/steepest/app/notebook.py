"""Results, sweeps and trainings as notebooks show them: a table with intervals and assumptions, and the picture."""

from dataclasses import fields
from html import escape
from typing import Any

from steepest.core.checks import Check
from steepest.core.words import LOOKS
from steepest.engine.results import Result
from steepest.engine.sweeps import Sweep
from steepest.measurement import TrainingRun
from steepest.site.drawing import draw, svg

TITLES = ("predicted", "measured", "interval", "agrees if", "would notice", "verdict")


class ShownResult(Result):
    """A result that a notebook shows, with its figure."""

    def figure(self) -> Any:
        """Return the claim's figure as a matplotlib ``Figure``, which a notebook shows without any magic."""
        return draw(self.panels)

    def _repr_html_(self) -> str:
        look = LOOKS[self.verdict]
        head = (
            f"<p><b>{escape(self.claim)}</b>: {look.sign} {look.word} ({escape(self.reason)})</p>"
        )
        assumed = "".join(
            f"<li>{'✓' if hypothesis.holds else '✗'} {escape(str(hypothesis))}</li>"
            for hypothesis in self.assumptions
        )
        tables = [
            table(
                (title, *TITLES),
                [cells(check) for check in self.checks if check.decides is decides],
            )
            for title, decides in (("check", True), ("identities and consistency", False))
        ]
        rivals = "".join(
            f"<li>{'rejected' if rival.rejected else 'not rejected'}: {escape(rival.name)}</li>"
            for rival in self.rivals
        )
        controls = "".join(
            f"<li>{'told apart' if control.rejected else 'passes'}: {escape(control.name)}</li>"
            for control in self.controls
        )
        lists = [listed("rivals", rivals), listed("controls", controls)]
        parts = [head, listed("assumed", assumed), *tables, *lists]
        return "".join(parts) + (svg(self.panels) if self.panels else "")


class ShownSweep(Sweep):
    """A sweep that a notebook shows, with its phase diagram."""

    def figure(self) -> Any:
        """Return the phase diagram as a matplotlib ``Figure``, which a notebook shows without any magic."""
        return draw(self.panels)

    def _repr_html_(self) -> str:
        counts = ", ".join(
            f"{count} {LOOKS[verdict].word}" for verdict, count in self.counts.items()
        )
        over = "; ".join(self.axes)
        head = f"<p><b>{escape(self.claim)}</b> over {escape(over)}: {counts} of {self.total} points</p>"
        rows = [
            (self.labels[id], self.ends(f"{id}_measured"), self.ends(f"{id}_predicted"))
            for id in (*self.judged, *self.others)
        ]
        picture = svg(self.panels) if self.panels else ""
        return head + table(("quantity", "measured", "predicted"), rows) + picture


class ShownTraining(TrainingRun):
    """A monitored training that a notebook shows, with its curves."""

    def figure(self) -> Any:
        """Return the curves as a matplotlib ``Figure``, which a notebook shows without any magic."""
        return draw(self.panels)

    def _repr_html_(self) -> str:
        return super()._repr_html_() + (svg(self.panels) if self.panels else "")


def shown(result: Result) -> ShownResult:
    """Return a result as a notebook shows it."""
    return ShownResult(**{field.name: getattr(result, field.name) for field in fields(result)})


def shown_sweep(sweep: Sweep) -> ShownSweep:
    """Return a sweep as a notebook shows it."""
    return ShownSweep(sweep.plan, sweep.points)


def cells(check: Check) -> tuple[str, ...]:
    """Return what a check's row shows under :data:`TITLES`, its name first."""
    numbers = (f"{check.predicted:.4g}", f"{check.measured:.4g}")
    ends = [f"{i.low:.4g} … {i.high:.4g}" for i in (check.interval, check.margin)]
    return (check.name, *numbers, *ends, check.would_notice, LOOKS[check.verdict].word)


def table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table in HTML; empty where there is no row."""
    if not rows:
        return ""
    head = "".join(f"<th>{title}</th>" for title in titles)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def listed(title: str, items: str) -> str:
    """Return items of a list in HTML under a title; empty where there is none."""
    return f"<p>{title}</p><ul>{items}</ul>" if items else ""
