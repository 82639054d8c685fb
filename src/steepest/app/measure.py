"""What the terminal shows of a measurement."""

import math
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from steepest.app.agreement import is_agreed
from steepest.app.console import bar, wide
from steepest.app.streams import say
from steepest.core.devices import check_device
from steepest.core.errors import UserError
from steepest.core.words import duration
from steepest.measurement import (
    BRIEF,
    ERRORS,
    Builder,
    Plan,
    Reading,
    Report,
    errors,
    load_checkpoint,
    measure,
    number,
    step_transfer,
    width_check,
)


def measured(known: Any) -> Report:
    """Measure as the command line says; show progress, and the findings unless JSON is wanted."""
    with bar() as shown:
        task = shown.add_task("", total=None, claim=known.model, stage="loading")
        builder = Builder.of(known.model)
        if "jax" in sys.modules:
            check_device()
        built = builder()
        report = measure(
            built.model,
            built.loss,
            built.data,
            what=known.what.split(",") if known.what else None,
            lr=built.lr if known.lr is None else known.lr,
            momentum=known.momentum,
            optimizer=built.optimizer,
            weight_decay=known.weight_decay,
            batch=known.batch or built.batch,
            curvature=known.curvature,
            since=None if known.since is None else load_checkpoint(known.since),
            micro_batch=known.micro_batch,
            features=built.features,
            held_out=built.held_out,
            thorough=known.thorough,
            statistics=known.statistics,
            noise=known.noise,
            descents=known.descents,
            stationary=known.stationary,
            seed=known.seed,
            watch=lambda stage: shown.update(task, stage=stage),
        )
    if not known.json:
        show(report, known.all)
    return report


def checked_widths(known: Any) -> Report:
    """Check the scaling with width as the command line says; show progress, and the findings unless JSON is wanted."""
    options = {"seeds": known.seeds, "steps": known.steps}
    with bar() as shown:
        task = shown.add_task("", total=None, claim=known.model, stage="loading")
        report = width_check(
            known.model,
            known.widths,
            **{name: given for name, given in options.items() if given is not None},
            seed=known.seed,
            watch=lambda stage: shown.update(task, stage=stage),
        )
    if not known.json:
        show(report, known.all)
    return report


def transferred(known: Any) -> Report:
    """Find best steps at several widths as the command line says; say the cost before, show progress and findings.

    Raises:
        UserError: a person who does not want to wait so long; whatever ``step_transfer`` refuses.
    """
    options = {"factors": known.factors, "seeds": known.seeds, "steps": known.steps}
    with bar() as shown:
        task = shown.add_task("", total=None, claim=known.model, stage="loading")

        def announce(plan: Plan) -> None:
            shown.stop()
            trainings = f"{plan.trainings} trainings of {plan.steps} steps at most"
            say(
                f"steepest: best steps of {known.model} take {trainings}: about {duration(plan.seconds)}"
            )
            if not (known.yes or is_agreed(plan.seconds)):
                raise UserError("nothing was run; choose fewer --factors, --seeds or --steps")
            shown.start()

        report = step_transfer(
            known.model,
            known.widths,
            **{name: given for name, given in options.items() if given is not None},
            seed=known.seed,
            announce=announce,
            watch=lambda stage: shown.update(task, stage=stage),
        )
    if not known.json:
        show(report, known.all)
    return report


def show(report: Report, all_readings: bool = False) -> None:
    """Print a report with its findings last, as what comes before them scrolls away.

    Args:
        report: what is shown.
        all_readings: whether the readings are shown, or one line says how many there are.
    """
    console = wide()
    title = f"{report.model}: {report.weights} weights, {report.examples} examples"
    console.print(f"[bold]{escape(title)}[/]", highlight=False)
    if all_readings:
        _show_readings(console, report)
    else:
        console.print(f"{_counted(report)}; --all shows them", markup=False, highlight=False)
    for finding in report.findings:
        line = f"  {finding.sign} {finding.text}  ({finding.evidence})"
        console.print(line, markup=False, highlight=False)


def _counted(report: Report) -> str:
    """Say how many readings there are, and how many quantities could not be measured."""
    missing = sum(math.isnan(quantity.value) for quantity in report.quantities)
    count = len(report.quantities) - missing
    many = "1 reading" if count == 1 else f"{count} readings"
    return f"{many}, {missing} not measured" if missing else many


def _show_readings(console: Console, report: Report) -> None:
    """Print all readings with their errors, what these are about, what theory assumes, and what it cost."""
    table = Table(
        "quantity",
        "value",
        "theory",
        "what it means",
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    for quantity in report.quantities:
        if quantity.layer:
            continue
        numeric = quantity.compared is not None and "η" in quantity.theory
        compared = f" = {quantity.compared:.4g}" if numeric else ""
        value = "\n".join([number(quantity), *errors(quantity, BRIEF)])
        table.add_row(quantity.name, value, quantity.theory + compared, quantity.interpretation)
    console.print(table, markup=False)
    for layers in _by_layer(report):
        console.print(layers, markup=False)
    for source in _sources(report):
        console.print(f"  ({BRIEF[source]}): {ERRORS[source]}", markup=False, highlight=False)
    asked = [
        (quantity.name, text, holds)
        for quantity in report.quantities
        for text, holds in quantity.assumes
    ]
    for name, text, holds in asked:
        sign = {True: "✓", False: "✗", None: "?"}[holds]
        console.print(f"  {sign} {name} assumes: {text}", markup=False, highlight=False)
    console.print(f"{report.passes} passes over the data, {report.seconds:.1f} s", highlight=False)


LAYERS = {
    "width-start": "at the start",
    "width-change": "change at the end",
    "width-update": "own update",
}
ARRAYS = {"width-weights": "relative change at the end"}


def _by_layer(report: Report) -> Iterator[Table]:
    """Yield tables with one row a layer, and one an array of weights; nothing where no reading is of one."""
    for what, titles in (
        ("powers of the width, by layer", LAYERS),
        ("by array of weights", ARRAYS),
    ):
        cells = {
            (reading.layer, reading.id): reading
            for reading in report.quantities
            if reading.id in titles
        }
        rows = dict.fromkeys(layer for layer, _ in cells)
        if not rows:
            continue
        table = Table(what, *titles.values(), box=None, pad_edge=False, header_style="bold")
        for layer in rows:
            table.add_row(layer, *[_power(cells.get((layer, id))) for id in titles])
        yield table


def _power(reading: Reading | None) -> str:
    """Return a power of the width with its interval."""
    if reading is None or reading.interval is None:
        return "–"
    low, high = reading.interval
    return f"{reading.value:.2f} ({low:.2f} to {high:.2f})"


def _sources(report: Report) -> list[str]:
    """Return the sources of error that occur in a report."""
    sources = [q.source_of_error for q in report.quantities if q.interval is not None]
    sources += ["examples" for q in report.quantities if q.over_examples is not None]
    return list(dict.fromkeys(sources))
