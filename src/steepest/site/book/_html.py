"""The HTML of what a chapter shows: claims, numbers, moving figures."""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

import steepest
from steepest import catalogue
from steepest.core.checks import Check
from steepest.core.errors import UserError, nearest
from steepest.core.words import LOOKS
from steepest.engine.descriptions import description
from steepest.engine.results import Result
from steepest.site import pages
from steepest.site.pages import Run
from steepest.sources import sources

from ._gallery import GALLERY
from ._points import at_row, read_row
from ._statements import Outcome, State, Statement, StatementMap, counts
from ._where import where_it_holds
from .ideas import IDEAS, TOYS

STATES = {
    State.BUILT: "tested",
    State.PART: "tested in part",
    State.NONE: "not tested",
    State.UNTESTABLE: "no experiment can",
}
"""The words for how far a statement is tested."""
OUTCOMES = {
    Outcome.YES: "",
    Outcome.OPEN: "",
    Outcome.CORRECTED: "holds after a correction",
    Outcome.NO: "does not hold as said",
}
"""The words for what became of a statement, where it needs any."""
SIZES = 2
"""Most measurements that an erratum names; its claim has all."""
_serial = count()


@cache
def environment() -> Environment:
    """Return the templates of the book, with those of the pages below them."""
    own = PackageLoader("steepest.site.book", "templates")
    base = pages.environment()
    return base.overlay(loader=ChoiceLoader([own, base.loader or own]))


def claim(
    name: str,
    run: Run | None,
    root: str,
    panels: Sequence[int] = (1,),
    checks: Sequence[str] = (),
    rival: str = "",
    expect: str = "holds",
    far: bool = False,
) -> Markup:
    """Return a claim as a chapter shows it: figure, predicted and measured, what would refute it.

    Args:
        name: the claim.
        run: its result, or None where nothing is stored.
        root: the way from the page to the book's folder.
        panels: which panels of its figure, counted from 1.
        checks: ids of the checks to show, or their points as ``id[place]``; the first three that count without any.
        rival: id of the wrong theory to show; the first that is rejected without any.
        expect: the verdict that the text was written for.
        far: whether it is far down its page: then its figures are files.

    Raises:
        UserError: an id or a panel that the result has not.
    """
    shown: dict[str, Any] = {"entry": catalogue.entry(name), "root": root, "run": run}
    if run is not None:
        shown |= compared(run.result, checks, rival)
        shown |= {
            "figures": [_shown(run, place, root, far) for place in panels],
            "roles": pages.roles([run.result.panels[place - 1] for place in panels]),
            "unexpected": str(run.result.verdict) != expect,
            "expected": LOOKS[expect].word if expect in LOOKS else expect,
            "where": where_it_holds(run.result),
        }
    return Markup(environment().get_template("told.html").render(shown))


def compared(result: Result, checks: Sequence[str] = (), rival: str = "") -> dict[str, Any]:
    """Return what is compared in a result: the checks to show, and the wrong theory.

    Args:
        result: the result.
        checks: ids of the checks to show, or their points as ``id[place]``; the first three that count without any.
        rival: id of the wrong theory to show; the first that is rejected without any.

    Raises:
        UserError: an id that the result has not.
    """
    return {"result": result, "checks": _checks(result, checks), "rival": _rival(result, rival)}


def under(rival: Any, shown: Sequence[str], id: str) -> Check:
    """Return a check under a wrong theory, at the point that a table shows of it.

    Args:
        rival: how the wrong theory fared.
        shown: the rows of the table, as its author wrote them.
        id: of the check.
    """
    places = [one.place for one in map(read_row, shown) if one.check == id]
    judged = next(check for check in rival.checks if check.id == id)
    return at_row(judged, places[0] if places else None)


def panel(run: Run, place: int) -> tuple[str, Markup]:
    """Return title and graphic of one panel, with identifiers that no other graphic of the book has.

    Args:
        run: the result.
        place: which panel, counted from 1.

    Raises:
        UserError: there is no such panel.
    """
    return pages.figure(run, place - 1, f"b{next(_serial)}-")


def _shown(run: Run, place: int, root: str, far: bool) -> tuple[str, Markup, str]:
    """Return title, graphic and file of one panel; the file is empty where the book has no page of this run."""
    title, graphic = panel(run, place)
    if far:
        graphic = GALLERY.picture(graphic, f"{run.folder.name}-{place}", root)
    file = f"{root}claims/{run.folder.name}/figure-{place}.svg" if not run.result.changes else ""
    return title, graphic, file


def verdict(name: str, run: Run | None, root: str) -> Markup:
    """Return a claim's name with its verdict, linked to its page.

    Args:
        name: the claim.
        run: its result, or None where nothing is stored.
        root: the way from the page to the book's folder.
    """
    return Markup(environment().get_template("verdict.html").render(name=name, run=run, root=root))


def _checks(result: Result, ids: Sequence[str]) -> list[Check]:
    own = {check.id: check for check in result.checks}
    if not ids:
        return [at_row(check, None) for check in result.checks if check.decides][:3]
    rows = map(read_row, ids)
    return [at_row(_named(own, one.check, f"check of {result.claim}"), one.place) for one in rows]


def _rival(result: Result, id: str) -> Any:
    rejections = {one.id: one for one in (*result.rivals, *result.controls)}
    if id:
        return _named(rejections, id, f"rival of {result.claim}")
    return next((one for one in result.rivals if one.rejected), None)


def _named(by_id: Mapping[str, Any], id: str, what: str) -> Any:
    if id not in by_id:
        raise UserError(f"there is no {what} called {id!r}; {nearest(id, by_id)}")
    return by_id[id]


def moving(
    claim: str,
    field: str,
    runs: Sequence[tuple[str, Run | None]],
    panel: int,
    first: int,
    root: str,
) -> Markup:
    """Return a figure that a reader moves through settings; without scripts all are shown side by side.

    Args:
        claim: the claim.
        field: the field that takes the values.
        runs: value and result of each frame.
        panel: which panel of the figure, counted from 1.
        first: the frame at which it opens, counted from 0.
        root: the way from the page to the book's folder.
    """
    entry = catalogue.entry(claim)
    shown = [run for _, run in runs if run is not None and len(run.result.panels) >= panel]
    prefixes = [f"b{next(_serial)}-" for _ in shown]
    graphics = dict(
        zip(map(id, shown), pages.figures_alike(shown, panel - 1, prefixes), strict=True)
    )
    frames = []
    for place, (value, run) in enumerate(runs):
        graphic = graphics.get(id(run))
        if graphic is not None and place != first:  # hidden until a reader asks for it
            graphic = GALLERY.picture(graphic, f"moving-{claim}-{panel}-{field}-{place}", root)
        frames.append((value, run, graphic))
    serial = next(_serial)
    template = environment().get_template("moving.html")
    return Markup(
        template.render(
            entry=entry, field=field, frames=frames, first=first, root=root, serial=serial
        )
    )


def overview(
    names: Sequence[str], runs: Sequence[Run | None], root: str, above: Sequence[str] = ()
) -> Markup:
    """Return a list of claims with their verdicts.

    Args:
        names: the claims.
        runs: their results, None where nothing is stored.
        root: the way from the page to the book's folder.
        above: the claims that the page itself tells of.
    """
    lines = [(catalogue.entry(name), run) for name, run in zip(names, runs, strict=True)]
    template = environment().get_template("overview.html")
    return Markup(template.render(lines=lines, root=root, above=set(above)))


def formulas(lines: Mapping[str, str], runs: Mapping[str, Run | None], root: str) -> Markup:
    """Return an index of formulas: of each claim what it states, with its verdict.

    Args:
        lines: the formulas by the claim's name, as LaTeX.
        runs: the result of each claim, None where nothing is stored.
        root: the way from the page to the book's folder.
    """
    rows = [(catalogue.entry(name), formula, runs[name]) for name, formula in lines.items()]
    return Markup(environment().get_template("formulas.html").render(rows=rows, root=root))


def idea(name: str) -> Markup:
    """Return the drawing of an idea.

    Raises:
        UserError: there is none of that name.
    """
    drawn = _named(IDEAS, name, "drawing")()
    return Markup(environment().get_template("idea.html").render(idea=drawn))


def toy(name: str) -> Markup:
    """Return a calculation with a slider; without scripts it stands still.

    Raises:
        UserError: there is none of that name.
    """
    made = _named(TOYS, name, "toy")()
    template = environment().get_template("toy.html")
    return Markup(template.render(name=name, toy=made, serial=next(_serial)))


def tally(verdicts: Sequence[str]) -> Markup:
    """Return how many verdicts there are of each kind, in one line."""
    counts = [(word, verdicts.count(word)) for word in (*LOOKS, "missing") if word in verdicts]
    return Markup(environment().get_template("tally.html").render(counts=counts, looks=LOOKS))


def statements(rows: Sequence[Statement], runs: Mapping[str, Run | None], root: str) -> Markup:
    """Return statements of a source, each with its state and the signs of the checks that test it.

    Args:
        rows: the statements.
        runs: the result of each claim that tests them, None where nothing is stored.
        root: the way from the page to the book's folder.
    """
    lines = [(row, _tested(row, runs)) for row in rows]
    template = environment().get_template("statements.html")
    return Markup(template.render(lines=lines, root=root, states=STATES, outcomes=OUTCOMES))


def _tested(row: Statement, runs: Mapping[str, Run | None]) -> dict[str, list[dict[str, str]]]:
    """Return by claim what links to its checks say: the id, and the check's verdict if a result is stored."""
    links: dict[str, list[dict[str, str]]] = {}
    for claim, id in row.checks:
        check = _stored_check(runs[claim], id)
        verdict = "" if check is None else str(check.verdict)
        links.setdefault(claim, []).append({"id": id, "verdict": verdict})
    return links


def _stored_check(run: Run | None, id: str) -> Check | None:
    checks = () if run is None else run.result.checks
    return next((check for check in checks if check.id == id), None)


def errata_abstract(statements: StatementMap) -> Markup:
    """Return the abstract of the article on what does not hold as it is said, and how to cite it."""
    outcomes = [row.holds for row in statements.statements]
    template = environment().get_template("errata_abstract.html")
    return Markup(
        template.render(
            version=steepest.__version__,
            total=len(outcomes),
            works=len(statements.sources),
            corrected=outcomes.count(Outcome.CORRECTED),
            wrong=outcomes.count(Outcome.NO),
        )
    )


def errata(rows: Sequence[Statement], runs: Mapping[str, Run | None], root: str) -> Markup:
    """Return the statements of a source that do not hold as it puts them, each with what holds and what was measured.

    Args:
        rows: the statements.
        runs: the result of each claim that tests them, None where nothing is stored.
        root: the way from the page to the book's folder.
    """
    lines = []
    for row in rows:
        claims = {claim: runs[claim] for claim, _ in row.checks}
        sizes = [
            (claim, check)
            for claim, check in (
                (claim, _stored_check(runs[claim], id)) for claim, id in row.checks
            )
            if check is not None and check.decides
        ]
        lines.append({"row": row, "claims": claims, "sizes": sizes[:SIZES]})
    template = environment().get_template("errata.html")
    return Markup(template.render(lines=lines, root=root, outcomes=OUTCOMES))


def errata_of_claims(names: Sequence[str], runs: Mapping[str, Run | None], root: str) -> Markup:
    """Return what claims correct in papers, with their verdicts.

    Args:
        names: the claims.
        runs: their results, None where nothing is stored.
        root: the way from the page to the book's folder.
    """
    lines = [(name, description(catalogue.entry(name)), runs[name]) for name in names]
    template = environment().get_template("errata_of_claims.html")
    return Markup(template.render(lines=[line for line in lines if line[1].corrections], root=root))


def statement_counts(statements: StatementMap) -> Markup:
    """Return a table: of each source how many statements are in each state."""
    works = {key: sources()[key].short for key in statements.sources}
    lines = [(works[key], counts(statements.of(key))) for key in works]
    lines.append(("all", counts(statements.statements)))
    template = environment().get_template("statement_counts.html")
    return Markup(template.render(lines=lines, states=STATES))


def body(run: Run | None, name: str, told_in: Sequence[tuple[str, str]]) -> Markup:
    """Return the page of a claim, without its heading.

    Args:
        run: its result, or None where nothing is stored.
        name: the claim.
        told_in: title and address of the chapters that tell of it.
    """
    template = environment().get_template("claim_page.html")
    parts: dict[str, Any] = {"told_in": told_in, "entry": catalogue.entry(name), "run": run}
    if run is not None:
        parts |= pages.parts(run, [run]) | {"figure_files": run.folder.name}
    return Markup(template.render(parts))
