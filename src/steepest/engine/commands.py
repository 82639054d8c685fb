"""What to type to get a result again."""

from collections.abc import Mapping
from typing import Any

from steepest.catalogue import Entry


def run_command(
    entry: Entry, preset: str, seed: int, changes: Mapping[str, Any] | None = None
) -> str:
    """Return the command that runs a claim; only what differs from its defaults is spelled out."""
    words = ["steepest", "run", entry.name if entry.module else entry.origin]
    if preset != "quick":
        words.append(f"--preset {preset}")
    if seed != 0:
        words.append(f"--seed {seed}")
    words += [f"--{name} {spell(value)}" for name, value in (changes or {}).items()]
    return " ".join(words)


def spell(value: Any) -> str:
    """Return a field's value as one types it.

    >>> spell((1.0, 2.0))
    '1.0 2.0'
    """
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
