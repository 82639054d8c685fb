"""Whether damage to what is stored is noticed: results, points of sweeps, trials, tiles of kernels, logs of trainings.

Each store is written once, and then a copy of it is damaged at random, in one or two files, by the harms of
``tests/engine/test_damage.py``: bytes changed, cut, added, a value edited, a file removed, exchanged with another,
replaced by a folder, a link or a pipe. Then everything is read and asked for again. Further, each file in turn becomes
a pipe, may not be read, or may not grow beyond a size, as on a full disk.

*Again*: what was damaged was computed again. *Refused*: one sentence, nothing computed. *Harmless*: all was read as
before. *As it stands*: a line of a log, which has no checksum, says something else. *Traceback*, *hang*, *wrong* (a
number that differs, in silence) and *lost* (something untouched was not there, or was computed again) are faults.

    python -m benchmarks.damage.run [--only WORD] [--harms 200] [--seed 1] [--record]
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import signal
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.engine import fingerprint, sweeps
from steepest.engine.run import run
from steepest.engine.store import Store
from steepest.engine.trials import TrialPlan, gather
from steepest.kernels.tiled import open_tiled, tiled_gram
from steepest.measurement.training._log import read_log
from tests.engine import test_damage as damage
from tests.kernels.test_tiled import SMOOTH, inputs, limit
from tests.small import small_catalogue

RECORD = Path(__file__).parent / "record.json"
PATIENCE = 60
"""Seconds after which something hangs."""
NOBODY = 65534
"""A user without rights, where this runs as root."""
QUESTIONS = (("plain-decay", 0), ("plain-decay", 1), ("growing", 0))
FAULTS = ("traceback", "hang", "wrong", "lost")
SIZES = (0, 100, 1000, 3000, 10_000, 1_000_000)
"""Bytes beyond which no file may grow."""


WHOLE = "all"
"""The one piece of a store that is read as a whole."""


class HangError(Exception):
    """It takes too long."""


class Stored:
    """One kind of store.

    Attributes:
        name: of the kind.
    """

    name = ""

    def write(self, root: Path) -> None:
        """Write everything."""
        self.ask(root)

    def ask(self, root: Path) -> tuple[Any, int]:
        """Read everything, computing what is missing; return what it says, and how many pieces were computed."""
        raise NotImplementedError

    def read(self, root: Path) -> dict[Any, Any]:
        """Read what is there, piece by piece, computing nothing."""
        return {}

    def piece(self, path: Path) -> Any:
        """Return the piece that a file belongs to; None of one that belongs to all."""
        return path.parent.name


class Results(Stored):
    name = "results"

    def ask(self, root):
        answers = [run(name, seed=seed, store=Store(root)) for name, seed in QUESTIONS]
        again = sum(answer.how not in ("stored", "judged again") for answer in answers)
        return [damage.without_times(damage.comparable(answer)) for answer in answers], again

    def read(self, root):
        return {
            folder.name: damage.without_times(damage.comparable(result))
            for folder, result in Store(root)
        }


class Sweep(Stored):
    name = "points of a sweep"

    def plan(self):
        return sweeps.plan("plain-decay", damage.AXES)

    def ask(self, root):
        left = sweeps.work(self.plan(), root)
        again = len(left.missing)
        left.run()
        return damage.without_times(json.dumps(self.points(root))), again

    def points(self, root):
        return list(sweeps.gather(self.plan(), root).points)

    def read(self, root):
        records = sweeps.stored_points(self.plan(), root)
        return {
            key: damage.without_times(json.dumps(record))
            for key, record in zip(self.plan().keys, records, strict=True)
            if record
        }

    def piece(self, path):
        return None if path.parent.name in ("sweeps", "trials") else path.parent.name


class Trials(Sweep):
    name = "runs of trials"

    def plan(self):
        return TrialPlan("plain-decay", 5, 4, "tiny")

    def points(self, root):
        return gather(self.plan(), root).to_json()


class Tiles(Stored):
    name = "tiles of a kernel"

    def ask(self, root):
        before = inodes(root)
        gram = tiled_gram(limit(SMOOTH[0], **SMOOTH[1]), inputs(7), root, tile=3, tolerance=1e-4)
        both = np.stack([gram.nngp.toarray(), gram.ntk.toarray()])
        after = inodes(root)
        tiles = [path for path in after if path.parent.name == "tiles"]
        return both, sum(after[path] != before.get(path) for path in tiles)

    def read(self, root):
        gram = open_tiled(root)
        return {WHOLE: [gram.nngp.toarray().tolist(), gram.ntk.toarray().tolist()]}

    def piece(self, path):
        return path.name if path.parent.name == "tiles" else None


class Logs(Stored):
    name = "logs of trainings"

    def write(self, root):
        root.mkdir(parents=True)
        lines = []
        for step in [*range(0, 400, 20), *range(0, 200, 20)]:
            risk = {"value": 2.0 / (1 + step), "compared": 2.3, "theory": "2.3 for a guess"}
            top = {"value": 1.0 + step / 100, "compared": 20.0, "theory": "2/η"}
            quantities = {"risk": risk, "sharpness": top}
            lines.append(json.dumps({"step": step, "lr": 0.1, "quantities": quantities}))
        (root / "run.jsonl").write_text("\n".join(lines) + "\n")

    def ask(self, root):
        from steepest.measurement import watch

        seen = watch(root / "run.jsonl")
        json.dumps(seen.to_json())
        return read_log(root / "run.jsonl"), 0


KINDS = (Results(), Sweep(), Trials(), Tiles(), Logs())


def inodes(root: Path) -> dict[Path, int]:
    """Return which file stands where."""
    return {path: path.stat().st_ino for path in root.rglob("*") if path.is_file()}


def state(root: Path) -> dict[Path, Any]:
    """Return what every file is and holds, without opening what is no file."""
    return {
        path: path.read_bytes()
        if path.is_file() and not path.is_symlink()
        else path.lstat().st_mode
        for path in root.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """Break off what takes too long."""

    def hang(number: int, frame: Any) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fate(kind: Stored, root: Path, true: "Truth", touched: set[Any]) -> str:
    """Say what becomes of a damaged store of which some pieces are touched; None among these for what all share."""
    try:
        with in_time(), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                readable = kind.read(root)
            except UserError:
                readable = None
            answer, again = kind.ask(root)
    except UserError as trouble:
        return "refused" if "\n" not in str(trouble) else "traceback"
    except HangError:
        return "hang"
    except Exception:
        traceback.print_exc()
        return "traceback"
    if isinstance(kind, Logs):
        return fate_of_log(answer, true.answer, root)
    if any(true.pieces.get(piece) != text for piece, text in (readable or {}).items()):
        return "wrong"
    if not same(answer, true.answer):
        return "wrong"
    gone = set() if readable is None else set(true.pieces) - set(readable) - touched - {WHOLE}
    if None not in touched and (gone or again > len(touched)):
        return "lost"
    return ("again" if again else "harmless") + ", with a sentence" * bool(said)


def touched_pieces(kind: Stored, root: Path, before: dict[Path, Any]) -> set[Any]:
    """Return the pieces of which something is no longer as it was; None among them for what all share."""
    now = state(root)
    changed = [path for path in {*now, *before} if now.get(path) != before.get(path)]
    pieces = {kind.piece(path) for path in changed}
    pieces |= {path.name for path in changed if path not in before}  # a file in a folder's place
    shared = ("points", "sweeps", "trials", "tiles")
    return pieces | {None for path in changed if path.name in shared}


def same(answer: Any, wanted: Any) -> bool:
    """Whether two answers say the same; arrays to rounding."""
    if isinstance(answer, np.ndarray):
        return answer.shape == wanted.shape and bool(np.abs(answer - wanted).max() < 1e-14)
    return answer == wanted


def fate_of_log(answer: list, wanted: list, root: Path) -> str:
    """Say what became of a log: untouched lines must be there, whatever stands between them."""
    if answer == wanted:
        return "harmless"
    text = (root / "run.jsonl").read_bytes()
    lines = {line for line in text.decode("utf-8", "replace").splitlines()}
    untouched = [record for record in wanted if json.dumps(record) in lines]
    if any(record not in answer for record in untouched):
        return "lost"
    strange = [record for record in answer if record not in wanted]
    return "as it stands" if strange else "lines left out"


@dataclass(frozen=True)
class Truth:
    """What an undamaged store says.

    Attributes:
        answer: to all questions.
        pieces: what is read, by piece.
    """

    answer: Any
    pieces: dict[Any, Any]


def truth(kind: Stored, whole: Path, root: Path) -> Truth:
    """Ask an undamaged store."""
    renew(whole, root)
    pieces = kind.read(root)
    answer, again = kind.ask(root)
    if again:
        raise ValueError(f"{kind.name}: something undamaged was computed again")
    return Truth(answer, pieces)


def renew(whole: Path, root: Path) -> None:
    """Make a copy to be damaged."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(whole, root)


def harmed(kind: Stored, whole: Path, root: Path, options: argparse.Namespace) -> Counter[str]:
    """Damage copies at random and count what became of them."""
    true = truth(kind, whole, root)
    counts: Counter[str] = Counter()
    flat = isinstance(kind, Tiles | Logs)
    harms = [way for way in damage.HARMS if not (flat and "folder_" in way.__name__)]

    def damaged(data: Any) -> None:
        if counts.total() == options.harms:
            return
        renew(whole, root)
        before = state(root)
        files = st.sampled_from(sorted(before))
        for path in data.draw(st.lists(files, min_size=1, max_size=2, unique=True)):
            if path.is_file() and not path.is_symlink():
                with contextlib.suppress(ValueError, OSError):  # nothing is left to be damaged
                    data.draw(st.sampled_from(harms))(data.draw, path, root)
        counts[fate(kind, root, true, touched_pieces(kind, root, before))] += 1

    seed = options.seed
    while counts.total() < options.harms:
        some = hypothesis.settings(
            damage.SAMPLE, max_examples=options.harms, derandomize=False, database=None
        )
        # what hypothesis takes for a draw that depends on the world ends its search, not ours
        with contextlib.suppress(hypothesis.errors.Flaky):
            hypothesis.seed(seed)(some(hypothesis.given(st.data())(damaged)))()
        seed += 1000
    return counts


def as_pipe(path: Path) -> None:
    """Put a pipe in the place of a file, to which nobody writes."""
    path.unlink()
    os.mkfifo(path)


def shut(path: Path) -> None:
    """Forbid to read a file."""
    path.chmod(0)


def one_by_one(kind: Stored, whole: Path, root: Path, harm: Callable[[Path], None]) -> Counter[str]:
    """Do one thing to each file in turn."""
    true = truth(kind, whole, root)
    counts: Counter[str] = Counter()
    for file in sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file()):
        renew(whole, root)
        harm(root / file)
        with without_rights(root):
            counts[fate(kind, root, true, {kind.piece(root / file)})] += 1
    return counts


@contextlib.contextmanager
def without_rights(root: Path) -> Iterator[None]:
    """Go on as a user to whom a folder belongs, and who may not read everything as root does."""
    if os.geteuid():
        yield
        return
    for path in (root, *root.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def on_full_disks(kind: Stored, whole: Path, root: Path) -> Counter[str]:
    """Write where no file may grow beyond a size, and then where it may: nothing is left, and nothing is wrong."""
    true = truth(kind, whole, root)
    counts: Counter[str] = Counter()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for size in SIZES:
        shutil.rmtree(root)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fate_there = fate(kind, root, true, {None})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        if fate_there in FAULTS or [path for path in root.rglob(".new-*")]:
            counts["traceback" if fate_there not in FAULTS else fate_there] += 1
            continue
        afterwards = fate(kind, root, true, {None})
        counts[fate_there if afterwards.startswith(("again", "harmless")) else afterwards] += 1
    return counts


WAYS = ("at random", "a pipe", "may not be read", "disk full")
COLUMNS = ("again", "refused", "harmless", "lines left out", "as it stands", *FAULTS)


def tried(kind: Stored, work: Path, options: argparse.Namespace) -> list[list[Any]]:
    """Return a row of counts for each way of damage."""
    whole = work / "whole" / "results"
    root = work / "copy" / "results"
    whole.parent.mkdir()
    root.parent.mkdir()
    kind.write(whole)
    counted = {
        WAYS[0]: harmed(kind, whole, root, options),
        WAYS[1]: one_by_one(kind, whole, root, as_pipe),
        WAYS[2]: one_by_one(kind, whole, root, shut),
    }
    if not isinstance(kind, Logs):  # a monitor writes them, and says it
        counted[WAYS[3]] = on_full_disks(kind, whole, root)
    return [[kind.name, way, counts.total(), *row(counts)] for way, counts in counted.items()]


def row(counts: Counter[str]) -> list[Any]:
    """Return counts in the order of the columns, with how many of them were said."""
    said = {
        name: counts[name] + counts[f"{name}, with a sentence"] for name in ("again", "harmless")
    }
    cells: list[Any] = [said.get(name, counts[name]) for name in COLUMNS]
    cells[0] = f"{cells[0]} ({counts['again, with a sentence']} said)" if cells[0] else 0
    return cells


def main() -> None:
    """Damage each kind of store, and print its counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="stores with this word")
    parser.add_argument("--harms", type=int, default=200, help="random ones of each store")
    parser.add_argument("--seed", type=int, default=1, help="of the random ones")
    parser.add_argument("--record", action="store_true", help="write the counts to the record")
    options = parser.parse_args()
    stamp = cache(fingerprint.stamp)  # the code stays as it is, so its digests are taken once
    rows = []
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        Path(place).chmod(0o755)
        for module in ("fingerprint", "run", "sweeps._pieces"):
            patch.setattr(f"steepest.engine.{module}.stamp", stamp)
        claims = Path(place) / "claims"
        claims.mkdir()
        with small_catalogue(claims):
            for kind in KINDS:
                if options.only in kind.name:
                    work = Path(place) / kind.name.replace(" ", "-")
                    work.mkdir()
                    for line in tried(kind, work, options):
                        print(json.dumps(line), flush=True)
                        rows.append(line)
    if options.record:
        record = json.loads(RECORD.read_text("utf-8"))
        record["tables"] = [{"columns": ["store", "damage", "tried", *COLUMNS], "rows": rows}]
        RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
