"""Figures far down a chapter, as files: a browser asks for them when a reader comes near."""

import re
from pathlib import Path

from markupsafe import Markup

from steepest.site import pages

FOLDER = "figures"
"""The folder of the files in the book."""
NEAR = 2
"""Boxes of claims of a page, from its top, whose figures stand in the page itself."""
MANY = 12
"""From so many boxes on a page is heavy without figures, and all of them are files."""
_SIZE = re.compile(r'viewBox="\S+ \S+ (?P<width>\S+) (?P<height>\S+)"')
_WORDS = re.compile(r'aria-label="(?P<words>[^"]*)"')


class Gallery:
    """The figures of a book that become files.

    Attributes:
        files: their texts by name.
    """

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def picture(self, graphic: Markup, name: str, root: str) -> Markup:
        """Keep a graphic as a file, and return the picture that shows it.

        Args:
            graphic: the graphic, as it would stand in the page.
            name: of its file, without ending; the same graphic may be kept twice.
            root: the way from the page to the book's folder.
        """
        size = _SIZE.search(graphic)
        words = _WORDS.search(graphic)
        if size is None or words is None:
            return graphic
        self.files[name] = pages.standalone(graphic)
        address = f"{root}{FOLDER}/{name}.svg"
        look = f'width="{size["width"]}" height="{size["height"]}" loading="lazy"'
        return Markup(f'<img src="{address}" {look} alt="{words["words"]}">')

    def write(self, html: Path) -> None:
        """Write the files below the folder of the book's pages."""
        (html / FOLDER).mkdir(exist_ok=True)
        for name, text in self.files.items():
            (html / FOLDER / f"{name}.svg").write_text(text, "utf-8")


GALLERY = Gallery()
"""That of the book that is being built: what reads a chapter fills it, and its end writes and empties it."""
