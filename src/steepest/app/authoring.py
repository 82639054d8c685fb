"""``steepest new`` and ``steepest check``: for authors of claims."""

import ast
import keyword
import os
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from steepest import catalogue
from steepest.core.errors import UserError
from steepest.core.writing import move_where_nothing_is, remove_leftovers_of, temporary


def write_template(target: str) -> Path:
    """Write a new claim that runs as it is, and return its path.

    Args:
        target: a name such as ``my-claim``, or the path of a file such as ``drafts/my_claim.py``.

    Raises:
        UserError: a name that is no plain word or that is taken, a file that is there, a folder that is not.
    """
    path = Path(target)
    if path.name and path.suffix != ".py":
        path = path.with_name(path.name.replace("-", "_") + ".py")
    name = catalogue.claim_name(path)
    if not catalogue.is_name(name):
        raise UserError(
            f"a claim's name is lower-case words joined by hyphens, got {target!r}; try my-claim or my_claim.py"
        )
    if name in catalogue.catalogue():
        origin = catalogue.catalogue()[name].origin
        raise UserError(f"there is a claim {name!r} in {origin} already; choose another name")
    if os.path.lexists(path):
        raise UserError(f"{path} is there already and was not touched; choose another name")
    if not path.absolute().parent.is_dir():
        raise UserError(f"there is no folder {path.parent}; make it first")
    title = "".join(word.capitalize() for word in name.split("-"))
    text = (resources.files("steepest.app") / "template.py").read_text("utf-8")
    if keyword.iskeyword(title) or title in _imported(text):
        raise UserError(
            f"the class of {name!r} would be called {title}, which means something else in its file; try my-{name}"
        )
    try:
        remove_leftovers_of(path)
        with temporary(path) as fresh:
            fresh.write_text(text.replace("class Template", f"class {title}"), "utf-8")
            move_where_nothing_is(fresh, path)
    except FileExistsError:
        raise UserError(
            f"{path} is there already and was not touched; choose another name"
        ) from None
    except OSError as trouble:
        raise UserError(
            f"cannot write {path} ({trouble.strerror}); choose another folder"
        ) from None
    return path


def _imported(text: str) -> set[str]:
    """The names that a source imports."""
    imports = (ast.Import, ast.ImportFrom)
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, imports))
    return {alias.asname or alias.name for node in nodes for alias in node.names}


def inspected(
    entry: catalogue.Entry, seen: Callable[[Any], None] = lambda result: None
) -> Iterator[tuple[str, list[str]]]:
    """Yield what a claim was looked at for, and what it lacks there, in plain words; the quick preset comes last.

    Args:
        entry: the claim's line in the catalogue.
        seen: called with the result of the quick preset.
    """
    from steepest.app.contract import problems, problems_of_verdict, run_quick  # they import JAX

    yield from problems(entry)
    result = run_quick(entry)
    seen(result)
    yield problems_of_verdict(result)


def check_claim(target: str) -> int:
    """Print what a claim still lacks, in plain words; return how many things that are."""
    from steepest.app.console import sign
    from steepest.app.details import more_repetitions
    from steepest.app.streams import tell
    from steepest.core.words import Verdict

    entry = catalogue.entry(target)
    count = 0
    results: list[Any] = []
    for title, missing in inspected(entry, results.append):
        tell(f"{'✗' if missing else '✓'} {title}")
        for problem in missing:
            tell(f"    {problem}")
        count += len(missing)
    result = results[0]
    if result.verdict is not Verdict.HOLDS:
        tell(f"{sign(None)} verdict of the quick preset: {result.verdict.value} — {result.reason}")
    for line in more_repetitions(result):
        tell(f"? {line}")
    words = "nothing is missing" if not count else f"{count} to mend"
    tell(f"{entry.name}: {words}")
    return count
