"""The terminal: a bar on standard error, tables on standard output, symbols that it can show."""

import codecs
import io
import sys
import unicodedata
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from steepest.core.words import LOOKS

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


def styled(verdict: str) -> str:
    """Return a verdict as rich shows it: sign and word in its colour."""
    look = LOOKS[verdict]
    return f"[{look.colour}]{look.sign} {look.word}[/]"


def sign(holds: bool | None) -> str:
    """Return the sign of something that holds, does not, or is not known."""
    return {True: LOOKS["holds"].sign, False: LOOKS["fails"].sign, None: "?"}[holds]


def wide() -> Console:
    """Return standard output; a file or pipe has no width of its own, so that tables are not folded there.

    A notebook gets the plain text of a file too: rich would make a page of each line, and its kernel asks for colours.
    """
    if type(sys.stdout).__module__.partition(".")[0] == "ipykernel":
        return _Output(width=160, force_jupyter=False, force_terminal=False)
    return _Output() if sys.stdout.isatty() else _Output(width=160)


class _Output(Console):
    """Leaves a pipe whose reader went away to the command line, for which it is no error."""

    def on_broken_pipe(self) -> None:
        """Go on with the error that was raised."""
        raise BrokenPipeError


def beside() -> Console:
    """Return standard error, for what is said while something runs: standard output stays free for its result."""
    return Console(file=sys.stderr)


def bar() -> Progress:
    """Return a bar on standard error: standard output stays free for JSON."""
    columns = (
        SpinnerColumn(),
        BarColumn(20),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[claim]}: {task.fields[stage]}", markup=False),
    )
    console = beside()
    # where no bar can be drawn, rich would leave an empty line behind
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def say(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr, flush=True)


def say_page(page: Path, json: bool) -> None:
    """Print where a page is: on standard error where standard output is for JSON."""
    print(f"page: {page}", file=sys.stderr if json else sys.stdout)
