"""Formulas as lines of text, for a terminal."""

import re
import unicodedata
from collections.abc import Mapping
from xml.etree.ElementTree import Element

_ENTITY = re.compile(r"&#x([0-9A-Fa-f]{1,5});")
_HIGH = str.maketrans("0123456789+−-=()nitTk⊤'′″", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱᵗᵀᵏᵀ′′″")
_LOW = str.maketrans("0123456789+−-=()aeijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")
_RELATIONS = set("=<>≤≥≈≃∼≡≠∈∉→←⟶⟹⇒⇔⟺∝≪≫⊂⊆≲≳↦≍+−∪∩∧∨:") | {"if", "and", "or", "otherwise"}
_ACCENTS = {
    "^": "\u0302",
    "ˆ": "\u0302",
    "~": "\u0303",
    "˜": "\u0303",
    "¯": "\u0304",
    "˙": "\u0307",
    "→": "\u20d7",
}
_FUNCTION = r"(?:arc|ar)?(?:log|exp|sinh?|cosh?|tanh?|max|min|sup|inf|sign|rank|tr|Var|arg)"
_SINGLE = {"mi", "mn", "mtext", "msub", "msup", "msubsup", "mover"}
_SUMS = set("+−=<>≤≥≈±∓ ")


def plain_formula(latex: str) -> str:
    r"""Return a formula in Unicode, on one line; one that cannot be read as it is.

    >>> plain_formula(r"\lambda_{\max} \to \frac{2}{\eta}, \quad \|w_t\|^2 \le \sqrt{n+1}")
    'λ_max → 2/η,  ‖wₜ‖² ≤ √(n + 1)'
    >>> plain_formula(r"\text{width} \ge \frac{a+b}{c_1}"), plain_formula(r"\frac{")
    ('width ≥ (a + b)/c₁', '\\frac{')
    """
    from latex2mathml.converter import convert_to_element

    plain = re.sub(r"\\arg(?![a-z])", r"\\operatorname{arg}", latex)
    plain = re.sub(r"\\sim(?![a-z])", "\u223c", plain)
    try:
        text = _row(convert_to_element(plain))
    except Exception:  # the converter raises what its lists and tables raise, too
        return latex
    text = re.sub(r"(^|[=<>≤≥≈≃→⇒∼∝∈,;:(\[{⟨/|^]) *− +", r"\1 −", text)  # a sign, no difference
    text = re.sub(r"([(\[{⟨/|]) +−", r"\1−", text)
    text = re.sub(rf"({_FUNCTION}) +\(", r"\1(", re.sub(r" {3,}", "  ", text))
    text = re.sub(r"(?<=[(\[{]) +", "", text)
    return re.sub(r" +([,.;)\]}])", r"\1", text).strip()


def _row(part: Element) -> str:
    """The texts of elements beside each other; a fraction beside a factor is in brackets."""
    texts = [_text(child) for child in part]
    for place, child in reversed(list(enumerate(part))):
        before = texts[place - 1].rstrip()[-1:] if place else ""
        behind = "".join(texts[place + 1 :])[:1]
        factor = before.isalnum() or before in tuple(")⟩/") or behind.isalnum()
        if _only(child).tag == "mfrac" and (factor or behind in tuple("(√∑∏∫⟨/")):
            texts[place] = f"({texts[place]})"
    return "".join(texts)


def _only(part: Element) -> Element:
    """What an element holds, where it is a row of one."""
    while part.tag in ("mrow", "mstyle") and len(part) == 1:
        part = part[0]
    return part


def _text(part: Element) -> str:
    """The text of one element."""
    parts = [_text(child).strip() for child in part]
    match part.tag:
        case "mi" | "mn" | "mo" | "mtext" | "ms":
            return _letters(part)
        case "mspace":
            wide = part.get("width", "").startswith(("1", "2"))
            return "  " if wide else ""
        case "mfrac" if len(parts) == 2:
            above = parts[0] if not _SUMS & set(_outside(parts[0])) else f"({parts[0]})"
            return f"{above}/{_closed(part[1], parts[1])}"
        case "msqrt":
            return f"√{_closed(part, _row(part).strip())}"
        case "mroot" if len(parts) == 2:
            return f"{_script(parts[1], _HIGH, '^')}√{_closed(part[0], parts[0])}"
        case "msub" | "munder" if len(parts) == 2:
            return parts[0] + _script(parts[1], _LOW, "_") + _behind(part)
        case "msup" if len(parts) == 2:
            return parts[0] + _script(parts[1], _HIGH, "^")
        case "mover" if len(parts) == 2:
            mark = _ACCENTS.get(parts[1], "")
            return (
                unicodedata.normalize("NFC", parts[0] + mark) if mark else f"{parts[0]}^{parts[1]}"
            )
        case "msubsup" | "munderover" if len(parts) == 3:
            low = _script(parts[1], _LOW, "_")
            return parts[0] + low + _script(parts[2], _HIGH, "^") + _behind(part)
        case "mtable":
            return "; ".join("  ".join(filter(None, map(_row, row))).strip() for row in part)
    return _row(part)


def _letters(part: Element) -> str:
    """The letters of an element, with the space that its kind has around it."""
    text = _ENTITY.sub(lambda found: chr(int(found[1], 16)), part.text or "")
    text = text.replace("\u2061", "").replace("\u2009", " ").replace("∥", "‖")
    text = {r"\{": "{", r"\}": "}", r"\|": "‖"}.get(text, text)
    if part.tag == "mtext":
        return text
    if text in _RELATIONS:
        return f" {text} "
    if text == ",":
        return ", "
    if len(text) > 1 and text.isalpha() and unicodedata.name(text[0], "").startswith("LATIN"):
        return f" {text} "  # a named function
    return text


def _behind(part: Element) -> str:
    """A space behind a sum, or a named function, with what stands at it."""
    text = _letters(part[0]).strip()
    return " " if text in "∑∏∫" or len(text) > 1 else ""


def _script(text: str, letters: Mapping[int, int | str], sign: str) -> str:
    """An index or exponent: of letters of its own where all of it has them, but words stay words."""
    bare = text.replace(" ", "")
    if bare.isalpha() and len(bare) > 1:
        return f"{sign}{bare}"
    if bare and all(ord(letter) in letters for letter in bare):
        return bare.translate(letters)
    return f"{sign}{bare}" if len(bare) < 2 or bare.isalnum() else f"{sign}({bare})"


def _closed(part: Element, text: str) -> str:
    """What stands under a line or a root, in brackets unless it is one thing."""
    inner = part[0] if part.tag == "msqrt" and len(part) == 1 else part
    closed = text[:1] == "(" and text[-1:] == ")" and not _outside(text)
    single = _only(inner).tag in _SINGLE or text.isdigit()
    return text if closed or (single and not _SUMS & set(_outside(text))) else f"({text})"


def _outside(text: str) -> str:
    """The part of a text that stands outside of brackets."""
    depth = 0
    outside = ""
    for letter in text:
        depth -= letter in ")]}⟩"
        outside += letter if depth == 0 and letter not in "([{⟨)]}⟩" else ""
        depth += letter in "([{⟨"
    return outside
