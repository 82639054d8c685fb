"""The command line. Nothing here imports JAX until a command needs it."""

import argparse
import errno
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from steepest import __version__, catalogue
from steepest.app.fields import read_fields
from steepest.app.standing import EXIT_CODES
from steepest.app.stopping import KEPT, STOPPED, Stopped, ended_in_order
from steepest.app.streams import say, say_page, speak_plainly, tell, tell_json
from steepest.core.errors import UserError, nearest

USAGE = 2
"""Exit code of bad input; ``EXIT_CODES`` in ``standing.py`` says what the others mean."""
PRESETS = ("quick", "full", "tiny")
RESULTS = Path("results")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    if sys.stdout is None:
        return _refuse("standard output is closed; send it to a file, or to /dev/null", 1)
    speak_plainly()
    options, fields = read(sys.argv[1:] if arguments is None else arguments)
    _show_warnings_in_a_sentence()
    try:
        with ended_in_order(to_the_end=arguments is None):
            code = options.action(options, fields)
        sys.stdout.flush()
        return code
    except UserError as trouble:
        return _refuse(str(trouble))
    except Stopped as stop:
        return _refuse(KEPT, stop.code)
    except KeyboardInterrupt:
        return _refuse(KEPT, STOPPED)
    except BrokenPipeError:  # the reader of a pipe, such as head, went away
        _close_output()
        return 0
    except MemoryError:
        return _refuse("there is not enough memory for this; choose smaller fields", 1)
    except OSError as trouble:
        if trouble.errno == errno.ENAMETOOLONG:  # only a command line names such a file
            return _refuse(f"there is no file {trouble.filename}: its name is too long")
        _close_output()
        where = f" {trouble.filename}" if trouble.filename else ""
        return _refuse(f"cannot read or write{where} ({trouble.strerror or trouble})", 1)


def read(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the options of a command line, and the words that are a claim's own fields."""
    parser = build_parser()
    if not arguments:
        parser.print_help()
        raise SystemExit(USAGE)
    options, fields = parser.parse_known_args(arguments)
    if fields and options.command not in ("run", "sweep"):
        parser.error(f"unexpected {' '.join(fields)}; see steepest {options.command} --help")
    return options, fields


def _refuse(sentence: str, code: int = USAGE) -> int:
    say(f"steepest: {_brief(sentence)}")
    return code


def _brief(sentence: str) -> str:
    """Return a sentence on one line, without the rest of words that are too long to read."""
    return " ".join(re.sub(r"\S{300,}", lambda word: f"{word[0][:40]}…", sentence).split())


def _close_output() -> None:
    """Let what is left to flush go nowhere."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # standard output is no file
        return


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence."""

    def error(self, message: str) -> NoReturn:
        command = self.prog.partition(" ")[2]
        say(f"steepest{' ' + command if command else ''}: {_brief(_clear(message))}")
        raise SystemExit(USAGE)


def _clear(message: str) -> str:
    """A message of argparse's with the nearest command where one is misspelt."""
    start = "argument COMMAND: invalid choice: "
    if message.startswith(start):
        word = message.removeprefix(start).partition(" (")[0].strip("'")
        return f"there is no command {word!r}; {nearest(word, COMMANDS)}"
    return message


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Return a reader of whole numbers within limits, for argparse."""

    def whole(word: str) -> int:
        try:
            value = int(word)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            short = word if len(word) <= 20 else f"{word[:20]}…"
            raise argparse.ArgumentTypeError(f"a whole number from {low} to {high}, got {short!r}")
        return value

    return whole


SEED = whole_number(0, 2**31 - 1)
SOME = whole_number(1, 2**31 - 1)
COMMANDS = (
    "run",
    "list",
    "show",
    "cite",
    "exercise",
    "atlas",
    "book",
    "sweep",
    "trials",
    "measure",
    "watch",
    "new",
    "check",
    "referee",
)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = _Parser(
        prog="steepest",
        description="Put the theory of deep learning to the test.",
        epilog="Start with `steepest run`, a tour of a minute or two.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"steepest {__version__}")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_Parser
    )

    def command(name: str, action: Any, help: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help, description=help, allow_abbrev=False)
        sub.set_defaults(action=action)
        return sub

    run = "run the claims that you name; without names the tour, with --all every claim"
    _run_options(command("run", _run, run))
    listing = command("list", _list, "list the claims and their last verdicts")
    listing.add_argument("--chapter", help="list only this chapter")
    results = "read results from this folder (default: results)"
    listing.add_argument("--results", type=Path, default=RESULTS, help=results)
    listing.add_argument("--json", action="store_true", help="print the list as JSON")
    show = command("show", _show, "show a claim's statement, explanation, source and fields")
    show.add_argument("claim", metavar="CLAIM", help="a name, or a file such as my_claim.py")
    _cite_options(command("cite", _cite, "print how to cite a claim's verdict and its sources"))
    exercise = "write a notebook in which you predict a claim's results, and in which the claim's judge checks them"
    _exercise_options(command("exercise", _exercise, exercise))
    atlas = command("atlas", _atlas, "write web pages of all stored results")
    atlas.add_argument("--results", type=Path, default=RESULTS, help=results)
    pages = "write the pages into this folder (default: atlas)"
    atlas.add_argument("--out", type=Path, default=Path("atlas"), help=pages)
    book = "build the book of chapters, tutorials, claims and reference"
    _book_options(command("book", _book, book))
    _sweep_options(command("sweep", _sweep, "compute a claim at many values of its fields"))
    trials = "count how often a claim holds at fresh seeds, and at random settings in its scope"
    _trials_options(command("trials", _trials, trials))
    _measure_options(
        command("measure", _measure, "measure the theory's quantities on your own model")
    )
    _watch_options(command("watch", _watch, "show a training that a Monitor has logged"))
    new = command("new", _new, "write a new claim that runs as it is, for you to edit")
    name = "name such as my-claim, or path such as my_claim.py"
    new.add_argument("name", metavar="NAME", help=name)
    check = command("check", _check, "list what your own claim still lacks")
    check.add_argument("claim", metavar="CLAIM", help="a file such as my_claim.py, or a name")
    referee = "try what a hostile reader would try, and print how a claim could be wrong"
    _referee_options(command("referee", _referee, referee))
    return parser


def _run_options(run: argparse.ArgumentParser) -> None:
    claims = "names of claims, or files such as my_claim.py (default: the tour, one claim of each chapter)"
    run.add_argument("claims", nargs="*", metavar="CLAIM", help=claims)
    preset = "choose how long to compute: quick for seconds, full for minutes, tiny to test code (default: quick)"
    run.add_argument("--preset", choices=PRESETS, default="quick", help=preset)
    run.add_argument("--seed", type=SEED, default=0, help="set the seed of every random number")
    json_help = "print only JSON on standard output: an object for one claim, a list for several"
    run.add_argument("--json", action="store_true", help=json_help)
    results = "keep results in this folder (default: results)"
    run.add_argument("--out", "--results", type=Path, default=RESULTS, help=results)
    run.add_argument("--force", "--again", action="store_true", help="rerun even stored claims")
    every = "run every claim without a stored result, starting with the tour"
    run.add_argument("--all", action="store_true", help=every)
    tour = "run the tour, as steepest run without options does"
    run.add_argument("--tour", action="store_true", help=tour)
    rows = "without CLAIM: end with a table that has, for each claim, the reason for its verdict and its seconds"
    run.add_argument("--table", action="store_true", help=rows)
    strict = (
        "exit with code 0 only if all claims hold, even where Steepest has recorded another verdict"
    )
    run.add_argument("--strict", action="store_true", help=strict)
    workers = "set the number of processes (default: as many as fit)"
    run.add_argument("--workers", type=SOME, help=workers)
    run.add_argument(
        "--atlas",
        type=Path,
        default=Path("atlas"),
        help="without CLAIM: write the pages into this folder (default: atlas)",
    )
    subject = "test CLAIM on your own network, which FUNCTION builds; see docs/subjects.md"
    run.add_argument("--subject", metavar="FILE.py:FUNCTION", help=subject)
    page = "with --subject: also write the verdict to this HTML file"
    run.add_argument("--page", type=Path, help=page)
    yes = "with --subject: start even if the run takes more than ten minutes"
    run.add_argument("--yes", action="store_true", help=yes)
    fields = (
        "With one CLAIM you can also set its own fields, as --field value; steepest show CLAIM lists them. All other "
        "options also apply to the tour and to --all."
    )
    run.epilog = f"{fields} {EXIT_CODES}"


def _cite_options(cite: argparse.ArgumentParser) -> None:
    cite.add_argument("claim", metavar="CLAIM", help="a name, or a file such as my_claim.py")
    results = "read results from this folder (default: results)"
    cite.add_argument("--results", type=Path, default=RESULTS, help=results)
    preset = "cite the verdict of this preset (default: quick)"
    cite.add_argument("--preset", choices=PRESETS, default="quick", help=preset)
    seed = "cite the verdict at this seed (default: 0)"
    cite.add_argument("--seed", type=SEED, default=0, help=seed)
    json_help = "print only JSON on standard output"
    cite.add_argument("--json", action="store_true", help=json_help)
    cite.epilog = "This command reads stored results and runs nothing."


def _exercise_options(exercise: argparse.ArgumentParser) -> None:
    exercise.add_argument("claim", metavar="CLAIM", help="a name, or a file such as my_claim.py")
    file = "notebook to write, which must not exist yet (default: CLAIM.ipynb in this folder)"
    exercise.add_argument("file", metavar="FILE.ipynb", type=Path, nargs="?", help=file)
    results = "let the notebook read and keep results in this folder (default: results)"
    exercise.add_argument("--results", type=Path, default=RESULTS, help=results)
    exercise.epilog = (
        "Writing the notebook runs no experiment. Its last cells run one if no result is stored."
    )


def _book_options(book: argparse.ArgumentParser) -> None:
    results = "keep results in this folder (default: results)"
    book.add_argument("--results", type=Path, default=RESULTS, help=results)
    out = "write the book into this folder (default: book)"
    book.add_argument("--out", type=Path, default=Path("book"), help=out)
    docs = "read the book's sources from this folder (default: the sources of Steepest)"
    book.add_argument("--docs", type=Path, help=docs)
    now = "build with the stored results, and run no claim and no tutorial"
    book.add_argument("--now", action="store_true", help=now)
    workers = "set the number of processes (default: as many as fit)"
    book.add_argument("--workers", type=SOME, help=workers)
    needs = "This command needs pip install 'steepest[book]'"
    book.epilog = f"{needs}, and runs every claim that is not stored."


def _sweep_options(sweep: argparse.ArgumentParser) -> None:
    sweep.add_argument("claim", metavar="CLAIM", help="a name, or a file such as my_claim.py")
    over = (
        "sweep a field, or seed, over VALUES: a range such as log:0.01:1:20, linear:0:1:5 or 0:8, or a list such as "
        "64,256,1024 (default: the claim's own phase diagram)"
    )
    sweep.add_argument("--over", action="append", metavar="FIELD=VALUES", help=over)
    sobol = "sample N Sobol points in ranges such as lr=log:0.01:1"
    sweep.add_argument("--sobol", type=SOME, metavar="N", help=sobol)
    preset = "take all other fields from this preset (default: quick)"
    sweep.add_argument("--preset", choices=PRESETS, default="quick", help=preset)
    seed = "set the seed of every random number, unless the seed is swept"
    sweep.add_argument("--seed", type=SEED, default=0, help=seed)
    out = "keep results in this folder (default: results)"
    sweep.add_argument("--out", type=Path, default=RESULTS, help=out)
    on = "choose where to compute: local (a pool of processes), here (this process) or dask:ADDRESS (default: local)"
    sweep.add_argument("--on", default="local", help=on)
    workers = "set the number of processes of a local pool (default: one per core for long sweeps)"
    sweep.add_argument("--workers", type=SOME, help=workers)
    shard = "compute only the I-th of N parts, counted from 1, for job arrays"
    sweep.add_argument("--shard", metavar="I/N", help=shard)
    batch = "compute at most this many points together (default: 64)"
    sweep.add_argument("--batch", type=SOME, default=64, help=batch)
    whole = "run the whole claim at each point, not only what its phase diagram needs"
    sweep.add_argument("--whole", action="store_true", help=whole)
    sweep.add_argument(
        "--force", "--again", action="store_true", help="recompute stored points too"
    )
    sweep.add_argument("--retry", action="store_true", help="recompute the points that crashed")
    plan = "print the plan, and compute only one point, to estimate the time"
    sweep.add_argument("--plan", action="store_true", help=plan)
    sweep.add_argument(
        "--yes", action="store_true", help="start even if this takes more than an hour"
    )
    export = "also write a table to FILE: .csv or .parquet"
    sweep.add_argument("--export", type=Path, metavar="FILE", help=export)
    json_help = "print only JSON on standard output"
    sweep.add_argument("--json", action="store_true", help=json_help)
    sweep.epilog = (
        "You can also set CLAIM's own fields, as --field value; steepest show CLAIM lists them."
    )


def _trials_options(trials: argparse.ArgumentParser) -> None:
    trials.add_argument("claim", metavar="CLAIM", help="a name, or a file such as my_claim.py")
    runs = whole_number(0, 500)
    seeds = "run at N fresh seeds of the claim's version (default: 20)"
    trials.add_argument("--seeds", type=runs, default=20, metavar="N", help=seeds)
    settings = "run at N random settings in the claim's scope (default: 20)"
    trials.add_argument("--settings", type=runs, default=20, metavar="N", help=settings)
    preset = "take all other fields from this preset (default: quick)"
    trials.add_argument("--preset", choices=PRESETS, default="quick", help=preset)
    out = "keep results in this folder (default: results)"
    trials.add_argument("--results", "--out", type=Path, default=RESULTS, dest="out", help=out)
    on = "choose where to compute: local (a pool of processes), here (this process) or dask:ADDRESS (default: local)"
    trials.add_argument("--on", default="local", help=on)
    workers = "set the number of processes of a local pool (default: one per core)"
    trials.add_argument("--workers", type=SOME, help=workers)
    shard = "compute only the I-th of N parts, counted from 1, for job arrays"
    trials.add_argument("--shard", metavar="I/N", help=shard)
    trials.add_argument("--force", "--again", action="store_true", help="recompute stored runs too")
    trials.add_argument("--retry", action="store_true", help="recompute the runs that crashed")
    json_help = "print only JSON on standard output"
    trials.add_argument("--json", action="store_true", help=json_help)
    trials.add_argument("--page", type=Path, metavar="FILE", help="also write an HTML page to FILE")
    record = "write the counts into the record (in a checkout of Steepest, for its own claims)"
    trials.add_argument("--record", action="store_true", help=record)
    trials.epilog = (
        "Stored runs are not run again, so stopped trials go on where they stopped. "
        "Exit code: 0 if no run fails, 1 if a run fails or crashed, 2 for bad input."
    )


def _measure_options(measure: argparse.ArgumentParser) -> None:
    model = "function that returns (model, loss, data), or also the optimizer and held-out data"
    measure.add_argument("model", metavar="FILE.py:FUNCTION", nargs="?", help=model)
    compare = "compare two reports that --json has written, instead of measuring"
    measure.add_argument(
        "--compare", nargs=2, type=Path, metavar=("A.json", "B.json"), help=compare
    )
    widths = "check how the changes in training scale with width; your function gets each multiplier as width=…"
    measure.add_argument("--widths", nargs="+", type=float, metavar="WIDTH", help=widths)
    best = "with --widths: train at several step sizes and find the best step size at each width"
    measure.add_argument("--best-step", action="store_true", help=best)
    factors = "with --best-step: multiply your step sizes by these factors (default: 1/16 1/8 … 16)"
    measure.add_argument("--factors", nargs="+", type=float, metavar="FACTOR", help=factors)
    seeds = "use this many networks per width, if your function takes seed=… (default: 5; with --best-step 3)"
    measure.add_argument("--seeds", type=SOME, help=seeds)
    steps = "train for this many steps at each width (default: 5; with --best-step 100)"
    measure.add_argument("--steps", type=SOME, help=steps)
    yes = "with --best-step: start even if training takes more than ten minutes"
    measure.add_argument("--yes", action="store_true", help=yes)
    what = "measure these quantities, separated by commas (default: all that the report's findings need)"
    measure.add_argument("--what", help=what)
    thorough = "measure all quantities that make sense, which may take minutes"
    measure.add_argument("--thorough", action="store_true", help=thorough)
    lr = "give your step size η, to compare the sharpness with 2/η"
    measure.add_argument("--lr", type=float, help=lr)
    momentum = "give your heavy-ball momentum β"
    measure.add_argument("--momentum", type=float, default=0.0, help=momentum)
    decay = "give your weight decay λ (default: your optimizer's, or unknown)"
    measure.add_argument("--weight-decay", type=float, help=decay)
    batch = (
        "give the size of your batches, to measure their noise (default: the size in your loader)"
    )
    measure.add_argument("--batch", type=int, help=batch)
    tries = "try N step sizes in short descents from these weights, to see which ends lowest"
    measure.add_argument("--try", dest="descents", type=SOME, default=0, metavar="N", help=tries)
    moving = (
        "data or targets of the loss change with the network: do not take its fall for progress"
    )
    measure.add_argument("--not-stationary", dest="stationary", action="store_false", help=moving)
    kinds = ("hessian", "gauss-newton", "fisher")
    curvature = "measure curvature by this matrix (default: hessian)"
    measure.add_argument("--curvature", choices=kinds, default="hessian", help=curvature)
    statistics = "choose the statistics of batch normalization: of the batch, as in training (default), or running"
    measure.add_argument(
        "--statistics", choices=("batch", "running"), default="batch", help=statistics
    )
    noise = (
        "refuse a loss that draws random numbers (default), or draw the same numbers in every pass"
    )
    measure.add_argument("--noise", choices=("refused", "fixed"), default="refused", help=noise)
    since = "measure drift from this checkpoint: .pt (a state dict) or .npz"
    measure.add_argument("--since", type=Path, help=since)
    micro = "evaluate this many examples at once (default: 1024)"
    measure.add_argument("--micro-batch", type=SOME, default=1024, help=micro)
    measure.add_argument("--seed", type=SEED, default=0, help="set the seed of random probes")
    every = "show the table of readings too, not only the findings"
    measure.add_argument("--all", action="store_true", help=every)
    page = "also write the report to this HTML file"
    measure.add_argument("--page", type=Path, help=page)
    json_help = "print only JSON on standard output"
    measure.add_argument("--json", action="store_true", help=json_help)


def _watch_options(watch: argparse.ArgumentParser) -> None:
    log = "log file of a Monitor, complete or still growing, such as run.jsonl"
    watch.add_argument("log", type=Path, metavar="FILE", help=log)
    training = (
        "show the N-th training, counted from 1, if the file holds several (default: the last)"
    )
    watch.add_argument("--training", type=SOME, metavar="N", help=training)
    page = "also write a page with curves to this HTML file"
    watch.add_argument("--page", type=Path, help=page)
    json_help = "print only JSON on standard output"
    watch.add_argument("--json", action="store_true", help=json_help)


def _referee_options(referee: argparse.ArgumentParser) -> None:
    referee.add_argument("claim", metavar="CLAIM", help="a name, or a file such as my_claim.py")
    runs = "run at N other settings, the cheapest first (default: 6); 0 only reads the result"
    referee.add_argument("--runs", type=whole_number(0, 1000), default=6, metavar="N", help=runs)
    out = "keep results in this folder (default: results)"
    referee.add_argument("--results", "--out", type=Path, default=RESULTS, dest="out", help=out)
    json_help = "print only JSON on standard output"
    referee.add_argument("--json", action="store_true", help=json_help)
    page = "also write the findings to this HTML file"
    referee.add_argument("--page", type=Path, metavar="FILE.html", help=page)
    referee.epilog = (
        "The referee reads the result of the quick preset at seed 0, and runs the claim if this result is not stored. "
        "Exit code: 0 if nothing severe is found, 1 if something severe is found, 2 for bad input."
    )


def _run(known: argparse.Namespace, words: Sequence[str]) -> int:
    _check_choice(known)
    entries = list(dict.fromkeys(_named(name, words) for name in known.claims))
    if known.subject is not None:
        return _run_on_subject(known, entries, words)
    if known.page is not None or known.yes:
        raise UserError("--page and --yes of run go with --subject; steepest run --help says more")
    if not entries:
        entries = list(catalogue.catalogue().values())
    if words and len(entries) != 1:
        raise UserError(
            f"fields such as {words[0]} need exactly one claim, got {len(known.claims) or 'none'}; name one before "
            f"them, as in steepest run catapult {words[0]}"
        )
    _prepare()
    from steepest.app.run import run

    return run(known, entries, _fields(entries[0], words))


def _check_choice(known: argparse.Namespace) -> None:
    """Refuse two answers to the question which claims are to run."""
    if known.tour and known.all:
        raise UserError("--all starts with the tour and goes on; leave out --tour, or --all")
    option = "--tour" if known.tour else "--all" if known.all else ""
    if option and known.claims:
        raise UserError(f"{option} chooses its own claims; leave it out, or {known.claims[0]}")
    if option and known.subject is not None:
        raise UserError(f"--subject takes exactly one claim; name one in the place of {option}")


def _named(name: str, words: Sequence[str]) -> catalogue.Entry:
    """Return the claim of a name, unless what stands in its place is the value of a field."""
    bare = bool(words) and words[0].startswith("--") and "=" not in words[0]
    taken = bare and (len(words) == 1 or words[1].startswith("--"))
    if taken and not name.endswith(".py") and name not in catalogue.catalogue():
        raise UserError(
            f"there is no claim {name!r}; if it is the value of {words[0]}, name the claim before it, as in "
            f"steepest run catapult {words[0]} {name}"
        )
    return catalogue.entry(name)


def _run_on_subject(
    known: argparse.Namespace, entries: list[catalogue.Entry], words: Sequence[str]
) -> int:
    """Put one claim to a reader's own network."""
    if len(entries) != 1:
        raise UserError(
            f"--subject takes exactly one claim, got {len(entries)}; name one before it"
        )
    if known.preset != "quick":
        raise UserError("--preset has no meaning on your own network; set the fields of the claim")
    _check_page(known.page)
    _prepare(double=False)  # the reader's file trains in the reader's precision
    from steepest.app.subjects import run_on_subject

    return run_on_subject(known, entries[0], words)


def _fields(entry: catalogue.Entry, words: Sequence[str]) -> dict[str, Any]:
    """Read a claim's own fields from ``--field value`` words."""
    return read_fields(catalogue.load(entry), words) if words else {}


def _list(known: argparse.Namespace, words: Sequence[str]) -> int:
    from steepest.app.listing import list_claims

    list_claims(known.chapter, known.results, known.json)
    return 0


def _show(known: argparse.Namespace, words: Sequence[str]) -> int:
    catalogue.entry(known.claim)
    _prepare()  # a claim that its source does not describe is imported
    from steepest.app.show import show_claim

    show_claim(known.claim)
    return 0


def _cite(known: argparse.Namespace, words: Sequence[str]) -> int:
    line = catalogue.entry(known.claim)
    _prepare()
    from steepest.app.citing import citation, show_citation

    show_citation(citation(line, known.results, known.preset, known.seed), known.json)
    return 0


def _exercise(known: argparse.Namespace, words: Sequence[str]) -> int:
    line = catalogue.entry(known.claim)
    _prepare()
    from steepest.app.exercise_notebook import write_exercise

    path = write_exercise(line, known.file, known.results)
    tell(f"{path}: open it with jupyter lab {path}, fill in predict and run its cells")
    return 0


def _atlas(known: argparse.Namespace, words: Sequence[str]) -> int:
    _prepare()
    from steepest.site.pages import build

    tell(str(build(known.results, known.out)))
    return 0


def _book(known: argparse.Namespace, words: Sequence[str]) -> int:
    _prepare()
    from steepest.app.book import write_book

    book = write_book(
        known.docs,
        known.results,
        known.out,
        now=known.now,
        workers=known.workers,
        parser=build_parser(),
    )
    for warning in book.warnings:
        say(f"steepest: {warning}")
    tell(str(book.index))
    return 0


def _measure(known: argparse.Namespace, words: Sequence[str]) -> int:
    _check_page(known.page)
    if known.compare is not None:
        return _compare(known)
    if known.model is None:
        raise UserError(
            "measure needs FILE.py:FUNCTION, such as model.py:build, or --compare A.json B.json"
        )
    _check_widths(known)
    _prepare(double=False)  # the user's file trains in the user's precision
    from steepest.app.measure import checked_widths, measured, transferred

    if known.widths is None:
        report = measured(known)
    else:
        report = transferred(known) if known.best_step else checked_widths(known)
    if known.json:
        tell_json(report.to_json())
    if known.page is not None:
        from steepest.site.pages import report_page

        _write_page(lambda: report_page(report, known.page), known.json)
    return 0


def _check_widths(known: argparse.Namespace) -> None:
    """Refuse options that go with --widths alone, or not with it."""
    if known.widths is None:
        alone = [name for name in ("seeds", "steps", "best_step") if getattr(known, name)]
        if alone:
            option = alone[0].replace("_", "-")
            raise UserError(f"--{option} goes with --widths, such as --widths 0.5 1 2 4")
    if not known.best_step:
        alone = [name for name in ("factors", "yes") if getattr(known, name)]
        if alone:
            raise UserError(f"--{alone[0]} goes with --widths and --best-step")
    if known.widths is None:
        return
    of_measure = (
        "what",
        "thorough",
        "lr",
        "momentum",
        "weight_decay",
        "batch",
        "since",
        "descents",
    )
    for name in of_measure:
        if getattr(known, name):
            option = "try" if name == "descents" else name.replace("_", "-")
            raise UserError(
                f"--{option} does not go with --widths, which trains as 'train' of your function does"
            )
    if not known.stationary:
        raise UserError("--not-stationary does not go with --widths, which makes no descents")


def _compare(known: argparse.Namespace) -> int:
    """Compare two reports, without measuring anything."""
    if known.model is not None or known.widths is not None:
        raise UserError(
            "--compare reads two reports and measures nothing; leave FILE.py:FUNCTION and --widths out"
        )
    from steepest.app.comparison import show_comparison
    from steepest.measurement import compare

    comparison = compare(*known.compare)
    if known.json:
        tell_json(comparison.to_json())
    else:
        show_comparison(comparison)
    if known.page is not None:
        from steepest.site.pages import comparison_page

        _write_page(lambda: comparison_page(comparison, known.page), known.json)
    return 0


def _watch(known: argparse.Namespace, words: Sequence[str]) -> int:
    _check_page(known.page)
    _prepare(double=False)
    from steepest.app.watch import is_same_file, show
    from steepest.measurement import watch

    run = watch(known.log, known.training)
    if known.json:
        tell_json(run.to_json())
    else:
        show(run)
    if known.page is not None:
        from steepest.site.pages import training_page

        if is_same_file(known.log, known.page):
            raise UserError(f"--page {known.page} is the log itself; choose another file")
        _write_page(lambda: training_page(run, known.page), known.json)
    return 0


def _write_page(write: Callable[[], Path], as_json: bool) -> None:
    """Write a page behind numbers that are on the screen already; where that fails they stand."""
    from steepest.app.pictures import written_or_said

    written = written_or_said("the page", write)
    if written is not None:
        say_page(written, as_json)


def _check_page(page: Path | None) -> None:
    """Refuse a page that could not be written, before anything is measured."""
    if page is None:
        return
    if page.suffix not in (".html", ".htm"):
        raise UserError(f"a page is an .html file, got --page {page}")
    folder = next(parent for parent in page.absolute().parents if os.path.lexists(parent))
    place = page if page.exists() else folder
    if page.is_dir() or not folder.is_dir() or not os.access(place, os.W_OK):
        raise UserError(f"cannot write --page {page}; choose another file")


def _sweep(known: argparse.Namespace, words: Sequence[str]) -> int:
    entry = _named(known.claim, words)
    _prepare()
    from steepest.app.sweep import sweep

    return 1 if sweep(known, _fields(entry, words)).crashes else 0


def _trials(known: argparse.Namespace, words: Sequence[str]) -> int:
    catalogue.entry(known.claim)
    _check_page(known.page)
    _prepare()
    from steepest.app.trials import exit_code, trials

    return exit_code(trials(known))


def _new(known: argparse.Namespace, words: Sequence[str]) -> int:
    from steepest.app.authoring import write_template

    path = write_template(known.name)
    tell(
        f"{path}: run it with steepest run {path}, and see what it lacks with steepest check {path}"
    )
    return 0


def _check(known: argparse.Namespace, words: Sequence[str]) -> int:
    catalogue.entry(known.claim)
    _prepare()
    from steepest.app.authoring import check_claim

    return 1 if check_claim(known.claim) else 0


def _referee(known: argparse.Namespace, words: Sequence[str]) -> int:
    line = catalogue.entry(known.claim)
    _check_page(known.page)
    _prepare()
    from steepest.app.referee import referee

    review = referee(line, known.out, runs=known.runs, as_json=known.json, page=known.page)
    return 1 if review.severe else 0


def _prepare(double: bool = True) -> None:
    """Set what only the command line may change: float64 unless told otherwise, and a compilation cache."""
    from steepest.cache import cache_folder

    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_folder()))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    if double:
        os.environ.setdefault("JAX_ENABLE_X64", "1")


def _show_warnings_in_a_sentence() -> None:
    """Print our own warnings as sentences on standard error."""
    from steepest.catalogue import Broken
    from steepest.engine.records import Damaged

    ours = (Broken, Damaged)
    for kind in ours:
        warnings.simplefilter("always", kind)
    usual = warnings.showwarning

    def sentence(
        message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        if issubclass(category, ours):
            say(f"steepest: {message}")
        elif file is None:
            say(warnings.formatwarning(message, category, filename, lineno, line), end="")
        else:
            usual(message, category, filename, lineno, file, line)

    warnings.showwarning = sentence
