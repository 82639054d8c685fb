"""Lines of Markdown outside of Sphinx: formulas, and the roles of the book that name results."""

from markupsafe import Markup, escape

from steepest.core.errors import UserError
from steepest.site.pages import formula

from . import _html
from ._numbers import KINDS, Asked, Number
from ._shelf import Shelf


def inline(text: str, shelf: Shelf, root: str) -> Markup:
    """Return a line of a chapter as HTML, with its formulas set and its numbers filled in; links are plain text.

    Args:
        text: the line, as Markdown.
        shelf: the stored results.
        root: the way from the page to the book's folder.
    """
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin
    from mdit_py_plugins.myst_role import myst_role_plugin

    reader = MarkdownIt("commonmark", {"html": False}).use(dollarmath_plugin).use(myst_role_plugin)
    tokens = reader.parseInline(text)[0].children or []
    pieces = []
    for token in tokens:
        match token.type:
            case "math_inline":
                pieces.append(formula(token.content, display="inline"))
            case "myst_role":
                pieces.append(_role(token.meta["name"], token.content, shelf, root))
            case "link_open" | "link_close":
                continue
            case _:
                pieces.append(Markup(reader.renderer.render([token], reader.options, {})))
    return Markup("").join(pieces)


def _role(name: str, content: str, shelf: Shelf, root: str) -> Markup:
    """Return a number or a verdict; what is no role of ours, or is wrong, as it was typed."""
    if name == "verdict":
        claim = content.strip()
        return _html.verdict(claim, shelf.run(Asked(claim)), root)
    typed, _, target = content.rstrip(">").partition("<")
    typed = " ".join(typed.split())
    if name not in KINDS or not target:
        return escape(content)
    number = Number(name, typed, target)
    try:
        text = shelf.text(number)
    except (UserError, IndexError, ValueError):
        return escape(typed)
    if text is None:
        return Markup('<span class="unfilled">{}</span>').format(typed)
    return Markup('<a class="number" href="{}{}">{}</a>').format(root, number.address, text)
