"""What the results said of each number in the book's prose when it was last written down.

    python -m tests.docs.record

looks every number of the chapters up in the results of ``tests.contract.green`` (and in those of the settings that the
chapters show, which it runs where they are not stored), and writes ``recorded.json``: by claim, the code that gave the
result, its verdict, and the numbers. The tests compare what the authors typed with it. ``checks.json`` has, of every
claim, the ids of the checks that count, which the map of the sources names.
"""

import json
from pathlib import Path
from typing import Any

import jax

from steepest import catalogue
from steepest.engine.fingerprint import stamp
from steepest.engine.run import answer, ready
from steepest.engine.store import Store
from steepest.site.book import Asked, Number, Shelf, chapters, docs_folder, needs, numbers
from tests.contract.green import RESULTS

PATH = Path(__file__).with_name("recorded.json")
CHECKS = Path(__file__).with_name("checks.json")


def recorded() -> dict[str, Any]:
    """Return the record: by claim (and fields), ``judged``, ``verdict`` and ``numbers``."""
    return _read(PATH)


def recorded_checks() -> dict[str, Any]:
    """Return the checks of all claims: by claim, ``judged`` and the ids of ``checks`` that count."""
    return _read(CHECKS)


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def told() -> list[tuple[str, Number]]:
    """Return every number of the book's prose, with the page that tells it."""
    return [
        (chapter.name, number)
        for chapter in chapters(docs_folder())
        for number in numbers(chapter.text)
    ]


def code_of(asked: Asked) -> str:
    """Return the digest of the code that gives a claim's verdict now."""
    return code_of_claim(asked.claim)


def code_of_claim(name: str) -> str:
    """Return the digest of the code that gives a claim's verdict now, whatever its fields."""
    return stamp(catalogue.entry(name)).judgement


def key(number: Number) -> str:
    return f"{number.kind} {number.what}"


def main() -> None:
    """Run what is missing or stale, and write the records."""
    store = Store(RESULTS)
    wanted = {*needs(docs_folder()), *map(Asked, catalogue.built_in())}
    for asked in wanted:
        answer(ready(catalogue.entry(asked.claim), "quick", 0, dict(asked.fields)), store=store)
    shelf = Shelf(RESULTS)
    write_checks(shelf)
    record: dict[str, Any] = {}
    for asked in sorted(needs(docs_folder()), key=str):
        run = shelf.run(asked)
        assert run is not None, f"{asked} has no result"
        record[str(asked)] = {
            "judged": code_of(asked),
            "verdict": str(run.result.verdict),
            "numbers": {},
        }
    for page, number in told():
        try:
            record[str(number.of)]["numbers"][key(number)] = shelf.number(number)
        except Exception as trouble:
            raise SystemExit(f"{page}: {number.typed} <{number.target}>: {trouble}") from None
    PATH.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


def write_checks(shelf: Shelf) -> None:
    """Write down which checks of each claim count."""
    checks = {}
    for name in sorted(catalogue.built_in()):
        run = shelf.run(Asked(name))
        assert run is not None, f"{name} has no result"
        ids = [check.id for check in run.result.checks if not check.idle]
        checks[name] = {"judged": code_of_claim(name), "checks": ids}
    CHECKS.write_text(json.dumps(checks, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
