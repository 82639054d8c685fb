"""The style sheets: one set of colours and parts for the atlas, for reports and for the book."""

import re
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


def sheet_of_picture(graphic: str) -> str:
    """Return the sheet of a figure that is a file of its own, with the colours that it uses, light and dark."""
    used = set(re.findall(r"var\((--[\w-]+)\)", graphic)) | {"--ink", "--sans"}
    light = _chosen("light", used)
    dark = _chosen("dark", used)
    text = "svg{stroke-linejoin:round}text{font:8.5px var(--sans);fill:var(--ink)}"
    return f"svg{{{light}}}@media (prefers-color-scheme:dark){{svg{{{dark}}}}}{text}"


def _chosen(name: str, used: set[str]) -> str:
    """Return the lines of a list of colours and fonts that are used."""
    lines = re.findall(r"(--[\w-]+): ([^;]+);", _read(name))
    return "".join(f"{variable}:{value};" for variable, value in lines if variable in used)


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
