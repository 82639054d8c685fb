"""The search's index: words that readers ask for, in parts of which a question loads those that it needs."""

import json
import re
import tomllib
from html import unescape
from pathlib import Path
from typing import Any

from docutils import nodes

INDEX = "searchindex.js"
"""What the search's page loads: a script that asks for the parts of the index."""
PARTS = "searchindex"
"""The folder of the parts."""
BASE = "base"
"""The part that every question needs: names of pages, titles, objects of the reference."""
OTHERS = "others"
"""The part of the words that begin with no letter from a to z."""
_NO_WORDS = re.compile(r"<(svg|math|script|style|template)\b.*?</\1>", re.DOTALL)
_NUMBER = re.compile(r"\b\d+\b")


class Shown(nodes.raw):
    """HTML of ours, of which the search reads the words alone: they are its text, and its ``rawsource`` is shown."""


def shown(html: str) -> Shown:
    """Return the node of HTML of ours."""
    return Shown(html, words(html), format="html")


def write_shown(writer: Any, node: Shown) -> None:
    """Write the HTML of a node into a page."""
    writer.body.append(node.rawsource)
    raise nodes.SkipNode


def words(html: str) -> str:
    """Return the words of HTML, without drawings, formulas and numbers, which nobody asks for.

    >>> words('<p>a<b>bc</b></p><svg><text>d</text></svg> 0.5 of &lt;x2&gt;')
    'a bc . of <x2>'
    """
    text = unescape(re.sub(r"<[^>]*>", " ", _NO_WORDS.sub(" ", html)))
    return " ".join(_NUMBER.sub(" ", text).split())


def keywords(docs: Path) -> dict[str, list[str]]:
    """Return which pages a keyword belongs to, best first, as the sources say in ``search.toml``; none without it."""
    file = docs / "search.toml"
    if not file.is_file():
        return {}
    return tomllib.loads(file.read_text("utf-8"))["keywords"]


def keywords_of(page: str, by_word: dict[str, list[str]]) -> str:
    """Return the keywords that belong to a page, as text that the search reads.

    >>> keywords_of("chapters/a", {"step size": ["chapters/a"], "noise": ["chapters/b"]})
    'step size'
    """
    return ", ".join(word for word, pages in by_word.items() if page in pages)


def split_index(html: Path, loader: str) -> None:
    """Cut the index of a book into parts, and put the script that loads them in its place.

    Args:
        html: the folder of the book's pages, as Sphinx wrote it.
        loader: the script, in which ``LETTERS`` stands for the names of the parts.
    """
    file = html / INDEX
    text = file.read_text("utf-8")
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    folder = html / PARTS
    folder.mkdir()
    parts = parts_of(index)
    for name, part in parts.items():
        content = json.dumps(part, ensure_ascii=False, separators=(",", ":"))
        (folder / f"{name}.js").write_text(f'Search.part("{name}",{content});\n', "utf-8")
    letters = json.dumps([name for name in parts if name != BASE])
    file.write_text(loader.replace("LETTERS", letters), "utf-8")


def parts_of(index: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the parts of an index by name: one that all questions need, and the words by their first letter.

    Args:
        index: as Sphinx writes it. Its entries of the general index are left out: they are objects, which are found as
            such. So are numbers, for which the search does not look, and file names, which no result shows. A title
            of a page that is among all titles is its place there.
    """
    left_out = ("terms", "titleterms", "filenames", "indexentries")
    base = {key: index[key] for key in index if key not in left_out}
    places = {title: place for place, title in enumerate(index["alltitles"])}
    if not any(title.isdigit() for title in places):  # scripts would put such a title first
        base["titles"] = [places.get(title, title) for title in index["titles"]]
    parts: dict[str, dict[str, Any]] = {BASE: base}
    for kind in ("terms", "titleterms"):
        for word, pages in index[kind].items():
            if not word.isdigit():
                name = word[0] if "a" <= word[0] <= "z" else OTHERS
                part = parts.setdefault(name, {"terms": {}, "titleterms": {}})
                part[kind][word] = pages
    return parts
