"""Standard output and standard error: symbols that they can show, and lines of ours; nothing here imports rich."""

import codecs
import io
import sys
import unicodedata
from pathlib import Path

_ASCII = {
    "✓": "+",
    "✗": "x",
    "–": "-",
    "—": "-",
    "−": "-",
    "…": "...",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "×": "x",
    "·": ".",
    "→": "->",
    "∞": "inf",
    "√": "sqrt",
    "‖": "||",
    "∇": "grad ",
    "Σ": "sum ",
    "½": "1/2",
    "¼": "1/4",
    "’": "'",
    "“": '"',
    "”": '"',
    "²": "^2",
    "³": "^3",
    "ᵀ": "^T",
    "∥": "||",
    "⊥": "_perp",
    "ℓ": "l",
    "∝": "~",
    "⁻": "-",
    "ᵖ": "^p",
}
PLAIN = "steepest.plain"
"""The error handler of streams that have no such symbols."""


def _plainly(error: UnicodeError) -> tuple[str, int]:
    """Spell what an encoding lacks in plain words: λ becomes lambda."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    symbols = error.object[error.start : error.end]
    return "".join(_spelled(symbol) for symbol in symbols), error.end


def _spelled(symbol: str) -> str:
    if symbol in _ASCII:
        return _ASCII[symbol]
    name = unicodedata.name(symbol, "")
    if name.startswith("GREEK"):
        word = name.split()[3] if len(name.split()) > 3 else ""
        return {"lamda": "lambda"}.get(word.lower(), word.lower())
    decomposed = unicodedata.normalize("NFKD", symbol).encode("ascii", "ignore").decode()
    return decomposed or "?"


def speak_plainly() -> None:
    """Let streams whose encoding lacks our symbols spell them, instead of breaking off."""
    codecs.register_error(PLAIN, _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # UTF-8 lacks the bytes of names that are no text
            stream.reconfigure(errors=PLAIN)


def say(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr, flush=True)


def say_page(page: Path, json: bool) -> None:
    """Print where a page is: on standard error where standard output is for JSON."""
    print(f"page: {page}", file=sys.stderr if json else sys.stdout)
