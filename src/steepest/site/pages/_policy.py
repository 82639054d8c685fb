"""What a browser may do with a page: the second wall, should text of others ever get through as markup."""

import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256

SELF = "'self' file:"
"""Files beside the page: a browser may not count those of the disk as a page's own."""
_INLINE = re.compile(
    r"<script(?![^>]*\bsrc=)(?![^>]*\bapplication/json)[^>]*>(.*?)</script>", re.DOTALL
)


def policy(scripts: Sequence[str] = (), *, files: bool = False, images: bool = False) -> str:
    """Return the content security policy of a page.

    Nothing comes from a network. Styles in attributes are allowed, as figures have their colours there.

    Args:
        scripts: those that stand in the page; whatever else stands there does not run, and nothing does without any.
            They may load further ones, which a page itself may not.
        files: whether the page may name scripts that lie beside it, and send its forms there.
        images: whether it has pictures in files beside it.

    >>> policy().split("; ")[:2], "script-src" in policy(), "'strict-dynamic'" in policy(["run()"])
    (["default-src 'none'", "base-uri 'none'"], False, True)
    """
    parts = [
        "default-src 'none'",
        "base-uri 'none'",
        f"style-src {SELF} 'unsafe-inline'",
        f"font-src {SELF} data:",
        f"img-src {SELF} data:" if images else "img-src data:",
    ]
    sources = [_hash(script) for script in scripts]
    if files:
        sources.insert(0, SELF)
        parts.append(f"form-action {SELF}")
    else:
        sources += ["'strict-dynamic'"] * bool(sources)
        parts.append("form-action 'none'")
    if sources:
        parts.append(f"script-src {' '.join(sources)}")
    return "; ".join(parts)


def guarded(page: str) -> str:
    """Return a page of the book with its policy: its own scripts run, and those of files beside it."""
    rule = policy(_INLINE.findall(page), files=True, images=True)
    tag = f'<meta http-equiv="Content-Security-Policy" content="{rule}">'
    return re.sub(r"<head[^>]*>", lambda head: head[0] + tag, page, count=1)


def _hash(script: str) -> str:
    """The hash by which a policy knows a script: of the characters between its tags."""
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
