"""The style sheets: one set of colours and parts for the atlas, for reports and for the book."""

from functools import cache
from importlib import resources


@cache
def stylesheet() -> str:
    """Return the one sheet of all pages of an atlas, and of a report."""
    dark = f"@media (prefers-color-scheme: dark) {{\n:root {{\n{_read('dark')}}}\n}}"
    light = f":root {{\ncolor-scheme: light dark;\n{_read('light')}}}"
    return "\n".join((light, dark, _read("page"), _read("parts")))


@cache
def sheet_of_book() -> str:
    """Return the sheet of the book: the colours follow its switch of light and dark."""
    return "\n".join((_switched(), _read("parts"), _read("shown"), _read("book")))


@cache
def sheet_of_slides() -> str:
    """Return the sheet of the slides of chapters: the colours follow the switch of the book."""
    return "\n".join((_switched(), _read("parts"), _read("shown"), _read("slides")))


def _switched() -> str:
    """Return the colours of a page with a switch of light and dark; on paper they are the light ones."""
    light = f"body {{\ncolor-scheme: light;\n{_read('light')}}}"
    chosen = f'body[data-theme="dark"] {{\ncolor-scheme: dark;\n{_read("dark")}}}'
    system = (
        "@media (prefers-color-scheme: dark) {\n"
        f'body:not([data-theme="light"]) {{\ncolor-scheme: dark;\n{_read("dark")}}}\n}}'
    )
    printed = (
        "@media print {\n"
        f"body, body[data-theme], body:not([data-theme]) {{\ncolor-scheme: light;\n{_read('light')}}}\n}}"
    )
    return "\n".join((light, chosen, system, printed))


def _read(name: str) -> str:
    return (resources.files("steepest.site.pages") / "css" / f"{name}.css").read_text("utf-8")
