"""Elements and attributes that drawings and formulas need: whatever else a copied file may hold stays out of pages."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

LENGTH = re.compile(
    r"[-+]?\d{0,2}(\.\d+)?(em|ex|px|pt|mu|cm|mm|in|%)?|(negative)?(very){0,2}[a-z]{4,6}mathspace"
)
"""A length below a hundred of its unit: more would move letters over other parts of the page."""
WORD = re.compile(r"[A-Za-z][A-Za-z -]{0,40}|#[0-9A-Fa-f]{3,8}|[-+]?\d{1,2}")
"""A word, several, a colour or a small number."""
LOADS = re.compile(r"url\(\s*(?!#)|image(-set)?\(|src\(|expression|@import|[\\<>{}]", re.IGNORECASE)
"""What may load something, in an attribute or a style."""


@dataclass(frozen=True)
class Language:
    """The part of a markup language that a page lets through.

    Attributes:
        elements: their names.
        attributes: what the value of each must look like, as a whole.
        texts: elements that may hold text; the text of others is left out.
    """

    elements: frozenset[str]
    attributes: Mapping[str, re.Pattern[str]]
    texts: frozenset[str]

    def admits(self, name: str, value: str) -> bool:
        """Whether an attribute is one of the language, and its value harmless."""
        form = self.attributes.get(name)
        return form is not None and form.fullmatch(value) is not None


_ANYTHING = re.compile(rf"(?!.*(?:{LOADS.pattern})).*", re.IGNORECASE | re.DOTALL)
_WITHIN = re.compile(r"#[\w.-]+|data:image/png;base64,[A-Za-z0-9+/=\s]*")

_OF_FIGURES = "svg g defs clipPath path use rect text tspan image"
_SHAPES = "id d x y width height viewBox transform clip-path style"

SVG = Language(
    frozenset(_OF_FIGURES.split()),
    # a link leads into its own figure, or holds the pixels of a map, which are in the figure too
    {**dict.fromkeys(_SHAPES.split(), _ANYTHING), "href": _WITHIN},
    frozenset({"text", "tspan"}),
)
"""What a plot of matplotlib's needs."""

_LENGTHS = (
    "width height depth lspace rspace voffset minsize maxsize linethickness columnspacing rowspacing "
    "mathsize"
)
_WORDS = (
    "accent accentunder displaystyle fence largeop movablelimits separator stretchy symmetric "
    "scriptlevel form mathvariant mathcolor mathbackground notation frame columnalign columnlines "
    "rowalign rowlines columnspan"
)
_OF_FORMULAS = (
    "math mi mn mo ms mtext mspace mrow mstyle mfrac msqrt mroot msub msup msubsup munder mover "
    "munderover mmultiscripts mprescripts none mtable mtr mtd mphantom mpadded menclose merror"
)

MATHML = Language(
    frozenset(_OF_FORMULAS.split()),
    {**dict.fromkeys(_LENGTHS.split(), LENGTH), **dict.fromkeys(_WORDS.split(), WORD)},
    frozenset({"mi", "mn", "mo", "ms", "mtext"}),
)
"""What formulas need: no links, no scripts, no styles, no identifiers and no HTML inside of text."""


def only(part: ElementTree.Element, language: Language) -> ElementTree.Element:
    """Return a copy without namespaces, with elements and attributes of a language alone."""
    copy = ElementTree.Element(local(part.tag))
    named = ((local(name), value) for name, value in part.attrib.items())
    copy.attrib = {name: value for name, value in named if language.admits(name, value)}
    copy.text = part.text if copy.tag in language.texts else None
    inside = [only(child, language) for child in part if local(child.tag) in language.elements]
    copy.extend(child for child in inside if child.tag != "image" or "href" in child.attrib)
    return copy


def local(name: object) -> str:
    """Return the name of an element or attribute without its namespace; empty for a comment."""
    return name.rpartition("}")[2] if isinstance(name, str) else ""
