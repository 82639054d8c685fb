"""Matplotlib's SVG made fit to stand inside a page.

The page's theme takes over the colours, identifiers become short and get a prefix so that several figures share a
page, and only the few elements that a plot needs are let through: whatever else a stored file may hold stays out.
"""

import re
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

from markupsafe import Markup

from steepest.core.panels import Map, Panel
from steepest.core.text import visible
from steepest.site.drawing import (
    COLOURS,
    GAP,
    GAP_LINE,
    GRID,
    INK,
    MARK,
    PALE,
    VERDICTS,
    blend,
    mixture,
)

from ._lighter import lighten
from ._safe import SVG, only
from ._style import sheet_of_picture

_PLAIN = {INK: "var(--ink)", GRID: "var(--grid)", "#000000": "var(--ink)", PALE: "var(--paper)"}
_PLAIN |= {GAP: "var(--gap)", GAP_LINE: "var(--gap-line)", MARK: "var(--mark)"}
_PLAIN |= {colour: f"var(--cell-{word})" for word, (colour, _) in VERDICTS.items()}
# What the style sheet says of every figure needs no saying on every path.
_USUAL = re.compile(
    r"(font-family|font-size: 8.5px|stroke-linejoin|stroke-linecap: (?:butt|square)|stroke-miterlimit)[^;]*;?\s*"
)


def inline(svg: str, prefix: str, words: str) -> Markup:
    """An SVG file's text as an element of a page.

    Args:
        svg: the file, as :func:`steepest.site.drawing.svg` writes it.
        prefix: put before every identifier; unique on the page.
        words: what the figure shows, for those who cannot see it.
    """
    root = only(ElementTree.fromstring(visible(svg).encode()), SVG)
    used = re.findall(
        r"#([\w.-]+)", " ".join(value for part in root.iter() for value in _links(part))
    )
    names = {name: f"{prefix}{i}" for i, name in enumerate(dict.fromkeys(used))}
    for part in root.iter():
        _adopt(part, names)
    for part in root.iter("g"):
        _hoist(part)
    _flatten(root)
    lighten(root)
    for part in list(root.iter("text")):
        _set_indices(part)
    root.attrib = {
        "viewBox": root.get("viewBox", "0 0 1 1"),
        "role": "img",
        "aria-label": visible(words),
    }
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def harmless(svg: str) -> str:
    """Return an SVG file with the elements and attributes of a plot alone."""
    root = only(ElementTree.fromstring(svg.encode()), SVG)
    for part in root.iter():
        if "href" in part.attrib:
            part.attrib["xlink:href"] = part.attrib.pop("href")  # as programs that draw read it
    spaces = {"xmlns": "http://www.w3.org/2000/svg", "xmlns:xlink": "http://www.w3.org/1999/xlink"}
    root.attrib = {**spaces, **root.attrib}
    sheet = ElementTree.Element("style")
    sheet.text = "*{stroke-linejoin:round;stroke-linecap:butt}"
    root.insert(0, sheet)
    return ElementTree.tostring(root, encoding="unicode")


def standalone(graphic: Markup) -> str:
    """Return a graphic as a file of its own, which a page shows as a picture.

    Its colours follow the scheme of the element that shows it, as those of the page do.
    """
    root = ElementTree.fromstring(graphic)
    _, _, width, height = root.get("viewBox", "0 0 1 1").split()
    root.attrib |= {"xmlns": "http://www.w3.org/2000/svg", "width": width, "height": height}
    sheet = ElementTree.Element("style")
    sheet.text = sheet_of_picture(graphic)
    root.insert(0, sheet)
    return ElementTree.tostring(root, encoding="unicode")


def _links(part: ElementTree.Element) -> Iterator[str]:
    return (part.get(name, "") for name in ("href", "clip-path"))


def _adopt(part: ElementTree.Element, names: Mapping[str, str]) -> None:
    """Rename what is referred to, drop other identifiers, and hand the colours to the theme."""
    if name := names.get(part.attrib.pop("id", "")):
        part.set("id", name)
    for link in ("href", "clip-path"):
        if value := part.get(link):
            part.set(link, re.sub(r"#([\w.-]+)", lambda found: f"#{names[found[1]]}", value))
    if path := part.get("d"):
        part.set("d", re.sub(r"\s*([MLCQZz])\s*", r"\1", path.strip()))
    if re.fullmatch(r"rotate\(-?0 .*\)", part.get("transform", "")):
        part.attrib.pop("transform")
    if style := part.get("style"):
        style = re.sub(r"#[0-9a-f]{6}", lambda found: theme(found[0]), _USUAL.sub("", style))
        style = re.sub(r"([:;]) ", r"\1", style).rstrip("; ")
        if part.tag == "text":
            style = re.sub(r"fill:var\(--ink\);?", "", style).rstrip(";")
        if style and not _implied(part.tag, style):
            part.set("style", style)
        else:
            part.attrib.pop("style")


_INDEX = re.compile(
    r"(?:(?<=[^\W\d_])|(?<=[‖∥|)]))_(?P<low>max|min|sup|un|block|[A-Za-z0-9α-ωΑ-Ω∞∥⊥](?![A-Za-z0-9]))"
    r"|(?<=[\w)|‖])\^(?:\((?P<wide>[^()\s]{1,8})\)|\{(?P<braced>[^{}\s]{1,8})\}|(?P<high>[-−]?[0-9.½⅓¼]+|[A-Za-z]))"
)


def _set_indices(text: ElementTree.Element) -> None:
    """Set what follows _ and ^ in a label as an index or an exponent."""
    written = text.text or ""
    matches = list(_INDEX.finditer(written))
    if not matches or len(text):
        return
    ends = [match.start() for match in matches[1:]] + [len(written)]
    text.text = written[: matches[0].start()]
    for match, end in zip(matches, ends, strict=True):
        low = match["low"]
        shift = 2 if low else -3
        raised = low or match["wide"] or match["braced"] or match["high"]
        small = ElementTree.SubElement(text, "tspan", {"dy": str(shift), "style": "font-size:75%"})
        small.text = raised.replace("-", "−")
        back = ElementTree.SubElement(text, "tspan", {"dy": str(-shift)})
        back.text = written[match.end() : end] or "\u200b"


def _implied(tag: str, style: str) -> bool:
    """Whether a tick has the stroke that its shape has by itself."""
    return (
        tag == "use"
        and re.fullmatch(r"fill:(var\(--ink\));stroke:\1;stroke-width:[\d.]+", style) is not None
    )


def theme(colour: str) -> str:
    """The theme's name for a colour of :mod:`steepest.site.drawing`; others stay as they are."""
    return _PLAIN.get(colour) or _BLENDS.get(colour, colour)


def label(panel: Panel | Map) -> str:
    """What a panel shows, in words."""
    curves = ", ".join(curve.label for curve in panel.curves if curve.label)
    what = (
        f"{panel.label} over {panel.x} and {panel.y}"
        if isinstance(panel, Map)
        else f"{panel.y} against {panel.x}"
    )
    return f"{panel.title}. {what}" + (f": {curves}" if curves else "")


def _blends() -> dict[str, str]:
    names = {}
    for role in COLOURS:
        for percent in range(100, -1, -1):
            names[blend(role, percent / 100)] = _mixed(role, percent / 100)
    return names


def _mixed(role: str, shade: float) -> str:
    """Return a shade of a role in colours of the page's theme."""
    first, last, share = mixture(role, shade)
    variables = [f"var(--{role}-{name})" if name else f"var(--{role})" for name in (first, last)]
    if share in (0, 1):
        return variables[int(share)]
    return f"color-mix(in srgb,{variables[0]},{variables[1]} {round(100 * share)}%)"


_BLENDS = _blends()


def _hoist(group: ElementTree.Element) -> None:
    """Write the style that all markers of a group share once, on the group."""
    uses = list(group)
    styles = {use.get("style") for use in uses}
    if len(uses) > 1 and len(styles) == 1 and all(use.tag == "use" for use in uses):
        group.set("style", uses[0].get("style", ""))
        for use in uses:
            use.attrib.pop("style", None)


def _flatten(part: ElementTree.Element) -> None:
    """Remove groups that say nothing, and invisible backgrounds."""
    flat: list[ElementTree.Element] = []
    for child in list(part):
        _flatten(child)
        if child.tag in ("g", "defs") and not child.attrib and (child.tag == "g" or not len(child)):
            flat.extend(child)
        elif not re.fullmatch(r"fill:none(;opacity:0)?", child.get("style", "")):
            flat.append(child)
    part[:] = flat
