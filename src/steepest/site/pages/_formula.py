"""LaTeX as MathML, written when the page is built: browsers set it without scripts."""

import re
import unicodedata
import warnings
from xml.etree import ElementTree

from markupsafe import Markup

from steepest.core.text import visible

from ._safe import MATHML, only

_ROWS = ("math", "mrow", "mstyle", "mtd")
_DELIMITERS = {
    r"\{": "{", r"\}": "}", r"\lbrace": "{", r"\rbrace": "}", r"\|": "‖", r"\Vert": "‖", r"\vert": "|",
    r"\langle": "⟨", r"\rangle": "⟩", r"\lfloor": "⌊", r"\rfloor": "⌋", r"\lceil": "⌈", r"\rceil": "⌉",
}  # fmt: skip
r"""Delimiters of a size, as in ``\Big\{``, which the converter leaves as they are written."""
_PRIMES = ("′", "″", "‴", "⁗")


def formula(latex: str, display: str = "block") -> Markup:
    r"""A formula, on a line of its own or (``"inline"``) in the text.

    Text stays text, and only elements and attributes of MathML that formulas need are let through, as a statement
    may come from somebody else's results. A command that the converter does not know is printed as it is, and so is a
    formula that it cannot read, with a warning.

    >>> "<mfrac>" in formula(r"\frac{1}{\log t}"), "𝟏" in formula(r"\mathbf{1}"), "𝜽" in formula(r"\boldsymbol{\theta}")
    (True, True, True)
    >>> "≃" in formula(r"a \simeq b"), "∼" in formula(r"a \sim b")
    (True, True)
    >>> "<mtext>&lt;b&gt;</mtext>" in formula(r"\text{<b>}")
    True
    """
    root = _converted(latex, display)
    for part in root.iter():
        _correct(part)
    for row in list(root.iter()):
        if row.tag in _ROWS:
            _space(row)
    text = "".join(root.itertext())
    if len(root) and root[0].tag != "merror" and (unknown := re.search(r"\\[A-Za-z]+", text)):
        warnings.warn(
            f"{unknown[0]} in the formula {latex!r} is printed as it is; use simpler commands",
            stacklevel=2,
        )
    _unwrap(root)
    for part in list(root.iter()):
        _put_prime_beside(part)
        _let_grow(part)
    root.attrib = {"display": display, "alttext": visible(latex)}
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _converted(latex: str, display: str) -> ElementTree.Element:
    """The elements of a formula; of one that cannot be read its source."""
    from latex2mathml.converter import convert_to_element

    plain = re.sub(r"\\arg(?![a-z])", r"\\operatorname{arg}", visible(latex))
    plain = re.sub(r"\\sim(?![a-z])", "\u223c", plain)
    try:
        # its own text of this tree would take what stands in \text for elements
        root = only(convert_to_element(plain, display=display), MATHML)
    except Exception as trouble:  # the converter raises what its lists and tables raise, too
        why = type(trouble).__name__
        warnings.warn(
            f"the formula {latex[:200]!r} cannot be read ({why}); it is printed as it is",
            stacklevel=3,
        )
        root = ElementTree.Element("math")
        ElementTree.SubElement(ElementTree.SubElement(root, "merror"), "mtext").text = plain
    for part in root.iter():
        if part.text:
            part.text = _ENTITY.sub(lambda found: visible(chr(int(found[1], 16))), part.text)
    return root


_ENTITY = re.compile(r"&#x([0-9A-Fa-f]{1,5});")
"""How the converter writes symbols."""


def _unwrap(row: ElementTree.Element) -> None:
    """Put the only part of a row in the row's place: what one row holds needs no row around it."""
    for place, part in enumerate(list(row)):
        _unwrap(part)
        if part.tag == "mrow" and not part.attrib and len(part) == 1:
            part[0].tail = part.tail
            row[place] = part[0]
    if row.tag == "math" and len(row) == 1 and row[0].tag == "mrow" and not row[0].attrib:
        row[:] = list(row[0])


def _let_grow(part: ElementTree.Element) -> None:
    """Give a delimiter of a size that has an exponent or index a row of its own: browsers let it grow in rows alone."""
    if part.tag in ("msup", "msub", "msubsup") and "minsize" in part[0].attrib:
        row = ElementTree.Element("mrow")
        row.append(part[0])
        part[0] = row


def split_formula(latex: str) -> list[str]:
    r"""Split a statement where wide spaces part it, outside of braces, brackets of a size and environments.

    Each part is a formula, so that a page can put them under each other where they do not fit beside each other.

    >>> split_formula(r"a = b, \quad c = \left( d \qquad e \right), \qquad f")
    ['a = b,', 'c = \\left( d \\qquad e \\right),', 'f']
    """
    pieces = [""]
    depth = 0
    for token in re.findall(r"\\[a-zA-Z]+|\\.|.", latex, re.DOTALL):
        depth += token in ("{", r"\left", r"\begin")
        depth -= token in ("}", r"\right", r"\end")
        if not depth and token in (r"\quad", r"\qquad"):
            pieces.append("")
        else:
            pieces[-1] += token
    return [piece.strip() for piece in pieces if piece.strip()]


def _correct(part: ElementTree.Element) -> None:
    """Bold letters, upright capital Greek, relations that are operators, and bars without space."""
    text = part.text = _DELIMITERS.get(part.text or "", part.text or "")
    if "minsize" in part.attrib:
        part.attrib |= {"stretchy": "true", "symmetric": "true"}
    if part.get("mathvariant") in ("bold", "bold-italic"):
        part.text = "".join(_bold(letter, part.attrib["mathvariant"]) for letter in text)
        del part.attrib["mathvariant"]
    if part.tag == "mi" and re.fullmatch("[Γ-Ω]", text):
        part.set("mathvariant", "normal")
    if text == "\u223c":
        part.tag = "mo"
    if part.tag == "mo" and text in ("|", "‖", "∥", "∣"):  # a norm, not a relation
        part.attrib.update({"lspace": "0", "rspace": "0"})
        part.attrib.setdefault(
            "stretchy", "false"
        )  # else one of a pair grows: which end it is nothing tells
    if (
        part.tag == "mo" and len(text) > 3 and text.isalpha()
    ):  # a named function; min, max, sup, inf and lim are operators
        part.tag = "mi"


def _put_prime_beside(part: ElementTree.Element) -> None:
    """Take a prime out of the exponent: the sign is small and high by itself, and would be shrunk twice."""
    if part.tag not in ("msup", "msubsup") or part[-1].text not in _PRIMES:
        return
    *inside, prime = part
    if part.tag == "msubsup":
        base = ElementTree.Element("msub")
        base[:] = inside
        inside = [base]
    prime.tag = "mi"
    part.tag = "mrow"
    part[:] = [*inside, prime]


def _bold(letter: str, variant: str) -> str:
    """The character of a bold letter or digit, as browsers know no other variant than "normal"."""
    kind = variant.replace("-", " ").upper()
    name = (
        unicodedata.name(letter, "")
        .replace("LATIN ", "")
        .replace("GREEK ", "")
        .replace(" LETTER", "")
    )
    try:
        return unicodedata.lookup(f"MATHEMATICAL {'BOLD' if letter.isdigit() else kind} {name}")
    except KeyError:
        return letter


def _space(row: ElementTree.Element) -> None:
    """A thin space between a function's name and its argument, as in log t."""
    spaced: list[ElementTree.Element] = []
    children = list(row)
    for child, following in zip(children, [*children[1:], None], strict=True):
        spaced.append(child)
        name = child[0] if child.tag in ("msub", "msup") else child
        if (
            name.tag == "mi"
            and len(name.text or "") > 1
            and following is not None
            and following.tag != "mo"
        ):
            spaced.append(ElementTree.Element("mspace", {"width": "0.167em"}))
    row[:] = spaced
