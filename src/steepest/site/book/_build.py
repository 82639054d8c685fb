"""Build the book beside its place and move it there when it is whole."""

import json
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import steepest
from steepest.core.errors import UserError
from steepest.core.writing import move_into_place
from steepest.site import pages

from ._documents import CLAIMS, write_claims, write_formulas, write_notebooks, write_works
from ._gallery import GALLERY
from ._lean import lean_code_sheet, lean_page, lean_script, lean_sheet
from ._numbers import Asked
from ._reference import clean_docstring, short_signature, write_reference
from ._search import keywords, split_index
from ._shelf import shelf
from ._slides import SHEET, write_slides

MARKER = ".steepest-book"
"""Lies in every book and lists its files: a folder without it, or with other files, is never replaced."""
LEFT_OUT = ("_sources", ".buildinfo", "objects.inv")
SCRIPTS = ("book.js", "toys.js", "slides.js")
SCORER = "scorer.js"
SEARCH = "search.js"
OF_CODE = "pygments.css"
IN_EVERY_PAGE = ("book.js", "toys.js")
DOWNLOADS = ("result.json", "arrays.npz", "panels.json")


@dataclass(frozen=True)
class Book:
    """A book that was built.

    Attributes:
        index: its first page.
        warnings: what Sphinx had to say, one a line.
    """

    index: Path
    warnings: tuple[str, ...]


def docs_folder() -> Path:
    """Return the folder of the book's sources: those of the installed package, or of the tree that it runs from.

    Raises:
        UserError: neither is there.
    """
    package = Path(steepest.__file__).parent
    for folder in (package / "_docs", package.parents[1] / "docs"):
        if (folder / "index.md").is_file():
            return folder
    raise UserError("the sources of the book are not installed; name their folder with --docs")


def build(
    docs: Path,
    results: Path,
    out: Path,
    *,
    extra: Mapping[str, str] | None = None,
    reference: bool = True,
    execute: bool = True,
) -> Book:
    """Write the book: chapters, tutorials, guides, every claim's page, and the reference, with a search.

    The pages open from disk and ask nothing of any network. A book that is already there stays whole until the new
    one is complete; a folder that is not a book is left alone.

    Args:
        docs: the folder of the sources.
        results: the folder of results that fill the numbers and figures.
        out: the folder of the book.
        extra: more pages, Markdown by path below the sources.
        reference: whether to write the reference of the library.
        execute: whether to run the tutorials, or to show them without output.

    Raises:
        UserError: no sources, Sphinx is not installed, or a place that is not ours or cannot be written.
    """
    docs = Path(docs).absolute()
    results = Path(results).absolute()
    out = Path(out).absolute()
    check(docs, results, out)
    try:
        with pages.new_folder(out) as stage:
            source = stage / "source"
            shutil.copytree(docs, source)
            for name, text in (extra or {}).items():
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                (source / name).write_text(text, "utf-8")
            write_claims(source)
            write_formulas(source)
            write_works(source)
            write_notebooks(source)
            if reference:
                write_reference(source)
            html = stage / "html"
            warnings = _sphinx(source, html, stage / "doctrees", docs, results, execute)
            write_slides(source, html, shelf(str(results)))
            GALLERY.write(html)
            _finish(html, results)
            move_into_place(html, out)
    except OSError as trouble:
        reason = trouble.strerror or trouble
        raise UserError(
            f"cannot write the book to {out} ({reason}); choose another place with --out"
        ) from None
    return Book(out / "index.html", warnings)


def check(docs: Path, results: Path, out: Path) -> None:
    """Check all that a book needs, before anything is run for it.

    Raises:
        UserError: no sources, Sphinx is not installed, or a place where something would be lost that is not ours.
    """
    for package in ("sphinx", "myst_nb", "furo", "jupytext"):
        if find_spec(package) is None:
            raise UserError(
                f"the book needs {package}; install it with pip install 'steepest[book]'"
            )
    if not (docs / "index.md").is_file():
        raise UserError(
            f"there is no book in {docs}: it has no index.md; name another folder with --docs"
        )
    pages.refuse_folder(out, MARKER, "book", results)


def _sphinx(
    source: Path, html: Path, doctrees: Path, docs: Path, results: Path, execute: bool
) -> tuple[str, ...]:
    """Run Sphinx and return its warnings."""
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    static = source / "_static"
    static.mkdir(exist_ok=True)
    (static / "book.css").write_text(pages.sheet_of_book() + pages.MATH_SHEET, "utf-8")
    (static / SHEET).write_text(pages.sheet_of_slides() + pages.MATH_SHEET, "utf-8")
    for script in SCRIPTS:
        text = (Path(__file__).parent / script).read_text("utf-8")
        (static / script).write_text(lean_script(text), "utf-8")
    scorer = (Path(__file__).parent / SCORER).read_text("utf-8")
    by_word = json.dumps(keywords(docs), ensure_ascii=False)
    (source / SCORER).write_text(scorer.replace("KEYWORDS", by_word), "utf-8")
    shelf.cache_clear()
    GALLERY.files.clear()
    # these speak up once a handler listens to everything
    for chatty in ("matplotlib", "fontTools", "traitlets"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    said = StringIO()
    with patch_docutils(), docutils_namespace(), _kernels_quiet():
        app = Sphinx(
            source,
            None,
            html,
            doctrees,
            "html",
            confoverrides=_settings(docs, results, execute, source / SCORER),
            status=None,
            warning=said,
            freshenv=True,
        )
        app.connect("autodoc-process-docstring", clean_docstring)
        app.connect("autodoc-process-signature", short_signature)
        app.build()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said.getvalue())
    return tuple(line.replace(f"{source}/", "") for line in plain.splitlines() if line.strip())


@contextmanager
def _kernels_quiet() -> Iterator[None]:
    """Keep what the kernels of notebooks write on standard error to themselves: their errors are on the pages."""
    sys.stderr.flush()
    own = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)
        os.close(nowhere)


def _settings(docs: Path, results: Path, execute: bool, scorer: Path) -> dict[str, Any]:
    """What Sphinx is told; the book has no other configuration."""
    return {
        "project": "Steepest",
        "author": "The Steepest developers",
        "version": steepest.__version__,
        "html_title": "Steepest",
        "extensions": [
            "myst_nb",
            "sphinx.ext.autodoc",
            "sphinx.ext.autosummary",
            "sphinx.ext.napoleon",
            "sphinx.ext.viewcode",
            "steepest.site.book._extension",
        ],
        "steepest_results": str(results),
        "steepest_docs": str(docs),
        "myst_enable_extensions": ["dollarmath", "colon_fence", "attrs_inline", "deflist"],
        "myst_heading_anchors": 3,
        "myst_links_external_new_tab": False,
        "nb_custom_formats": {".py": ["jupytext.reads", {"fmt": "py:percent"}]},
        "nb_execution_mode": "force" if execute else "off",
        "nb_execution_in_temp": True,
        "nb_execution_timeout": 300,
        "nb_execution_raise_on_error": False,
        "nb_merge_streams": True,
        "nb_mime_priority_overrides": [("html", "image/png", 35)],  # before SVG: many times lighter
        "html_theme": "furo",
        "html_theme_options": {"top_of_page_buttons": [], "navigation_with_keys": True},
        "html_static_path": ["_static"],
        "html_css_files": ["book.css"],
        "html_js_files": [(script, {"defer": "defer"}) for script in IN_EVERY_PAGE],
        "html_math_renderer": "mathml",
        "html_show_search_summary": False,  # it loads every page that is found
        "html_search_scorer": str(scorer),
        "html_show_sourcelink": False,
        "html_copy_source": False,
        "html_show_sphinx": False,
        "html_show_copyright": False,
        "html_baseurl": "",
        "html_use_index": True,
        "html_domain_indices": False,
        "default_role": "code",
        "autodoc_typehints": "signature",
        "autodoc_member_order": "bysource",
        "python_use_unqualified_type_names": True,
        "napoleon_use_ivar": True,
        "autosummary_generate": False,
        "exclude_patterns": ["_static", "tutorials/notebooks"],
        "templates_path": [],
    }


def _finish(html: Path, results: Path) -> None:
    """Add the font and the claims' files, and drop what no reader needs."""
    for name in LEFT_OUT:
        path = html / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    loader = (Path(__file__).parent / SEARCH).read_text("utf-8")
    split_index(html, lean_script(loader))
    for path in html.rglob("*.map"):
        path.unlink()
    for page in sorted(html.rglob("*.html")):
        page.write_text(pages.guarded(lean_page(page.read_text("utf-8"))), "utf-8")
    for script in sorted((html / "_static").glob("*.js")):
        script.write_text(lean_script(script.read_text("utf-8")), "utf-8")
    for sheet in sorted(html.rglob("*.css")):
        sheet.write_text(lean_sheet(sheet.read_text("utf-8")), "utf-8")
    of_code = html / "_static" / OF_CODE
    of_code.write_text(lean_code_sheet(of_code.read_text("utf-8")), "utf-8")
    texts = (page.read_text("utf-8") for page in sorted(html.rglob("*.html")))
    (html / "_static" / pages.MATH_FILE).write_bytes(pages.font(pages.characters(texts)))
    stored = shelf(str(results))
    for name in stored.runs:
        run = stored.run(Asked(name))
        if run is None or not (html / CLAIMS / f"{name}.html").is_file():
            continue
        files = html / CLAIMS / run.folder.name
        files.mkdir()
        for file in DOWNLOADS:
            shutil.copyfile(run.folder / file, files / file)
        for place, figure in enumerate(pages.figure_files(run), 1):
            (files / f"figure-{place}.svg").write_text(figure, "utf-8")
    pages.list_files(html, MARKER)
