"""Hints for a name that is not known: those that contain it, the nearest one, or where all of them are."""

import difflib
from collections.abc import Iterable

SEVERAL = 6
"""Words that a hint names beside each other."""
FEW = 30
"""Words that a list may have on a line."""


def near(word: str, words: Iterable[str], otherwise: str = "") -> str:
    """Return a hint with the known words that contain a word, or the nearest one, or the list of all of them.

    Args:
        word: what was asked for.
        words: the known ones.
        otherwise: what to say where none is near, instead of the list.

    >>> near("widht", ["width", "depth"]), near("edge", ["sam-edge", "edge-of-stability", "catapult"])
    ("did you mean 'width'?", "did you mean 'edge-of-stability' or 'sam-edge'?")
    >>> near("x", []), near("zzz", ["width", "depth"])
    ('there are none', 'known are: depth, width')
    """
    words = list(dict.fromkeys(words))
    low = word.lower()
    close = [other for other in words if len(low) > 2 and low in other.lower()]
    close.sort(key=lambda other: not other.lower().startswith(low))
    close = close or difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    if close:
        more = f" (and {len(close) - SEVERAL} more)" if len(close) > SEVERAL else ""
        *others, last = [repr(other) for other in close[:SEVERAL]]
        return f"did you mean {', '.join(others)}{' or ' * bool(others)}{last}{more}?"
    if otherwise or not words:
        return otherwise or "there are none"
    if len(words) > FEW:
        return f"there are {len(words)}, from {min(words)} to {max(words)}"
    return f"known are: {', '.join(sorted(words))}"
