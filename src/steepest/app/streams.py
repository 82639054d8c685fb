"""Standard output and standard error: symbols that they can show, and lines of ours; nothing here imports rich.

Every word that a command prints goes through here or through ``console.py``, where characters that control a terminal
become visible: labels, logs, records, file names and messages come from other people. What a reader's own program
prints is its own.
"""

import codecs
import io
import json
import sys
import traceback
import unicodedata
from pathlib import Path
from types import TracebackType
from typing import Any

from steepest.core.text import visible

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
    sys.excepthook = say_defect
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # UTF-8 lacks the bytes of names that are no text
            stream.reconfigure(errors=PLAIN)


def say(text: str, end: str = "\n") -> None:
    """Print a line on standard error."""
    print(visible(text), file=sys.stderr, end=end, flush=True)


def tell(text: str) -> None:
    """Print a line on standard output."""
    print(visible(text))


def tell_json(record: Any) -> None:
    """Print a record on standard output as JSON, which writes every character of a terminal's as an escape."""
    print(json.dumps(record, indent=1).replace("\x7f", "\\u007f"))


def say_defect(
    kind: type[BaseException], trouble: BaseException, trace: TracebackType | None
) -> None:
    """Print what nobody caught, as Python does."""
    say("".join(traceback.format_exception(kind, trouble, trace)), end="")


def say_page(page: Path, as_json: bool) -> None:
    """Print where a page is: on standard error where standard output is for JSON."""
    (say if as_json else tell)(f"page: {page}")
