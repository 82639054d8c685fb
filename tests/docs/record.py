"""What the results said of each number in the book's prose when it was last written down.

    python -m tests.docs.record

looks the numbers of the chapters up in the results of ``tests.contract.green`` (and in runs with the settings that the
chapters show, which it runs where they are not stored), and writes ``recorded.json``: by claim, the code that gave
the result, its verdict, and the numbers. Entries of the same code and the same numbers stay as they are. The tests
compare what the authors typed with it. ``checks.json`` has, of every claim, the ids of the checks that count, which
the map of the sources names.
"""

import json
from pathlib import Path
from typing import Any

import jax

from steepest import catalogue
from steepest.engine.fingerprint import stamp
from steepest.engine.results import Result
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
    """Run what is stale or new, keep the rest of both records, and write them."""
    claims = [Asked(name) for name in catalogue.built_in()]
    shown = sorted(needs(docs_folder()), key=str)
    numbers_of = {asked: [(p, n) for p, n in told() if n.of == asked] for asked in shown}
    store = Store(RESULTS)
    checks = {asked.claim: _checks(asked, store) for asked in sorted(claims, key=str)}
    record = {str(asked): _numbers(asked, numbers_of[asked], store) for asked in shown}
    _write(CHECKS, checks)
    _write(PATH, record)


def _run(asked: Asked, store: Store) -> Result:
    """Return a run with these fields, made or taken from the store."""
    claim = catalogue.entry(asked.claim)
    return answer(ready(claim, "quick", 0, dict(asked.fields)), store=store)


def _checks(asked: Asked, store: Store) -> dict[str, Any]:
    """Return which checks of a claim count."""
    kept = recorded_checks().get(asked.claim, {})
    if kept.get("judged") == code_of(asked):
        return kept
    ids = [check.id for check in _run(asked, store).checks if not check.idle]
    return {"judged": code_of(asked), "checks": ids}


def _numbers(asked: Asked, told_of: list[tuple[str, Number]], store: Store) -> dict[str, Any]:
    """Return what a run says of the numbers that pages tell of it."""
    kept = recorded().get(str(asked), {})
    keys = {key(number) for _, number in told_of}
    if kept.get("judged") == code_of(asked) and keys == set(kept["numbers"]):
        return kept
    verdict = str(_run(asked, store).verdict)
    shelf = Shelf(RESULTS)  # it knows the runs that were there when it was made
    numbers = {key(number): _looked_up(page, number, shelf) for page, number in told_of}
    return {"judged": code_of(asked), "verdict": verdict, "numbers": numbers}


def _looked_up(page: str, number: Number, shelf: Shelf) -> float:
    try:
        looked_up = shelf.number(number)
        assert looked_up is not None, "no result is stored"
        return looked_up
    except Exception as trouble:
        raise SystemExit(f"{page}: {number.typed} <{number.target}>: {trouble}") from None


def _write(path: Path, record: dict[str, Any]) -> None:
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
