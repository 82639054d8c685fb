"""Print the lowest allowed version of each dependency as a constraint for pip: ``name==lowest``, one a line."""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
BOUND = re.compile(r"([A-Za-z0-9._-]+)\s*>=\s*([0-9][0-9A-Za-z.]*)")


def constraint(requirement: str) -> str:
    """Return the constraint that allows only the lower bound of a requirement, such as ``numpy>=2.0``."""
    match = BOUND.fullmatch(requirement)
    if match is None:
        sys.exit(f"pyproject.toml: {requirement!r} has no lower bound; write it as 'name>=version'")
    name, lowest = match.groups()
    return f"{name}=={lowest}"


if __name__ == "__main__":
    project = tomllib.loads(PROJECT.read_text())["project"]
    print("\n".join(constraint(requirement) for requirement in project["dependencies"]))
