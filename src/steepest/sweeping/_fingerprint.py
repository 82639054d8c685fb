"""Which program this is, to the source: numbers of two sweeps are comparable only if it is the same."""

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

import steepest


@cache
def fingerprint() -> str:
    """Version of steepest with a hash of its source files, and the versions of what computes.

    >>> fingerprint().startswith(f"steepest {steepest.__version__}")
    True
    """
    root, digest = Path(steepest.__file__).parent, hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    rest = " ".join(f"{name} {version(name)}" for name in ("jax", "jaxlib", "numpy"))
    return f"steepest {steepest.__version__} ({digest.hexdigest()[:8]}) {rest}"
