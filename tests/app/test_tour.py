"""The tour: what comes first, what is written when it is complete, and what an interruption leaves."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from steepest import catalogue
from steepest.app import tour
from steepest.app.cli import main, read
from steepest.app.onward import program_name
from steepest.app.progress import shown
from steepest.engine import crew
from steepest.engine.crew import Outcome
from tests.small import SOURCE, small_catalogue

ALONE = ["--workers", "1"]  # other processes would not find the small claims
TOUR = ("powerless", "plain-decay")


@pytest.fixture
def small(tmp_path_factory, monkeypatch):
    monkeypatch.setattr(tour, "TOUR", TOUR)
    costs = {"wide-decay": 30.0, "growing": 20.0, "powerless": 2.0, "plain-decay": 2.0}
    monkeypatch.setattr(crew, "recorded_costs", lambda: costs)
    with small_catalogue(tmp_path_factory.mktemp("claims")):
        yield


def landed(err):
    """The claims in the order in which they landed."""
    lines = [line for line in err.splitlines() if line.startswith("[")]
    return [line.split()[1].rstrip(":") for line in lines]


def test_the_tour_has_a_claim_of_each_chapter():
    lines = catalogue.built_in()
    chapters = [lines[name].chapter for name in tour.TOUR]
    assert sorted(chapters) == sorted(catalogue.CHAPTERS)


def test_the_tour_takes_the_claims_that_are_there(small):
    lines = list(catalogue.catalogue().values())
    assert [line.name for line in tour.tour_of(lines)] == list(TOUR)
    assert [line.name for line in tour.tour_of(lines[:1])] == ["plain-decay"]


def test_a_run_of_everything_starts_with_the_tour_and_its_atlas(small, capsys, tmp_path):
    main(["run", "--all", *ALONE])
    said = capsys.readouterr()
    assert landed(said.err)[:3] == [*TOUR, "wide-decay"]
    lines = said.err.splitlines()
    figure = next(line for line in lines if line.startswith("a figure to look at: "))
    atlas = next(line for line in lines if line.startswith("the tour is complete"))
    follows = next(line for line in lines if line.startswith("next: the other 4 claims"))
    third = next(line for line in lines if line.startswith("[3/6]"))
    places = [lines.index(line) for line in (figure, atlas, follows, third)]
    assert places == sorted(places)
    assert "powerless" in figure
    assert (tmp_path / "atlas" / "index.html").is_file()
    assert "run --all" not in said.out


@pytest.mark.parametrize("words", [[], ["--tour"]])
def test_the_tour_is_what_runs_without_names(small, capsys, tmp_path, words):
    code = main(["run", *words, "--results", "kept", *ALONE])
    said = capsys.readouterr()
    assert code == 0
    assert landed(said.err) == list(TOUR)
    assert "the tour is complete" not in said.err
    assert {path.name for path in (tmp_path / "kept").iterdir()} == set(TOUR)
    assert (tmp_path / "atlas" / "index.html").is_file()
    rows = [line.split("  ") for line in said.out.splitlines()[:2]]
    assert [row[0] for row in rows] == [
        catalogue.chapter_title(catalogue.entry(name).chapter) for name in TOUR
    ]
    assert all(name in line for name, line in zip(TOUR, said.out.splitlines(), strict=False))


def next_commands(out):
    """The commands that the last lines name."""
    lines = out.splitlines()
    return [line.strip().partition("   ")[0] for line in lines[lines.index("next:") + 1 :]]


def test_the_last_lines_say_what_else_there_is(small, capsys):
    main(["run", *ALONE, "--results", "my results", "--seed", "3"])
    commands = next_commands(capsys.readouterr().out)
    assert commands == [
        "steepest run --all --seed 3 --out 'my results' --workers 1",
        "steepest measure my_model.py:build",
        "steepest book",
        "steepest list",
    ]
    known, words = read(shlex.split(commands[0])[1:])
    assert (known.all, known.seed, str(known.out), known.workers, words) == (
        True,
        3,
        "my results",
        1,
        [],
    )


def test_a_run_of_everything_goes_on_from_the_tour(small, capsys):
    main(["run", *ALONE])
    assert "the other 4 claims: about a minute" in capsys.readouterr().out
    main(["run", "plain-decay", "wide-decay", *ALONE])
    capsys.readouterr()
    main(["run", *ALONE])
    assert "the other 4 claims, 1 of them stored: about a minute" in capsys.readouterr().out
    main(["run", "--all", *ALONE])
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("[")]
    kept = {line.split()[1].rstrip(":") for line in lines if line.endswith("stored earlier")}
    assert kept == {*TOUR, "wide-decay"} and len(lines) == 6
    main(["run", *ALONE])
    assert "the other 4 claims, all of which are stored" in capsys.readouterr().out


def test_no_time_is_promised_at_presets_without_recorded_costs(small, capsys):
    main(["run", "--preset", "tiny", *ALONE])
    out = capsys.readouterr().out
    assert next_commands(out)[0] == "steepest run --all --preset tiny --workers 1"
    assert "the other 4 claims" in out and "minute" not in out


def test_a_reader_without_the_program_on_the_path_gets_its_path(small, monkeypatch, tmp_path):
    called = tmp_path / "my env" / "steepest"
    called.parent.mkdir()
    called.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(called)])
    monkeypatch.setenv("PATH", "")
    assert shlex.split(program_name()) == [str(called)]
    monkeypatch.setenv("PATH", str(called.parent))
    assert program_name() == "steepest"
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "steepest" / "__main__.py")])
    assert program_name() == "steepest"


def test_json_without_names_is_json_alone(small, capsys):
    for words, count in (([], 2), (["--all"], 6)):
        main(["run", "--json", *words, *ALONE])
        said = capsys.readouterr()
        assert len(json.loads(said.out)) == count
        assert "atlas: " in said.err


def test_nothing_is_said_twice_where_all_is_stored(small, capsys):
    main(["run", "--all", *ALONE])
    capsys.readouterr()
    main(["run", "--all", *ALONE])
    said = capsys.readouterr()
    assert "the tour is complete" not in said.err
    assert "a figure to look at" not in said.err


@pytest.mark.parametrize(
    "words",
    [
        ["plain-decay", "--tour"],
        ["plain-decay", "--all"],
        ["--tour", "--all"],
        ["--all", "--subject", "net.py:build"],
        ["plain-decay", "--tour", "--subject", "net.py:build"],
    ],
)
def test_claims_are_chosen_once(small, capsys, words):
    assert main(["run", *words]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert any(word in said.err for word in words if word.startswith("--"))


LISTENING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from steepest.app.cli import main
sys.exit(main())
"""
"""The command, which hears Ctrl-C wherever the tests run."""


def listening_to_interrupts():
    """Hear Ctrl-C again: a shell lets what it starts in the background ignore it, and the tests may run there."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize(
    ("stop", "code"),
    [
        (lambda: signal.raise_signal(signal.SIGINT), 130),
        (lambda: signal.raise_signal(signal.SIGTERM), 143),
    ],
)
def test_stopping_behind_the_tour_loses_nothing(small, capsys, monkeypatch, tmp_path, stop, code):
    listening_to_interrupts()
    before = signal.getsignal(signal.SIGTERM)
    stopped = lambda self, setting, key: stop() or time.sleep(9)
    with monkeypatch.context() as patch:
        patch.setattr(catalogue.load("wide-decay"), "observe", stopped)
        assert main(["run", "--all", *ALONE]) == code
    assert (
        capsys.readouterr().err.splitlines()[-1].startswith("steepest: stopped; what is finished")
    )
    assert {path.name for path in (tmp_path / "results").iterdir()} == set(TOUR)
    assert (tmp_path / "atlas" / "powerless").is_dir()
    assert [path.name for path in tmp_path.glob(".*")] == []
    assert signal.getsignal(signal.SIGTERM) is before
    assert main(["list", "--json"]) == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_in_processes_stops_in_order(tmp_path, number, code):
    """Two workers; what has landed is kept, what was on its way leaves nothing behind."""
    slow = SOURCE.replace(
        "        n = np.array([10.0",
        "        import time\n\n        time.sleep(60)\n        n = np.array([10.0",
    )
    for name, text in {"quick_decay": SOURCE, "slow_decay": slow, "tired_decay": slow}.items():
        (tmp_path / f"{name}.py").write_text(text.format(says="It decays."), "utf-8")
    names = ["quick_decay.py", "slow_decay.py", "tired_decay.py"]
    words = [sys.executable, "-c", LISTENING, "run", *names, "--workers", "2"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    process = subprocess.Popen(
        words,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    process.send_signal(number)
    _, remaining = process.communicate(timeout=30)
    assert first.startswith("[1/3] quick-decay: holds")
    assert remaining.splitlines()[-1].startswith("steepest: stopped; what is finished is kept")
    assert process.returncode == code
    assert [path.name for path in tmp_path.glob("results/*") if path.is_dir()] == ["quick-decay"]


def test_on_a_terminal_only_what_just_landed_is_shown(tmp_path):
    """Ninety claims are a few lines, and none of them is left when the run ends."""
    with (tmp_path / "screen").open("w+", encoding="utf-8") as screen:
        console = Console(file=screen, force_terminal=True, width=80, height=24)
        names = [f"claim-{place}" for place in range(90)]
        with shown(console, names, names[:10]) as display:
            for name in names:
                display.begun(name)
                display.landed(Outcome(name, None, "it broke"))
        screen.seek(0)
        frames = screen.read().split("\x1b[2K")
    assert max(frame.count("claim-") for frame in frames) <= 5
