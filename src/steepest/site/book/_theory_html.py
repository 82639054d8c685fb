"""The HTML of the map of the theory: a chapter's drawing with its words, its roots and what carries most."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from steepest import catalogue
from steepest.core.words import LOOKS
from steepest.record import recorded
from steepest.site.pages import Run

from ._html import environment
from ._theory import Theory, Word
from ._theory_drawing import WIDTH, drawn, nested

LEGEND = {
    Word.USES: "uses it as a step",
    Word.EXTENDS: "says it of more cases",
    Word.LIMITS: "says where it ends",
}
"""What the three kinds of lines mean."""


class Mark(NamedTuple):
    """What a box says of a claim.

    Attributes:
        verdict: of the stored result; ``missing`` where there is none.
        sign: of the verdict, one character.
        word: of the verdict.
        count: of its trials at fresh seeds how many held, such as "19 of 20"; empty where nobody has counted.
        says: its first sentence.
    """

    verdict: str
    sign: str
    word: str
    count: str
    says: str


def mark(name: str, run: Run | None) -> Mark:
    """Return what a box says of a claim.

    Args:
        name: the claim.
        run: its result, or None where nothing is stored.
    """
    entry = catalogue.entry(name)
    record = recorded(entry)
    seeds = record.seeds if record else None
    count = f"{seeds.holds} of {seeds.runs}" if seeds else ""
    if run is None:
        return Mark("missing", "○", "not run yet", count, entry.says)
    verdict = str(run.result.verdict)
    return Mark(verdict, LOOKS[verdict].sign, LOOKS[verdict].word, count, entry.says)


def theory_drawing(
    theory: Theory, chapter: Sequence[str], runs: Mapping[str, Run | None], root: str
) -> Markup:
    """Return the drawing of a chapter, the same as a nested list for narrow screens, and in words.

    Args:
        theory: the map.
        chapter: the chapter's claims.
        runs: the result of each claim that is shown, None where nothing is stored.
        root: the way from the page to the book's folder.
    """
    drawing = drawn(theory, chapter)
    marks = {name: mark(name, run) for name, run in runs.items()}
    words = {claim: theory.ties[claim] for claim in chapter if theory.ties[claim]}
    inside = sum(node.inside for node in drawing.nodes)
    lines = len(drawing.curves)
    label = f"{inside} claims of this chapter and {lines} arrows to them; the same in words below"
    template = environment().get_template("theory.html")
    return Markup(
        template.render(
            drawing=drawing,
            branches=nested(theory, drawing),
            carried=theory.resting,
            words=words,
            marks=marks,
            legend=LEGEND,
            label=label,
            width=WIDTH,
            root=root,
        )
    )


def shown_claims(theory: Theory, chapter: Sequence[str]) -> list[str]:
    """Return the claims that a chapter's drawing shows a sign of."""
    nodes = [node.name for node in drawn(theory, chapter).nodes]
    return list(dict.fromkeys([*nodes, *chapter]))


def theory_roots(
    theory: Theory, names: Sequence[str], runs: Mapping[str, Run | None], root: str
) -> Markup:
    """Return a list of claims, each with how many rest on it, at once or through others."""
    return _counted("theory_roots.html", theory, names, runs, root)


def theory_pillars(
    theory: Theory, names: Sequence[str], runs: Mapping[str, Run | None], root: str
) -> Markup:
    """Return a table of claims, with how many rest on each at once, and how many in all."""
    return _counted("theory_pillars.html", theory, names, runs, root)


def _counted(
    template: str,
    theory: Theory,
    names: Sequence[str],
    runs: Mapping[str, Run | None],
    root: str,
) -> Markup:
    shown = environment().get_template(template)
    return Markup(
        shown.render(
            names=names,
            marks={name: mark(name, runs[name]) for name in names},
            at_once={name: len(theory.resting[name]) for name in names},
            in_all={name: len(theory.carried[name]) for name in names},
            root=root,
        )
    )
