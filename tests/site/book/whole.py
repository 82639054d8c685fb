"""What must be true of a book as a whole: no dead link, no request, no page too heavy, no raw formula."""

import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

CODE = ("code", "pre", "script", "style", "math", "title")
"""Tags of what is not set, or cannot be."""
HEAVIEST = 300_000
"""Bytes of a page with its styles, scripts, fonts and pictures, but for figures that are asked for later."""


class Page(HTMLParser):
    """The addresses, anchors and formulas of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.loads: list[str] = []
        self.later: list[str] = []
        self.anchors: list[str] = []
        self.unnamed: list[str] = []
        self.text: list[str] = []
        self._code = 0
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        own = dict(attributes)
        if own.get("id"):
            self.anchors.append(own["id"])
        if tag == "a" and own.get("href"):
            self.links.append(own["href"])
        loads = {
            "img": "src",
            "script": "src",
            "link": "href",
            "source": "src",
            "iframe": "src",
            "image": "href",
        }
        if (
            tag in loads
            and own.get(loads[tag])
            and own.get("rel") not in ("index", "search", "next", "prev", "genindex")
        ):
            waits = own.get("loading") == "lazy"
            (self.later if waits else self.loads).append(own[loads[tag]])
        if tag in CODE:
            self._code += 1

    def handle_endtag(self, tag):
        if tag in CODE:
            self._code -= 1

    def handle_data(self, data):
        if not self._code:
            self.text.append(data)


def problems(book: Path) -> Iterator[str]:
    """Yield a sentence for each thing that is wrong with a book."""
    pages = {path: Page(path) for path in sorted(book.rglob("*.html"))}
    anchors = {path: set(page.anchors) for path, page in pages.items()}
    for path, page in pages.items():
        name = path.relative_to(book)
        doubled = {one for one in page.anchors if page.anchors.count(one) > 1}
        if doubled:
            yield f"{name}: ids that are there twice: {sorted(doubled)[:3]}"
        for link in page.links:
            if link.startswith(("https://", "http://", "mailto:", "data:")):
                continue
            address, anchor = urldefrag(link)
            goal = (path.parent / unquote(address)).resolve() if address else path
            if not goal.exists():
                yield f"{name}: no file {link}"
            elif anchor and goal in anchors and unquote(anchor) not in anchors[goal]:
                yield f"{name}: no anchor {link}"
        for load in (*page.loads, *page.later):
            if load.startswith("data:"):
                continue
            if re.match(r"(https?:)?//", load):
                yield f"{name}: asks the network for {load}"
            elif not (path.parent / unquote(load.partition("?")[0])).exists():
                yield f"{name}: no file {load}"
        weight = heaviness(page) + (asked(book) if name.name == "search.html" else 0)
        if weight > HEAVIEST:
            yield f"{name}: {weight // 1000} kB"
        raw = re.search(
            r"\$[^$\n]*\\[a-z]+[^$\n]*\$|\\(frac|lambda|eta|sum)\b", " ".join(page.text)
        )
        if raw:
            yield f"{name}: a formula that is not set: {raw[0][:60]}"
        scripts = re.search(r".{0,20}[_^]\{[^{}\n]{1,30}\}", " ".join(page.text))
        if scripts:
            yield f"{name}: an index or exponent that is not set: {scripts[0]}"
        for formula in re.findall(r"<math.*?</math>", path.read_text("utf-8"), re.DOTALL):
            left = re.search(r"\\[A-Za-z]+", re.sub(r"<[^>]*>", "", formula))
            if left:
                yield f"{name}: a formula with {left[0]} left in it"


def heaviness(page: Page, whole: bool = False) -> int:
    """Return the bytes of a page and of all that it loads, the font of formulas where it has any.

    Args:
        page: the page.
        whole: count the figures too that are asked for once a reader is near.
    """
    text = page.path.read_text("utf-8")
    total = page.path.stat().st_size
    for load in (*page.loads, *(page.later if whole else ())):
        file = page.path.parent / unquote(load.partition("?")[0])
        if not load.startswith("data:") and file.is_file():
            total += _size(file)
            for inner in (
                re.findall(r"url\(\"?([\w./-]+\.woff2?)", file.read_text("utf-8"))
                if file.suffix == ".css"
                else ()
            ):
                total += _size(file.parent / inner) if "<math" in text else 0
    return total


def asked(book: Path) -> int:
    """Return the bytes of the search's index that a question of one word loads at most, where the word is known."""
    sizes = {path.stem: _size(path) for path in (book / "searchindex").glob("*.js")}
    return sizes.pop("base") + max(sizes.values())


@cache
def _size(file: Path) -> int:
    return file.stat().st_size


if __name__ == "__main__":
    import sys

    book = Path(sys.argv[1]).resolve()
    for line in problems(book):
        print(line)
    heavy = sorted(
        (heaviness(Page(path)), heaviness(Page(path), whole=True), path)
        for path in book.rglob("*.html")
    )
    print(
        f"search.html with a question {(heaviness(Page(book / 'search.html')) + asked(book)) // 1000} kB"
    )
    for first, whole, path in heavy[-20:]:
        print(f"{first // 1000} kB, read to its end {whole // 1000} kB: {path.relative_to(book)}")
