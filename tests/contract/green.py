"""Which verdicts were last seen, and with which code: the record of green runs.

    python -m tests.contract.green

runs the quick preset of every claim whose source has changed since, or takes the stored result of the same code, and
writes ``green.json``. A verdict that differs
from the recorded one is written down like any other: the difference in the commit is what a reviewer sees.
"""

import json
from pathlib import Path
from typing import Any

import jax

from steepest import catalogue
from steepest.app.contract import is_challenged
from steepest.engine.fingerprint import stamp
from steepest.engine.run import answer, ready
from steepest.engine.store import Store

PATH = Path(__file__).with_name("green.json")
RESULTS = Path(__file__).parents[2] / ".cache" / "green"


def recorded() -> dict[str, dict[str, Any]]:
    """Return the stamp and the verdict of every claim at its last green run."""
    return json.loads(PATH.read_text("utf-8")) if PATH.is_file() else {}


def changed() -> list[str]:
    """Return the claims whose source, or anything in steepest that it imports, has changed since."""
    green = recorded()
    entries = catalogue.built_in()
    return [
        name
        for name, entry in entries.items()
        if green.get(name, {}).get("stamp") != stamp(entry).judgement
    ]


def main() -> None:
    """Run what has changed and write the record."""
    green = recorded()
    for name in changed():
        result = answer(ready(name), store=Store(RESULTS))
        missing = is_challenged(result)
        green[name] = {
            "stamp": result.stamp["judgement"],
            "verdict": str(result.verdict),
            "missing": missing,
        }
        print(name, result.verdict, *missing, sep="\n  ", flush=True)
        known = {name: green[name] for name in catalogue.built_in() if name in green}
        PATH.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
        jax.clear_caches()


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
