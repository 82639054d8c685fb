"""Records: the plain form of numbers and text that JSON can hold, and their digests."""

import hashlib
import json
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any


def plain(value: Any) -> Any:
    """Return a value in Python's own types, with null for numbers that JSON cannot say.

    >>> plain({"a": (1.0, float("inf"))})
    {'a': [1.0, None]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, Enum):
        return str(value)
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def number(value: float | None, missing: float = math.nan) -> float:
    """Return a number read from JSON; ``missing`` where it says null."""
    return missing if value is None else value


def canonical_digest(value: Any) -> str:
    """Return the SHA-256 of a JSON-ready value, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
