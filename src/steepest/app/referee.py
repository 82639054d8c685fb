"""``steepest referee``: how a claim could be wrong, by severity, with what shows each finding again."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from steepest.app.console import bar, styled, wide
from steepest.app.pictures import written_or_said
from steepest.app.referee_words import HEADINGS, NOTHING, said, said_run, summary, to_json
from steepest.app.streams import say_page, tell_json
from steepest.catalogue import Entry
from steepest.engine.referee import Review, Severity, review
from steepest.engine.store import Store
from steepest.site.pages import referee_page

PYTHON = "from steepest.engine.referee import bench"
"""First line of what shows a finding again in Python; the terminal prints it once."""


def referee(
    entry: Entry, results: Path, *, runs: int, as_json: bool = False, page: Path | None = None
) -> Review:
    """Review a claim, and print what was found; return the review.

    Args:
        entry: the claim.
        results: folder of results.
        runs: how many runs at other settings.
        as_json: whether to print JSON and nothing else.
        page: an HTML file to write, too.

    Raises:
        UserError: a folder or page that cannot be written.
    """
    with bar() as shown:
        task = shown.add_task("", total=None, claim=entry.name, stage="starting")
        watch = lambda stage: shown.update(task, stage=stage)
        reviewed = review(entry, Store(results), runs=runs, watch=watch)
    if as_json:
        tell_json(to_json(reviewed))
    else:
        show_review(reviewed)
    if page is not None:
        written = written_or_said("the page", lambda: write_review(reviewed, page))
        if written is not None:
            say_page(written, as_json)
    return reviewed


def show_review(review: Review) -> None:
    """Print the findings, the worst first."""
    console = wide()
    head = f"[bold]{review.claim}[/]: {escape(summary(review))}"
    where = f"{review.preset} preset, seed {review.seed}: {styled(review.verdict)}"
    console.print(f"{head} ({where})", highlight=False)
    for severity in Severity:
        _show_severity(console, review, severity)
    for run in review.runs:
        setting, came_to = said_run(run)
        console.print(f"  run at {setting}: {came_to}", markup=False, highlight=False)
    if any(finding.reproduce.startswith(PYTHON) for finding in review.findings):
        console.print(f"bench is in Python: {PYTHON}", markup=False, highlight=False)
    console.print(f"{review.judged} wrong arrays judged, {review.seconds:.1f} s", highlight=False)


def _show_severity(console: Console, review: Review, severity: Severity) -> None:
    findings = review.of(severity)
    heading = HEADINGS[severity] if findings else NOTHING[severity]
    if heading:
        console.print(heading, highlight=False)
    for finding in findings:
        words = said(finding)
        evidence = f" ({words.evidence})" if words.evidence else ""
        line = f"  {words.sign} {words.text}{evidence}"
        again = words.reproduce.removeprefix(PYTHON).strip()
        console.print(line, markup=False, highlight=False)
        console.print(f"      {again}", markup=False, highlight=False)


def write_review(review: Review, page: Path) -> Path:
    """Write a review as an HTML page; return the file."""
    groups = [
        (HEADINGS[severity], [said(finding) for finding in review.of(severity)])
        for severity in Severity
        if review.of(severity)
    ]
    runs = [(*said_run(run), run.reason, run.command) for run in review.runs]
    return referee_page(review, summary(review), groups, runs, page)
