"""The public names as they were written down; a new one is added by

    python -m tests.public_names

which never takes one away: that is done by hand in ``public_names.json``, when its deprecation has ended
(``docs/api_stability.md``).
"""

import argparse
import importlib
import json
from pathlib import Path

from steepest.app.cli import build_parser
from steepest.site.book._reference import PACKAGES, public_names

PATH = Path(__file__).with_name("public_names.json")


def offered():
    """Names of each public package, and options of each command, that there are now."""
    names = {package: names_of(package) for package in PACKAGES}
    return names | {f"steepest {name}": options for name, options in commands().items()}


def names_of(package):
    """What a reader may import from a package."""
    module = importlib.import_module(package)
    return sorted(getattr(module, "__all__", public_names(module)))


def commands():
    """The options of each command, and its arguments by their metavariables."""
    (subparsers,) = (
        action
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return {name: words_of(parser) for name, parser in subparsers.choices.items()}


def words_of(parser):
    """The words of one command."""
    words = []
    for action in parser._actions:
        words += action.option_strings or [str(action.metavar)]
    return sorted(words)


def written():
    """The names that were promised."""
    return json.loads(PATH.read_text("utf-8"))


def main():
    """Add the names that are new."""
    promised = written() if PATH.exists() else {}
    now = offered()
    both = {
        place: sorted({*promised.get(place, []), *now.get(place, [])})
        for place in sorted({*promised, *now})
    }
    PATH.write_text(json.dumps(both, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
