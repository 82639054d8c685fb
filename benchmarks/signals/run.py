"""Whether a signal at a random moment stops every long command: none lost, nothing left, and the next call as ever.

Each command runs undisturbed twice, and then again and again in a new folder (empty, or with results where it shows
some), and gets SIGINT, SIGTERM, SIGHUP or SIGKILL at a random moment, or its worker gets SIGTERM. *Early* are signals
that arrive before Python has read the command, or while it shuts down: they end the process by themselves. *Lost* are
those after which it went on, *other* those that ended it with another exit code. *Left* counts temporary names and
processes that outlive it by two seconds. *Next* counts the next calls, in the same folder, that gave what the
undisturbed one had given: every file but figures, and of an atlas or a book also every page. A notebook that is there
is not written again, and is compared as it is.

    python benchmarks/signals/run.py [--only WORD] [--signals 60] [--kill] [--worker] [--next 5] [--json FILE]
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "examples" / "measure" / "mlp_torch.py"
CHEAP = ("representer", "perceptron-mistakes", "sawtooth")
COMMANDS = {
    "run": ["run", "representer", "--preset", "tiny"],
    "run in processes": ["run", *CHEAP, "--preset", "tiny", "--workers", "2"],
    "sweep": [
        "sweep",
        "catapult",
        "--over",
        "multiple=1,3",
        "--over",
        "width=8,16",
        "--on",
        "here",
    ],
    "sweep in processes": ["sweep", "catapult", "--over", "width=8,12,16,24", "--workers", "2"],
    "trials": [
        "trials",
        *CHEAP[:1],
        "--preset",
        "tiny",
        "--seeds",
        "4",
        "--settings",
        "0",
        "--workers",
        "2",
    ],
    "measure": ["measure", f"{MODEL}:build", "--lr", "0.1", "--json"],
    "exercise": ["exercise", "representer"],
    "referee": ["referee", "representer"],
    "atlas": ["atlas"],
    "book": ["book", "--now"],
}
PREPARING = (
    ["run", *CHEAP, "--preset", "tiny"],
    ["run", "representer"],
    ["sweep", "catapult", "--over", "multiple=1,3", "--over", "width=8,16", "--on", "here"],
    ["trials", "representer", "--preset", "tiny", "--seeds", "4", "--settings", "0"],
)
SHOWING = ("atlas", "book")
"""Commands that show results, and begin in a folder where the calls above were made."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
SENTENCE = "steepest: stopped; what is finished is kept"
STARTING = "Python runtime state: initialized"
"""Said by Python where a signal ends its own start."""
KIND = "SIGTERM, SIGINT, SIGHUP"
RECORD = Path(__file__).parent / "record.json"
LONGEST = 40.0
"""Seconds of a command within which signals are sent."""
SESSIONS: set[int] = set()
"""Leaders of the sessions that were started here; no other process is looked at, or ended."""
DRAWN = "drawn.json"
"""The figures of a result as pages show them: a call that finds the result draws them when a page asks."""
TIMES = {"seconds", "observed_at", "judged_at", "digest", "files"}


def listen_again() -> None:
    """Hear all signals also where a shell started this script in the background, or under nohup."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def started(words: list[str], place: Path, cache: Path) -> subprocess.Popen[str]:
    """Start a command in a folder, and in a session of its own, where it hears Ctrl-C."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    process = subprocess.Popen(
        [sys.executable, "-m", "steepest", *words],
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=listen_again,
    )
    SESSIONS.add(process.pid)
    return process


def without_times(value: Any) -> Any:
    """Leave out of JSON what differs between two runs of one thing."""
    if isinstance(value, dict):
        return {name: without_times(inner) for name, inner in value.items() if name not in TIMES}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


def contents(place: Path, out: str, pages: bool) -> str:
    """Return a digest of what a command has written, whatever the time was."""
    digest = hashlib.sha256()
    left_out = (".pickle",) if pages else (".svg", ".html", ".pickle")
    for path in sorted(place.rglob("*")):
        if not path.is_file() or path.suffix in left_out or (path.name == DRAWN and not pages):
            continue
        digest.update(str(path.relative_to(place)).encode())
        data = path.read_bytes()
        if path.suffix == ".json" and path.name != DRAWN:
            data = json.dumps(without_times(json.loads(data)), sort_keys=True).encode()
        if pages or path.suffix in (".json", ".ipynb", ".csv"):
            digest.update(data)
    digest.update(re.sub(r"[0-9.]+ s\b|\"seconds\": [0-9.]+|\d+\.\d+", "", out).encode())
    return digest.hexdigest()


def of_session(leader: int) -> list[int]:
    """Return the processes that still run of a session that this script began."""
    if leader not in SESSIONS:
        raise ValueError(f"{leader} leads no session of ours")
    alive = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            alive.append(int(path.parent.name))
    return alive


def left(place: Path, leader: int) -> list[str]:
    """Name what outlives a command by two seconds."""
    deadline = time.monotonic() + 2
    while (alive := of_session(leader)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for number in alive:
        os.kill(number, signal.SIGKILL)
    hidden = [str(path.relative_to(place)) for path in place.rglob(".*-*[0-9]")]
    return [*hidden, *(f"process {number}" for number in alive)]


def worker_of(leader: int) -> int | None:
    """Return a worker of a pool, which spawn starts with its own words."""
    for number in of_session(leader):
        try:
            if b"spawn_main" in Path(f"/proc/{number}/cmdline").read_bytes():
                return number
        except OSError:
            continue
    return None


def one(
    words: list[str], place: Path, cache: Path, number: int, after: float, worker: bool
) -> dict:
    """Send one signal and say what became of the command."""
    process = started(words, place, cache)
    time.sleep(after)
    target = worker_of(process.pid) if worker else process.pid
    if target is None or process.poll() is not None:
        process.communicate()
        return {"fate": "over"}
    start = time.monotonic()
    os.kill(target, number)
    try:
        _, said = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        return {"fate": "hangs", "left": left(place, process.pid)}
    seconds = time.monotonic() - start
    code = process.returncode
    fate = "other"
    if number == signal.SIGKILL and code >= 0:  # it had ended just before
        return {"fate": "over"}
    if worker:
        fate = "stopped" if code == 0 else "other"
    elif code == -number:
        fate = "stopped" if number == signal.SIGKILL else "early"
    elif code == CODES.get(number):
        lines = [
            line
            for line in said.splitlines()
            if not re.match(
                r"  |building the book|looking through|\[\d+/\d+\]|\d+ points|over ", line
            )
        ]
        fate = (
            "stopped" if len(lines) == 1 and lines[0].startswith(SENTENCE) else "says other things"
        )
    elif code == 1 and STARTING in said:  # Ctrl-C while Python itself starts
        fate = "early"
    elif code in (0, 1, 3):
        fate = "lost"
    return {
        "fate": fate,
        "code": code,
        "after": after,
        "signal": number,
        "seconds": seconds,
        "left": left(place, process.pid),
        "said": said[-600:] if fate not in ("stopped", "early") else "",
    }


def tried(name: str, options: argparse.Namespace, work: Path, draw: random.Random) -> dict:
    """Try a command at many moments."""
    words = COMMANDS[name]
    cache = options.cache or work / "cache"
    place = work / "place"
    prepared = work / "prepared"
    prepared.mkdir()
    if name in SHOWING and options.prepared:
        shutil.copytree(options.prepared, prepared / "results")
    for call in PREPARING if name in SHOWING and not options.prepared else ():
        started(call, prepared, cache).communicate()

    def written(out: str) -> str:  # other commands than measure say what was stored already
        return contents(place, out * (name == "measure"), name in SHOWING)

    wanted = []
    whole = options.length
    for _ in range(0 if options.length else 2):  # the first fills the cache of compiled programs
        renew(place, prepared)
        start = time.monotonic()
        out, _ = started(words, place, cache).communicate()
        whole = time.monotonic() - start
        wanted.append(written(out))
    seen = []
    for count in range(options.signals):
        renew(place, prepared)
        number = SIGNALS[count % 3]
        if options.kill:
            number = signal.SIGKILL
        after = draw.uniform(0.0, 0.97 * min(whole, LONGEST))
        record = one(
            words, place, cache, signal.SIGTERM if options.worker else number, after, options.worker
        )
        again = wanted and options.next and count % options.next == 0
        if again and record["fate"] != "over":
            out = ""
            if not list(place.glob("*.ipynb")):
                after_it = started(words, place, cache)
                out, _ = after_it.communicate()
                record["left after next"] = left(place, after_it.pid)
            record["next"] = written(out) == wanted[1]
        seen.append(record)
    return {
        "command": name,
        "kind": "SIGKILL" if options.kill else "SIGTERM to a worker" if options.worker else KIND,
        "seconds": round(whole, 2),
        "undisturbed ones alike": wanted[0] == wanted[1] if wanted else None,
        **counted(seen),
        "odd": [one for one in seen if one.get("said")],
    }


def renew(place: Path, prepared: Path) -> None:
    """Let a command begin anew."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(prepared, place)


def counted(seen: list[dict]) -> dict:
    """Count what became of all."""
    fates = [record["fate"] for record in seen]
    gone = [record["seconds"] for record in seen if "seconds" in record]
    return {
        "sent": sum(fate != "over" for fate in fates),
        "fates": {fate: fates.count(fate) for fate in dict.fromkeys(fates)},
        "gone, median": round(statistics.median(gone), 2) if gone else None,
        "gone, most": round(max(gone), 2) if gone else None,
        "left": [what for record in seen for what in record.get("left", [])],
        "next": f"{sum(record.get('next', False) for record in seen)} of {sum('next' in record for record in seen)}",
        "left after next": [what for record in seen for what in record.get("left after next", [])],
    }


COLUMNS = ("sent", "stopped", "early", "lost", "hangs", "other")
TITLES = ("command", "signal", *COLUMNS, "s, median", "s, most", "left", "next the same")


def recorded(files: Sequence[Path]) -> None:
    """Write the counts of several files of ``--json`` to the record, those of a command and a kind of signal as one."""
    lines = [line for file in files for line in json.loads(file.read_text("utf-8"))]
    kinds = dict.fromkeys((line["command"], line["kind"]) for line in lines)
    rows = [
        row([line for line in lines if (line["command"], line["kind"]) == kind]) for kind in kinds
    ]
    record = json.loads(RECORD.read_text("utf-8"))
    record["tables"] = [{"columns": TITLES, "rows": rows}]
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


def row(lines: Sequence[dict[str, Any]]) -> list[Any]:
    """Return the cells of one command; the median is that of the files' medians."""
    fates = Counter(fate for line in lines for fate in Counter(line["fates"]).elements())
    sent = fates.total() - fates["over"]
    other = sent - sum(fates[fate] for fate in COLUMNS[1:-1])
    same, asked = (
        sum(int(line["next"].split(" of ")[place]) for line in lines) for place in (0, 1)
    )
    left = sum(len(line["left"]) for line in lines)
    gone = [line["gone, median"] for line in lines]
    most = max(line["gone, most"] for line in lines)
    counts = [fates[fate] for fate in COLUMNS[1:-1]]
    first = lines[0]
    spent = [f"{statistics.median(gone):.2f}", f"{most:.1f}"]
    return [
        first["command"],
        first["kind"],
        sent,
        *counts,
        other,
        *spent,
        left,
        f"{same} of {asked}",
    ]


def main() -> None:
    """Try all commands and print a line of JSON for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="commands with this word")
    parser.add_argument("--signals", type=int, default=60)
    parser.add_argument("--kill", action="store_true", help="SIGKILL instead")
    parser.add_argument("--worker", action="store_true", help="SIGTERM to a worker")
    parser.add_argument("--next", type=int, default=5, help="call again after every n-th; 0 never")
    parser.add_argument("--seed", type=int, default=7, help="of the moments")
    length = "seconds of an undisturbed one, where that is known: then none is run, and no next call is compared"
    parser.add_argument("--length", type=float, default=0.0, help=length)
    parser.add_argument("--cache", type=Path, help="of compiled programs (default: a new one)")
    prepared = "folder of results for atlas and book (default: they are made)"
    parser.add_argument("--prepared", type=Path, help=prepared)
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--record", type=Path, nargs="+", help="write files of --json to the record"
    )
    options = parser.parse_args()
    if options.record:
        recorded(options.record)
        return
    draw = random.Random(options.seed)
    lines = []
    for name in COMMANDS:
        if options.only == name or (options.only not in COMMANDS and options.only in name):
            with tempfile.TemporaryDirectory() as work:
                lines.append(tried(name, options, Path(work), draw))
            print(json.dumps(lines[-1]), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(lines, indent=1))


if __name__ == "__main__":
    main()
