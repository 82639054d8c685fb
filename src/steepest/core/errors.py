"""Mistakes of the user's, said in one sentence."""

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """Bad input: the message says what, expected, got and what to try. The command line exits with code 2."""


def nearest(word: str, words: Iterable[str]) -> str:
    """Return a hint with the nearest known word, or the list of all of them.

    >>> nearest("widht", ["width", "depth"])
    "did you mean 'width'?"
    """
    words = list(words)
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(sorted(words))}"
