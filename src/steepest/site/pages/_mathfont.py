"""A mathematics font cut down to the characters that a site's formulas use, so that brackets grow and primes show.

Browsers set MathML with whatever font they find; without one that has a MATH table, brackets stay small and accents
fall off. The font is STIX Two Math (SIL Open Font License), which the package ziamath carries.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

MATH_FILE = "math.woff"
FONT = "STIXTwoMath-Regular.ttf"
MATH_SHEET = (
    f'@font-face {{ font-family: "Book Math"; src: url("{MATH_FILE}") format("woff"); font-display: block; }}\n'
    'math { font-family: "Book Math", "STIX Two Math", "Cambria Math", math; }\n'
)
"""What the style sheet beside the font says."""
ALWAYS = "()[]{}|‖⟨⟩⌊⌋⌈⌉√′″∑∏∫,.=+−·0123456789"


def characters(pages: Iterable[str]) -> str:
    """Return the characters of all formulas in pages of HTML, sorted, with the italics that browsers make of letters.

    >>> "𝑥" in characters(['<math alttext="x"><mi>x</mi></math>'])
    True
    """
    used = set(ALWAYS)
    for page in pages:
        for formula in re.findall(r"<math.*?</math>", page, re.DOTALL):
            used |= set(_plain(re.sub(r"<[^>]*>", "", formula)))
    return "".join(sorted(used | {italic for one in used if (italic := _italic(one))}))


def _plain(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


@lru_cache(maxsize=4)
def font(characters: str) -> bytes:
    """Return the font with these characters and their larger sizes, as WOFF."""
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont

    options = Options()
    options.layout_features = ["ssty"]
    options.hinting = False  # half of its bytes
    options.notdef_outline = True
    # the package is not imported: only its font is wanted
    spec = find_spec("ziamath")
    path = Path((spec and spec.origin) or "").parent / "fonts" / FONT
    whole = TTFont(path, recalcTimestamp=False)  # the same characters give the same bytes
    _small_forms_of_primes_alone(whole)
    cut = Subsetter(options)
    cut.populate(text=characters)
    cut.subset(whole)
    whole.flavor = "woff"
    written = BytesIO()
    whole.save(written)
    return written.getvalue()


def _small_forms_of_primes_alone(whole: Any) -> None:
    """Forget the forms that other letters have in exponents: they are half of the font, and hardly differ."""
    names = {whole.getBestCmap()[ord(prime)] for prime in "′″‴‵"}
    table = whole["GSUB"].table
    places = {
        place
        for record in table.FeatureList.FeatureRecord
        if record.FeatureTag == "ssty"
        for place in record.Feature.LookupListIndex
    }
    for place in places:
        for part in table.LookupList.Lookup[place].SubTable:
            part = getattr(part, "ExtSubTable", part)
            forms = part.alternates if hasattr(part, "alternates") else part.mapping
            for name in set(forms) - names:
                del forms[name]


def _italic(letter: str) -> str:
    """The mathematical italic of a letter, as browsers set a single one; empty where there is none."""
    if letter == "h":
        return "ℎ"  # Planck's constant keeps the place
    words = unicodedata.name(letter, "").replace(" LETTER", "").split()
    if len(words) != 3 or words[0] not in ("LATIN", "GREEK"):
        return ""
    try:
        return unicodedata.lookup(f"MATHEMATICAL ITALIC {words[1]} {words[2]}")
    except KeyError:
        return ""
