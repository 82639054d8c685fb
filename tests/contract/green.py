"""What was last seen to pass, and with which code: the record of green runs.

    python -m tests.contract.green [CLAIM ...]

goes through every claim, or those named, whose source has changed since: the contract on its tiny run, the quick
preset or the stored result of the same code, then the claim's own tests. It writes ``green.json``, which holds what the
tests need (digests of code), and ``src/steepest/record.json``, which holds what users need (version, verdict, day,
versions of jax and numpy). A verdict that differs from the recorded one is written down like any other: the difference
in the commit is what a reviewer sees.
A tiny run that breaks the contract, or tests that fail, are not recorded.
"""

import ast
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax

from steepest import catalogue, record
from steepest.app import contract
from steepest.cache import Table
from steepest.engine.fingerprint import closure, read, sources_now, stamp
from steepest.engine.results import Result
from steepest.engine.run import answer, ready
from steepest.engine.store import Store
from steepest.record import Record, renewed, spelled

PATH = Path(__file__).with_name("green.json")
ROOT = Path(__file__).parents[2]
RESULTS = ROOT / ".cache" / "green"
TESTS = ROOT / "tests" / "claims"
ALL_CLAIMS = "test_points.py"
"""The file in ``TESTS`` whose tests go through claims by name."""
EVERY = os.environ.get("STEEPEST_CLAIMS") == "all"
"""Whether the tests of the contract go through all claims, as every night, or through those that have changed."""


def recorded() -> dict[str, dict[str, Any]]:
    """Return of every claim the code of its last green runs, the verdict, and what its checks lack."""
    return json.loads(PATH.read_text("utf-8")) if PATH.is_file() else {}


def names() -> list[str]:
    """Return the claims of this package."""
    return list(catalogue.built_in())


def judged() -> list[str]:
    """Return the claims whose verdict is to be looked at: all, or those whose source has changed since."""
    return _all_or("judged", lambda name: stamp(catalogue.entry(name)).judgement)


def tried() -> list[str]:
    """Return the claims whose tiny run is to be looked at: those too whose pipeline has changed since."""
    return _all_or("tried", _tiny)


def tested() -> list[str]:
    """Return the claims whose own tests are to be run: those too of which a test, or what it imports, has changed."""
    return _all_or("tested", _tests)


def files_of(name: str) -> list[Path]:
    """Return the files of ``tests/claims`` that test one claim, ``test_NAME.py`` and ``test_NAME_on_subject.py``."""
    stem = f"test_{name.replace('-', '_')}"
    files = [TESTS / f"{stem}{part}.py" for part in ("", "_on_subject")]
    return [path for path in files if path.is_file()]


def _tests(name: str) -> str:
    """Return the digest of what a claim's tests go through: the claim, and all that their files import."""
    files = [*files_of(name), TESTS / ALL_CLAIMS]
    whole = [stamp(catalogue.entry(name)).judgement, *map(_test_file, files)]
    return hashlib.sha256("".join(whole).encode()).hexdigest()[:16]


@cache
def _test_file(path: Path) -> str:
    """Return the digest of a test and of what it imports, which is kept on disk as long as no file has changed."""
    kept = _kept()
    digest = kept.get(path.name)
    if digest is None:
        source = read("", path)
        helpers = [read("", helper).whole for helper in _helpers(source.tree)]
        # each claim's own code is in its stamp: the file for all would else be new with any of them
        of_all = path.name == ALL_CLAIMS
        modules = [
            text
            for text in closure(source, None)
            if not (of_all and text.startswith("steepest.claims."))
        ]
        text = "".join([source.whole, *helpers, *modules])
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        kept.put(path.name, digest)
    return digest


@cache
def _kept() -> Table:
    tests = [f"{path} {path.stat().st_mtime_ns}" for path in sorted(TESTS.parent.rglob("*.py"))]
    state = hashlib.sha256("\n".join([sources_now(), *tests]).encode()).hexdigest()
    return Table("tests", state)


def _helpers(tree: ast.Module) -> list[Path]:
    """Return the files of ``tests`` that a test imports."""
    modules = [
        node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests.")
    ]
    paths = [ROOT.joinpath(*module.split(".")).with_suffix(".py") for module in sorted(modules)]
    return [path for path in paths if path.is_file()]


def _all_or(digest: str, now: Callable[[str], str]) -> list[str]:
    green = recorded()
    return [name for name in names() if EVERY or green.get(name, {}).get(digest) != now(name)]


def _tiny(name: str) -> str:
    """Return the digest of what a tiny run goes through: the claim, and all that the contract imports."""
    whole = stamp(catalogue.entry(name)).judgement + _pipeline()
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


@cache
def _pipeline() -> str:
    source = read(contract.__name__, Path(contract.__file__))
    return "".join([source.whole, *sorted(closure(source, None))])


def record_of(result: Result) -> Record:
    """Return what a run of the quick preset at seed 0 tells users of its claim."""
    versions = {package: result.versions[package] for package in ("jax", "numpy")}
    return Record(result.claim_version, result.verdict, result.judged_at[:10], versions)


def keep(result: Result, path: Path = record.PATH) -> None:
    """Write a run into the record that the package carries, and leave out claims that are gone."""
    record.records.cache_clear()
    recorded = dict(record.records())
    recorded[result.claim] = renewed(recorded.get(result.claim), record_of(result))
    ours = {name: recorded[name] for name in catalogue.built_in() if name in recorded}
    path.write_text(spelled(ours), "utf-8")
    record.records.cache_clear()


def main(only: Sequence[str] = ()) -> None:
    """Run what has changed, of all claims or of those named, and write both records."""
    green = recorded()

    def write(name: str, **seen: Any) -> None:
        green[name] = green.get(name, {}) | seen
        PATH.write_text(
            json.dumps({n: green[n] for n in names() if n in green}, indent=1) + "\n", "utf-8"
        )
        jax.clear_caches()

    for name in _named(tried(), only):
        problems = dict(contract.problems(catalogue.entry(name)))
        missing = [line for lines in problems.values() for line in lines]
        print(name, "tiny run", "is as it must be" if not missing else "", flush=True)
        print(*missing, sep="\n", end="", flush=True)
        write(name, tried="" if missing else _tiny(name))
    for name in _named(judged(), only):
        result = answer(ready(name), store=Store(RESULTS))
        missing = contract.is_challenged(result)
        print(name, result.verdict, *missing, sep="\n  ", flush=True)
        write(
            name,
            judged=result.stamp["judgement"],
            verdict=str(result.verdict),
            missing=missing,
        )
        keep(result)
    for name in _named(tested(), only):
        passed = not _failures(name)
        print(name, "tests", "pass" if passed else "fail", flush=True)
        write(name, tested=_tests(name) if passed else "")


def _failures(name: str) -> int:
    """Run the tests of one claim; return the exit code, zero too where there are none."""
    where = [*map(str, files_of(name)), str(TESTS / ALL_CLAIMS)]
    # of the file for all claims, those that name this one
    words = f"{name} or {' or '.join(path.stem for path in files_of(name)) or name}"
    run = [sys.executable, "-m", "pytest", "-n", "0", *where, "-k", words]
    code = subprocess.run(run, cwd=ROOT).returncode
    return 0 if code == 5 else code  # 5: nothing was collected


def _named(stale: Sequence[str], only: Sequence[str]) -> list[str]:
    return [name for name in stale if not only or name in only]


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main(sys.argv[1:])
