"""``steepest run CLAIM --subject FILE.py:FUNCTION``: a claim on a reader's own network."""

import argparse
from collections.abc import Sequence

from steepest.app.agreement import is_agreed
from steepest.app.console import bar, wide
from steepest.app.details import show_details
from steepest.app.fields import read_fields
from steepest.app.pictures import written_or_said
from steepest.app.streams import say, say_page, tell_json
from steepest.catalogue import Entry
from steepest.core.words import LOOKS
from steepest.engine.results import Result
from steepest.engine.subjects import Offer, run_on, version_of


def run_on_subject(known: argparse.Namespace, entry: Entry, words: Sequence[str]) -> int:
    """Run a claim on what the reader's function builds, say the cost before, show the verdict, write the page."""
    changes = read_fields(version_of(entry), words)
    with bar() as shown:
        task = shown.add_task("", total=1, completed=0, claim=entry.name, stage="starting")

        def agree(offer: Offer) -> bool:
            shown.stop()
            say(f"steepest: {entry.name} on {known.subject} takes {offer.text}")
            agreed = known.yes or is_agreed(offer.seconds)
            shown.start()
            return agreed

        result = run_on(
            entry,
            known.subject,
            seed=known.seed,
            changes=changes,
            watch=lambda stage: shown.update(task, stage=stage),
            agree=agree,
        )
    if result is None:
        say("steepest: nothing was run")
        return 3
    if known.json:
        tell_json(result.to_json())
    else:
        _show(result)
    if known.page is not None:
        from steepest.site.pages import subject_page

        page = written_or_said("the page", lambda: subject_page(result, known.page))
        if page is not None:
            say_page(page, known.json)
    return {"holds": 0, "fails": 1}.get(str(result.verdict), 3)


def _show(result: Result) -> None:
    console = wide()
    subject = result.about["subject"]
    head = f"{subject['model']}: {subject['weights']} weights, {subject['examples']} examples"
    console.print(f"{subject['where']} — {head}", markup=False, highlight=False)
    console.print(subject["says"], markup=False, highlight=False)
    for line in subject["plainly"]:
        console.print(
            f"  {LOOKS[line['verdict']].sign} {line['text']}", markup=False, highlight=False
        )
    look = LOOKS[result.verdict]
    show_details(console, result, f"[{look.colour}]{look.sign}[/]")
    for clause in subject["assumed"]:
        console.print(f"  ? assumes, unchecked: {clause}", markup=False, highlight=False)
    for name, why in subject["left_out"].items():
        console.print(f"  left out: {name} — {why}", markup=False, highlight=False)
