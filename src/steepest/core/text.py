"""Text of others, made fit for a terminal or a page."""

import re

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # of terminals; tabs and line breaks stay
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what turns the direction of the text around
    "\u2028\u2029\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"  # what files and pages cannot hold
)


def visible(text: str) -> str:
    r"""Return a text in which what controls a terminal, or turns its direction around, is written out.

    Labels, logs, records and messages come from other people: an escape character in them could move the cursor,
    change the window's title or hide what stands there.

    >>> visible("a\x1b[31mred\x07"), visible("two\nlines"), visible("\u202eevil")
    ('a\\u001b[31mred\\u0007', 'two\nlines', '\\u202eevil')
    """
    return _CONTROLS.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return (
        "?" if 0xD800 <= code < 0xE000 else f"\\u{code:04x}"
    )  # half a character, or a byte of no text
