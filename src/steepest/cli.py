"""The command line. Nothing here imports JAX until a command needs it."""

import argparse
import json
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from steepest import __version__
from steepest.claims import catalogue, entry
from steepest.errors import UserError, nearest

USAGE = 2
"""Exit code of bad input; 0 is all hold, 1 something fails, 3 something is inconclusive or out of range."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = _parser()
    known, rest = parser.parse_known_args(arguments)
    if rest and known.command not in ("run", "sweep"):
        parser.error(f"unexpected {' '.join(rest)}; see steepest {known.command} --help")
    try:
        return known.action(known, rest)
    except UserError as trouble:
        return _refuse(str(trouble))
    except KeyboardInterrupt:
        return _refuse("stopped; what is finished is kept, run the same command to go on", 130)
    except BrokenPipeError:  # the reader of a pipe, such as head, went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to flush has nowhere to go
        return 0


def _refuse(sentence: str, code: int = USAGE) -> int:
    print(f"steepest: {sentence}", file=sys.stderr)
    return code


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence."""

    def error(self, message: str) -> NoReturn:
        command = self.prog.partition(" ")[2]
        print(f"steepest{' ' + command if command else ''}: {message}", file=sys.stderr)
        raise SystemExit(USAGE)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="steepest", description="Put the theory of deep learning to the test.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"steepest {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    def command(name: str, action: Any, help: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help, description=help, allow_abbrev=False)
        sub.set_defaults(action=action)
        return sub

    run = command("run", _run, "run one claim, or every claim and then the atlas")
    run.add_argument("claims", nargs="*", metavar="CLAIM", help="which claims; all of them without any")
    run.add_argument("--preset", choices=("quick", "full"), default="quick", help="seconds or minutes")
    run.add_argument("--seed", type=int, default=0, help="seed of every random number")
    run.add_argument("--json", action="store_true", help="print JSON on standard output and nothing else there")
    run.add_argument("--out", type=Path, default=Path("results"), help="folder of results (default: results)")
    run.add_argument("--again", action="store_true", help="run even what is already there")
    run.add_argument("--atlas", type=Path, default=Path("atlas"), help="folder of the atlas, when all claims are run")
    run.epilog = "One CLAIM also takes its own fields, as --field value; steepest show CLAIM lists them."
    listing = command("list", _list, "list the claims")
    listing.add_argument("--chapter", help="only this chapter")
    listing.add_argument("--json", action="store_true", help="as JSON")
    command("show", _show, "show a claim's statement, source and fields").add_argument("claim", metavar="CLAIM")
    atlas = command("atlas", _atlas, "write the pages of all results")
    atlas.add_argument("--results", type=Path, default=Path("results"), help="folder of results (default: results)")
    atlas.add_argument("--out", type=Path, default=Path("atlas"), help="folder of the pages (default: atlas)")
    _sweep_options(command("sweep", _sweep, "compute a claim at many points of its fields"))
    _measure_options(command("measure", _measure, "measure the theory's quantities of your own model"))
    new = command("new", _new, "write a new claim from a template")
    new.add_argument("name", metavar="NAME", help="such as my-claim")
    new.add_argument("--chapter", default="drafts", help="chapter, a folder of claims (default: drafts)")
    return parser


def _measure_options(measure: argparse.ArgumentParser) -> None:
    measure.add_argument("model", metavar="FILE.py:FUNCTION", help="a function that returns (model, loss, data)")
    measure.add_argument("--what", help="quantities, separated by commas (default: all that make sense)")
    measure.add_argument("--lr", type=float, help="your step size, to compare the sharpness with 2/η")
    measure.add_argument("--momentum", type=float, default=0.0, help="your heavy-ball momentum β")
    kinds = ("hessian", "gauss-newton", "fisher")
    measure.add_argument("--curvature", choices=kinds, default="hessian", help="of which matrix (default: hessian)")
    measure.add_argument("--since", type=Path, help="a checkpoint to measure drift from: .pt (a state dict) or .npz")
    measure.add_argument("--micro-batch", type=int, default=1024, help="examples evaluated at once (default: 1024)")
    measure.add_argument("--seed", type=int, default=0, help="seed of probes")
    measure.add_argument("--page", type=Path, help="also write the report as a page, an HTML file")
    measure.add_argument("--json", action="store_true", help="print JSON on standard output and nothing else there")


def _sweep_options(sweep: argparse.ArgumentParser) -> None:
    sweep.add_argument("claim", metavar="CLAIM", help="which claim")
    ranges = "log:0.01:1:20, linear:0:1:5, 64,256,1024 or 0:8; without any, the claim's own phase diagram"
    sweep.add_argument("--over", action="append", metavar="FIELD=VALUES", help=f"a field, or seed: {ranges}")
    sweep.add_argument("--sobol", type=int, metavar="N", help="draw N Sobol points in ranges such as lr=log:0.01:1")
    sweep.add_argument("--preset", choices=("quick", "full"), default="quick", help="for all other fields")
    sweep.add_argument("--seed", type=int, default=0, help="seed of every random number, unless it is swept")
    sweep.add_argument("--out", type=Path, default=Path("results"), help="folder of results (default: results)")
    sweep.add_argument("--on", default="local", help="local, here or dask:ADDRESS (default: local)")
    sweep.add_argument("--workers", type=int, help="processes of a local pool (default: one a core for long sweeps)")
    sweep.add_argument("--shard", metavar="I/N", help="only the I-th of N parts, counted from 1, for job arrays")
    sweep.add_argument("--batch", type=int, default=64, help="most points computed together (default: 64)")
    sweep.add_argument("--whole", action="store_true", help="run the whole claim at each point, not its diagram's part")
    sweep.add_argument("--again", action="store_true", help="compute even what is already there")
    sweep.add_argument("--retry", action="store_true", help="compute again the points that failed")
    sweep.add_argument("--plan", action="store_true", help="print the plan; compute only the point that is timed")
    sweep.add_argument("--yes", action="store_true", help="start even what takes more than an hour")
    sweep.add_argument("--export", type=Path, metavar="FILE", help="also write a table: .csv or .parquet")
    sweep.add_argument("--json", action="store_true", help="print JSON on standard output and nothing else there")
    sweep.epilog = "CLAIM also takes its own fields, as --field value; steepest show CLAIM lists them."


def _run(known: argparse.Namespace, rest: Sequence[str]) -> int:
    names = known.claims or list(catalogue())
    for name in names:
        entry(name)
    if rest and len(names) != 1:
        raise UserError(f"fields such as {rest[0]} need exactly one claim, got {len(names)}; name one before them")
    _prepare()
    from steepest.progress import Session

    session = Session(known.out, preset=known.preset, seed=known.seed, again=known.again)
    changes = _fields(names[0], known.preset, rest) if rest else {}
    results, crashed = session.run(names, changes)
    if known.json:
        records = [result.to_json() for result in results]
        print(json.dumps(records[0] if len(known.claims) == 1 and records else records, indent=1))
    else:
        session.table(results, crashed)
    if not known.claims and results:
        from steepest.atlas import build

        page = build(known.out, known.atlas)
        print(f"atlas: {page}", file=sys.stderr if known.json else sys.stdout)
    verdicts = {str(result.verdict) for result in results}
    return 1 if crashed or "fails" in verdicts else 3 if verdicts - {"holds"} else 0


def _fields(name: str, preset: str, rest: Sequence[str]) -> dict[str, Any]:
    """A claim's own fields from ``--field value`` words, read by tyro from the claim's dataclass."""
    import contextlib
    import io
    from dataclasses import fields

    import tyro

    from steepest.claims import load
    from steepest.running import build

    kind = load(name)
    known = [field.name for field in fields(kind)]
    for word in rest:
        if word.startswith("--") and word not in ("--help",):
            field = word[2:].partition("=")[0].replace("-", "_")
            if field not in known:
                raise UserError(f"{name} has no field {field!r}; {nearest(field, known)}")
    usual = build(kind, preset, {})
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            chosen = tyro.cli(kind, args=list(rest), default=usual, prog=f"steepest run {name}")
    except SystemExit as stop:
        if stop.code:
            raise UserError(f"cannot read {' '.join(rest)!r} as fields of {name}: {_plain(said.getvalue())}") from None
        raise
    return {field: getattr(chosen, field) for field in known if getattr(chosen, field) != getattr(usual, field)}


def _plain(boxed: str) -> str:
    """The message inside tyro's frame: what stands between its title and the first rule."""
    message: list[str] = []
    for line in boxed.splitlines()[1:]:
        words = line.strip("│╭╮╰╯─ ")
        if not words and message:
            break
        message.append(words)
    return " ".join(message).strip().partition("Error parsing ")[2] or " ".join(message) or "see --help"


def _list(known: argparse.Namespace, rest: Sequence[str]) -> int:
    entries = list(catalogue().values())
    chapters = dict.fromkeys(e.chapter for e in entries)
    if known.chapter is not None:
        if known.chapter not in chapters:
            raise UserError(f"there is no chapter {known.chapter!r}; {nearest(known.chapter, chapters)}")
        entries = [e for e in entries if e.chapter == known.chapter]
    if known.json:
        print(json.dumps([{"claim": e.name, "chapter": e.chapter, "says": e.says} for e in entries], indent=1))
        return 0
    width = max(len(e.name) for e in entries)
    for chapter in dict.fromkeys(e.chapter for e in entries):
        print(chapter.replace("_", " "))
        for e in entries:
            if e.chapter == chapter:
                print(f"  {e.name:<{width}}  {e.says}")
    return 0


def _show(known: argparse.Namespace, rest: Sequence[str]) -> int:
    entry(known.claim)
    _prepare()
    from steepest.progress import describe

    describe(known.claim)
    return 0


def _atlas(known: argparse.Namespace, rest: Sequence[str]) -> int:
    _prepare()
    from steepest.atlas import build

    print(build(known.results, known.out))
    return 0


def _measure(known: argparse.Namespace, rest: Sequence[str]) -> int:
    _prepare()
    from steepest.progress import measured

    if known.page is not None and known.page.suffix not in (".html", ".htm"):
        raise UserError(f"a page is an .html file, got --page {known.page}")
    report = measured(known)
    if known.json:
        print(json.dumps(report.to_json(), indent=1))
    if known.page is not None:
        from steepest.atlas import report_page

        page = report_page(report, known.page)
        print(f"page: {page}", file=sys.stderr if known.json else sys.stdout)
    return 0


def _sweep(known: argparse.Namespace, rest: Sequence[str]) -> int:
    entry(known.claim)
    _prepare()
    from steepest.progress import swept

    changes = _fields(known.claim, known.preset, rest) if rest else {}
    return 1 if swept(known, changes).failures else 0


def _new(known: argparse.Namespace, rest: Sequence[str]) -> int:
    from steepest.claims import write_template

    print(write_template(known.name, known.chapter))
    return 0


def _prepare() -> None:
    """What only the command line may change: float64, a compilation cache, how warnings look."""
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(home / "steepest"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    os.environ.setdefault("JAX_ENABLE_X64", "1")
    from steepest.store import Damaged

    warnings.simplefilter("always", Damaged)
    show = warnings.showwarning

    def sentence(message: Any, category: Any, *rest: Any, **more: Any) -> None:
        if issubclass(category, Damaged):
            print(f"steepest: {message}", file=sys.stderr)
        else:
            show(message, category, *rest, **more)

    warnings.showwarning = sentence
