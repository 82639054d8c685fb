"""The book's own words for Sphinx: numbers from results, claims, moving figures, questions and exercises.

Sphinx loads this module by name and calls :func:`setup`.
"""

import re
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from steepest import catalogue
from steepest.core.errors import UserError
from steepest.engine.descriptions import description
from steepest.site.pages import Run, formula

from . import _html, _theory_html
from ._chapters import Chapter, chapters, frames
from ._gallery import MANY, NEAR
from ._numbers import KINDS, Asked, Number, asked
from ._search import Shown, keywords, keywords_of, shown, write_shown
from ._shelf import Shelf, shelf
from ._slides import CHAPTERS, address
from ._statements import Outcome, StatementMap, read_statements
from ._theory import Theory, theory_of_catalogue

_log = logging.getLogger(__name__)
HAND = re.compile(r"(?<![\w.,^₀-₉])\d[\d.,]*(?![\w])")
"""A number that the author typed into the prose by hand."""
YEAR = re.compile(r"(1[6-9]|20)\d\d")
SCRIPT = re.compile(r"(?<=[^\s_^])([_^])\{([^{}]{1,24})\}")
"""An index or an exponent in braces."""
EXEMPT = (
    nodes.literal,
    nodes.literal_block,
    nodes.math,
    nodes.math_block,
    nodes.raw,
    nodes.reference,
    nodes.comment,
    nodes.system_message,
)
"""What may hold digits: formulas, code, and numbers with a source."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the roles, directives and the setter of formulas."""
    app.add_config_value("steepest_results", "results", "env")
    app.add_config_value("steepest_docs", "docs", "env")
    for kind in KINDS:
        app.add_role(kind, _NumberRole())
    app.add_role("verdict", _VerdictRole())
    app.add_directive("claim", _ClaimDirective)
    app.add_directive("claim-page", _ClaimPage)
    app.add_directive("claims", _Overview)
    app.add_directive("formulas", _Formulas)
    app.add_directive("tally", _Tally)
    app.add_directive("statements", _Statements)
    app.add_directive("errata", _Errata)
    app.add_directive("errata-abstract", _ErrataAbstract)
    app.add_directive("errata-of-claims", _ErrataOfClaims)
    app.add_directive("statement-counts", _StatementCounts)
    app.add_directive("theory", _TheoryDrawing)
    app.add_directive("theory-roots", _TheoryRoots)
    app.add_directive("theory-pillars", _TheoryPillars)
    app.add_directive("moving", _Moving)
    app.add_directive("idea", _Idea)
    app.add_directive("toy", _Toy)
    app.add_directive("predict", _Predict)
    app.add_directive("exercise", _Exercise)
    app.add_node(_Bare, html=(_nothing, _nothing))
    app.add_node(Shown, html=(write_shown, None))
    app.add_html_math_renderer("mathml", (_inline_math, None), (_block_math, None))
    app.connect("doctree-read", _warn_of_hand_typed_numbers)
    app.connect("doctree-read", _set_scripts)
    app.connect("doctree-read", _keep_formulas_out_of_the_search)
    app.connect("doctree-read", _link_slides)
    app.connect("doctree-read", _add_keywords)
    app.connect("html-page-context", _leave_out_what_a_page_does_not_need)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class _Steepest:
    """What roles and directives share: the results, and the way to the book's folder."""

    env: Any
    config: Any

    @property
    def shelf(self) -> Shelf:
        return shelf(self.config.steepest_results)

    @property
    def root(self) -> str:
        return "../" * self.env.docname.count("/")


class _NumberRole(_Steepest, SphinxRole):
    """A number that a stored result gives, linked to where it comes from."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        match = re.fullmatch(r"(.+?)\s*<(.+)>", self.text, re.DOTALL)
        if match is None:
            return self._wrong(f"write {{{self.name}}}`number <claim what>`, got {self.text!r}")
        number = Number(self.name, " ".join(match[1].split()), match[2])
        try:
            text = self.shelf.text(number)
            what = number.what
        except (UserError, IndexError, ValueError) as trouble:
            return self._wrong(str(trouble))
        if text is None:
            title = f"no result of {number.of} is stored; the text was written when it was {number.typed}"
            return [
                nodes.inline(number.typed, number.typed, classes=["unfilled"], reftitle=title)
            ], []
        link = nodes.reference(
            "",
            "",
            nodes.Text(text),
            refuri=f"{self.root}{number.address}",
            reftitle=f"{number.of}: {self.name} {what}",
            classes=["number"],
        )
        return [link], []

    def _wrong(self, sentence: str) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        _log.warning("%s", sentence, location=self.get_location(), type="steepest")
        return [nodes.problematic(self.rawtext, self.rawtext)], []


class _VerdictRole(_Steepest, SphinxRole):
    """A claim's name with its verdict, linked to its page."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        name = self.text.strip()
        if name not in catalogue.catalogue():
            _log.warning(
                "there is no claim %r", name, location=self.get_location(), type="steepest"
            )
            return [nodes.problematic(self.rawtext, self.rawtext)], []
        html = _html.verdict(name, self.shelf.run(Asked(name)), self.root)
        return [shown(html)], []


class _Directive(_Steepest, SphinxDirective):
    """A directive whose output is HTML of ours."""

    def html(self, text: str) -> list[nodes.Node]:
        return [shown(text)]

    def wrong(self, sentence: object) -> list[nodes.Node]:
        _log.warning("%s", sentence, location=self.get_location(), type="steepest")
        return [nodes.warning("", nodes.paragraph("", str(sentence)))]


class _ClaimDirective(_Directive):
    """A claim as a chapter shows it."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {
        "panels": directives.unchanged,
        "checks": directives.unchanged,
        "rival": directives.unchanged,
        "fields": directives.unchanged,
        "expect": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        options = self.options
        try:
            wanted = asked(self.arguments[0], options.get("fields", ""))
            shown = _html.claim(
                wanted.claim,
                self.shelf.run(wanted),
                self.root,
                [int(word) for word in options.get("panels", "1").split()],
                options.get("checks", "").split(),
                options.get("rival", ""),
                options.get("expect", "holds"),
                far=self._is_far(),
            )
        except (UserError, ValueError) as trouble:
            return self.wrong(trouble)
        return self.html(shown)

    def _is_far(self) -> bool:
        """Return whether the figures of this box are files: far down a page, and everywhere on a page of many."""
        above = self.env.current_document.get("steepest_boxes", 0)
        self.env.current_document["steepest_boxes"] = above + 1
        if above >= NEAR:
            return True
        text = Path(self.env.doc2path(self.env.docname)).read_text("utf-8")
        return len(Chapter(self.env.docname, "", text).boxes) >= MANY


class _Moving(_Directive):
    """A panel of a claim's figure at several values of one field."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {
        "field": directives.unchanged_required,
        "values": directives.unchanged_required,
        "panel": directives.positive_int,
        "open": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        options = self.options
        try:
            settings = frames(self.arguments[0], options)
            values = options["values"].split()
            runs = [(word, self.shelf.run(one)) for word, one in zip(values, settings, strict=True)]
            panel = options.get("panel", 1)
            opens = options.get("open", values[0])
            if opens not in values:
                raise UserError(
                    f"a figure opens at one of its values, {' '.join(values)}; got {opens}"
                )
            first = values.index(opens)
            shown = _html.moving(self.arguments[0], options["field"], runs, panel, first, self.root)
        except (UserError, KeyError) as trouble:
            return self.wrong(trouble)
        return self.html(shown)


class _Idea(_Directive):
    """The drawing of an idea."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        try:
            return self.html(_html.idea(self.arguments[0]))
        except UserError as trouble:
            return self.wrong(trouble)


class _Toy(_Directive):
    """A calculation that a reader turns by a slider."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        try:
            return self.html(_html.toy(self.arguments[0]))
        except UserError as trouble:
            return self.wrong(trouble)


class _OfChapters(_Directive):
    """Something about all claims of some chapters of the catalogue, and about claims that are named."""

    required_arguments = 1
    final_argument_whitespace = True

    def names(self) -> list[str]:
        """Return the claims.

        Raises:
            UserError: a word is neither a chapter with claims nor a claim.
        """
        wanted = self.arguments[0].split()
        lines = catalogue.built_in()
        chapters = {line.chapter for line in lines.values()}
        missing = [word for word in wanted if word not in chapters and word not in lines]
        if missing:
            raise UserError(
                f"no claim is in {' or '.join(missing)}, or is called so; chapters are {catalogue.CHAPTERS}"
            )
        return [name for name, line in lines.items() if {name, line.chapter} & set(wanted)]

    def run(self) -> list[nodes.Node]:
        try:
            runs = {name: self.shelf.run(Asked(name)) for name in self.names()}
        except UserError as trouble:
            return self.wrong(trouble)
        return self.html(self.shown(runs))

    @abstractmethod
    def shown(self, runs: dict[str, Run | None]) -> str:
        """Return the HTML of these claims, of which some may not have been run."""


class _Overview(_OfChapters):
    """All claims of some chapters, with their verdicts."""

    def shown(self, runs: dict[str, Run | None]) -> str:
        above = [
            name
            for chapter in chapters(Path(self.config.steepest_docs))
            if chapter.name == self.env.docname
            for name in chapter.claims
        ]
        return _html.overview(list(runs), list(runs.values()), self.root, above)


class _Formulas(_OfChapters):
    """The formula of each claim of some chapters, with its verdict."""

    def shown(self, runs: dict[str, Run | None]) -> str:
        lines = {name: description(catalogue.entry(name)).statement for name in runs}
        return _html.formulas(lines, runs, self.root)


class _Tally(_Directive):
    """How many claims of the catalogue hold, fail, and so on."""

    def run(self) -> list[nodes.Node]:
        runs = [self.shelf.run(Asked(name)) for name in catalogue.built_in()]
        verdicts = [str(run.result.verdict) if run else "missing" for run in runs]
        return self.html(_html.tally(verdicts))


class _Statements(_Directive):
    """The statements of a source, each with the checks that test it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        rows = self.statements().of(self.arguments[0])
        if not rows:
            return self.wrong(f"no statement is of {self.arguments[0]!r}")
        claims = {claim for row in rows for claim, _ in row.checks}
        runs = {claim: self.shelf.run(Asked(claim)) for claim in claims}
        for row in rows:
            for claim, id in row.checks:
                self._warn_of_missing(row.number, claim, id, runs[claim])
        return self.html(_html.statements(rows, runs, self.root))

    def _warn_of_missing(self, number: int, claim: str, id: str, run: Run | None) -> None:
        """Warn of a check that a stored result lacks."""
        if run is None or any(check.id == id for check in run.result.checks):
            return
        sentence = f"statement {number}: {claim} has no check {id!r}"
        _log.warning("%s", sentence, location=self.get_location(), type="steepest")

    def statements(self) -> StatementMap:
        return read_statements(Path(self.config.steepest_docs) / "statements.toml")


class _Errata(_Statements):
    """The statements of a source that do not hold as it puts them."""

    def run(self) -> list[nodes.Node]:
        wrong = (Outcome.CORRECTED, Outcome.NO)
        rows = [row for row in self.statements().of(self.arguments[0]) if row.holds in wrong]
        if not rows:
            return self.wrong(f"no statement of {self.arguments[0]!r} is corrected")
        claims = {claim for row in rows for claim, _ in row.checks}
        runs = {claim: self.shelf.run(Asked(claim)) for claim in claims}
        return self.html(_html.errata(rows, runs, self.root))


class _ErrataAbstract(_Statements):
    """The abstract of the article on what does not hold as it is said."""

    required_arguments = 0

    def run(self) -> list[nodes.Node]:
        return self.html(_html.errata_abstract(self.statements()))


class _ErrataOfClaims(_Statements):
    """What claims correct in papers that are none of the sources of the map of statements."""

    required_arguments = 0

    def run(self) -> list[nodes.Node]:
        names = [name for name in self.statements().elsewhere if name in catalogue.built_in()]
        runs = {name: self.shelf.run(Asked(name)) for name in names}
        return self.html(_html.errata_of_claims(names, runs, self.root))


class _StatementCounts(_Statements):
    """How many statements of each source are tested."""

    required_arguments = 0

    def run(self) -> list[nodes.Node]:
        return self.html(_html.statement_counts(self.statements()))


class _OfTheory(_Directive):
    """A part of the map of the theory."""

    def theory(self) -> Theory:
        """Return the map.

        Raises:
            UserError: a page of a claim is not as it must be.
        """
        return theory_of_catalogue()

    def runs(self, names: list[str]) -> dict[str, Run | None]:
        """Return the result of each claim, None where nothing is stored."""
        return {name: self.shelf.run(Asked(name)) for name in names}

    def run(self) -> list[nodes.Node]:
        try:
            return self.html(self.shown(self.theory()))
        except UserError as trouble:
            return self.wrong(trouble)

    @abstractmethod
    def shown(self, theory: Theory) -> str:
        """Return the HTML of this part."""


class _TheoryDrawing(_OfTheory):
    """The claims of a chapter of the catalogue, and which rests on which."""

    required_arguments = 1

    def shown(self, theory: Theory) -> str:
        wanted = self.arguments[0]
        lines = catalogue.built_in()
        names = [name for name in theory.ties if name in lines and lines[name].chapter == wanted]
        if not names:
            raise UserError(
                f"no claim of the map is in {wanted}; chapters are {catalogue.CHAPTERS}"
            )
        runs = self.runs(_theory_html.shown_claims(theory, names))
        return _theory_html.theory_drawing(theory, names, runs, self.root)


class _TheoryRoots(_OfTheory):
    """The claims that rest on none and carry others."""

    def shown(self, theory: Theory) -> str:
        names = theory.roots
        return _theory_html.theory_roots(theory, names, self.runs(names), self.root)


class _TheoryPillars(_OfTheory):
    """The claims on which most others rest."""

    option_spec: ClassVar[dict[str, Any]] = {"most": directives.positive_int}

    def shown(self, theory: Theory) -> str:
        names = theory.pillars[: self.options.get("most", 10)]
        return _theory_html.theory_pillars(theory, names, self.runs(names), self.root)


class _ClaimPage(_Directive):
    """The whole page of a claim."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        pages = [
            (chapter.title, f"{self.root}{chapter.name}.html")
            for chapter in chapters(Path(self.config.steepest_docs))
            if name in chapter.claims
        ]
        return self.html(_html.body(self.shelf.run(Asked(name)), name, pages))


class _Folded(_Directive):
    """A line of text that opens."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def folded(self, kind: str, lead: str) -> list[nodes.Node]:
        """Return the question behind its first words, and what it opens."""
        question, _ = self.state.inline_text(self.arguments[0], self.lineno)
        head = shown(f'<details class="{kind}"><summary><b>{lead}</b> ')
        summary = nodes.inline("", "", *question)
        opened = shown("</summary>")
        closed = shown("</details>")
        return [head, _Bare("", summary), opened, *self.parse_content_to_nodes(), closed]


class _Bare(nodes.Element):
    """A node without tags around it."""


class _Predict(_Folded):
    """A question to answer before looking."""

    def run(self) -> list[nodes.Node]:
        return self.folded("predict", "Predict first.")


def _level(argument: str) -> str:
    """Read how hard an exercise is."""
    return directives.choice(argument, ("easy", "medium", "hard"))


class _Exercise(_Folded):
    """A question of a level, with its solution or the command that answers it."""

    option_spec: ClassVar[dict[str, Any]] = {"level": _level}

    def run(self) -> list[nodes.Node]:
        return self.folded("exercise", f"{self.options.get('level', 'exercise').capitalize()}.")


def _nothing(writer: Any, node: nodes.Element) -> None:
    """Write nothing around a node."""


def _inline_math(writer: Any, node: nodes.Element) -> None:
    writer.body.append(formula(node.astext(), display="inline"))
    raise nodes.SkipNode


def _block_math(writer: Any, node: nodes.Element) -> None:
    writer.body.append(f'<div class="formula">{formula(node.astext())}</div>')
    raise nodes.SkipNode


def _warn_of_hand_typed_numbers(app: Sphinx, doctree: nodes.document) -> None:
    """Warn of digits in a chapter that come from no result: what theory says is set as a formula or as code."""
    if not app.env.docname.startswith(CHAPTERS):
        return
    for text in doctree.findall(nodes.Text):
        if _exempt(text):
            continue
        for match in HAND.finditer(text):
            if YEAR.fullmatch(match[0].rstrip(".,")):
                continue
            _log.warning(
                "the number %s is typed by hand in %r; name its source, as in {measured}`0.98 <claim check>`, "
                "or set it as a formula",
                match[0],
                text[max(0, match.start() - 30) : match.end() + 20],
                location=_place(text),
                type="steepest",
            )


def _keep_formulas_out_of_the_search(app: Sphinx, doctree: nodes.document) -> None:
    """Mark formulas, whose commands and letters are no words."""
    for kind in (nodes.math, nodes.math_block):
        for node in doctree.findall(kind):
            node["classes"].append("no-search")


def _link_slides(app: Sphinx, doctree: nodes.document) -> None:
    """Link the slides at the end of each chapter."""
    page = app.env.docname
    if not page.startswith(CHAPTERS):
        return
    link = f'<a href="../{address(page)}">Slides of this chapter</a>'
    line = f'<p class="slides-link">{link}, to show in a lecture or to print</p>'
    doctree.append(shown(line))


def _add_keywords(app: Sphinx, doctree: nodes.document) -> None:
    """Let the search find a page by words that readers use and its text may not."""
    words = keywords_of(app.env.docname, keywords(Path(app.config.steepest_docs)))
    if words:
        doctree.append(Shown("", words, format="html"))


def _set_scripts(app: Sphinx, doctree: nodes.document) -> None:
    """Set ``_{…}`` and ``^{…}`` of plain text as indices and exponents."""
    for text in list(doctree.findall(nodes.Text)):
        pieces = SCRIPT.split(text.astext())
        if len(pieces) == 1 or _exempt(text):
            continue
        parts: list[nodes.Node] = [nodes.Text(pieces[0])]
        for mark, script, words in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
            kind = nodes.subscript if mark == "_" else nodes.superscript
            parts += [kind("", script), nodes.Text(words)]
        text.parent.replace(text, parts)


def _leave_out_what_a_page_does_not_need(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Leave out the style of notebooks, which the book's own replaces, and that of code where there is none."""
    needless = ["mystnb", *(["pygments"] if page.startswith("claims/") else [])]
    sheets = context["css_files"]
    sheets[:] = [sheet for sheet in sheets if not any(n in str(sheet.filename) for n in needless)]


def _exempt(text: nodes.Node) -> bool:
    node = text.parent
    while node is not None:
        if isinstance(node, EXEMPT) or "unfilled" in node.get("classes", ()):
            return True
        node = node.parent
    return False


def _place(text: nodes.Node) -> Any:
    node = text.parent
    while node is not None and node.line is None:
        node = node.parent
    return node
