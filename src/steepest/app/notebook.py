"""Results, sweeps and trainings as notebooks show them: a table with intervals and assumptions, and the picture."""

from collections.abc import Sequence
from dataclasses import fields
from html import escape
from typing import Any

from steepest.core.checks import Check, Rejection
from steepest.core.panels import Map, Panel
from steepest.core.words import LOOKS
from steepest.engine.rates import spelled_counts
from steepest.engine.results import Result
from steepest.engine.sweeps import Sweep
from steepest.engine.trials import Trials
from steepest.measurement import TrainingRun
from steepest.site.drawing import draw, svg

TITLES = ("predicted", "measured", "interval", "agrees if", "would notice", "verdict")


class ShownResult(Result):
    """A result that a notebook shows, with its figure."""

    def __repr__(self) -> str:
        count = f"{len(self.checks)} check{'s' * (len(self.checks) != 1)}"
        return (
            f"<{self.claim}: {LOOKS[self.verdict].word}, {self.reason}; {count}, seed {self.seed}>"
        )

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
            f"<li>{_by('rejected', rival) if rival.rejected else 'not rejected'}: {escape(rival.name)}</li>"
            for rival in self.rivals
        )
        controls = "".join(
            f"<li>{_by('told apart', control) if control.rejected else 'passes'}: {escape(control.name)}</li>"
            for control in self.controls
        )
        lists = [listed("rivals", rivals), listed("controls", controls)]
        parts = [head, listed("assumed", assumed), *tables, *lists]
        return "".join(parts) + _picture(self.panels)


class ShownSweep(Sweep):
    """A sweep that a notebook shows, with its phase diagram."""

    def __repr__(self) -> str:
        return f"<{self.claim} over {'; '.join(self.axes)}: {self._counted}>"

    def figure(self) -> Any:
        """Return the phase diagram as a matplotlib ``Figure``, which a notebook shows without any magic."""
        return draw(self.panels)

    def _repr_html_(self) -> str:
        over = "; ".join(self.axes)
        head = f"<p><b>{escape(self.claim)}</b> over {escape(over)}: {self._counted}</p>"
        rows = [
            (self.labels[id], self.ends(f"{id}_measured"), self.ends(f"{id}_predicted"))
            for id in (*self.judged, *self.others)
        ]
        return head + table(("quantity", "measured", "predicted"), rows) + _picture(self.panels)

    @property
    def _counted(self) -> str:
        """How many points have each verdict, in words."""
        counts = [f"{count} {LOOKS[verdict].word}" for verdict, count in self.counts.items()]
        return f"{', '.join(counts)} of {self.total} points"


class ShownTrials(Trials):
    """Trials that a notebook shows, with where in its scope the claim holds."""

    def __repr__(self) -> str:
        return f"<{self.claim}, version {self.version}: {self._counted}>"

    def figure(self) -> Any:
        """Return where the claim holds as a matplotlib ``Figure``, which a notebook shows without any magic."""
        return draw(self.panels)

    def _repr_html_(self) -> str:
        head = f"<p><b>{escape(self.claim)}</b>, version {self.version}: {self._counted}</p>"
        rows = [(LOOKS[row.verdict].word, row.reason, row.command) for row in self.exceptions]
        return head + table(("verdict", "why", "command"), rows) + _picture(self.panels)

    @property
    def _counted(self) -> str:
        """How many seeds and settings hold, in words."""
        counts = (self.seeds.hold_rate(), self.settings.hold_rate())
        return spelled_counts(*counts) or "nothing was run"


class ShownTraining(TrainingRun):
    """A monitored training that a notebook shows, with its curves."""

    def __repr__(self) -> str:
        findings = "; ".join(f"{one.sign} {one.text}" for one in self.findings)
        return f"<{self.title}: {findings}>"

    def figure(self) -> Any:
        """Return the curves as a matplotlib ``Figure``, which a notebook shows without any magic."""
        return draw(self.panels)

    def _repr_html_(self) -> str:
        return super()._repr_html_() + _picture(self.panels)


def shown(result: Result) -> ShownResult:
    """Return a result as a notebook shows it."""
    return ShownResult(**{field.name: getattr(result, field.name) for field in fields(result)})


def shown_sweep(sweep: Sweep) -> ShownSweep:
    """Return a sweep as a notebook shows it."""
    return ShownSweep(sweep.plan, sweep.points)


def _picture(panels: Sequence[Panel | Map]) -> str:
    """Return the figure as a part of a page: without the head of a file, on white, as its letters are dark."""
    if not panels:
        return ""
    text = svg(panels)
    return f'<div style="background: white; overflow-x: auto">{text[text.index("<svg") :]}</div>'


def _by(word: str, wrong: Rejection) -> str:
    """Return a word with the checks that failed for a rival or a control."""
    return f"{word} by {escape(', '.join(wrong.by))}"


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
