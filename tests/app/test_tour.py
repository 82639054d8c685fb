"""The tour: what comes first, what is written when it is complete, and what an interruption leaves."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from steepest import catalogue
from steepest.app import tour
from steepest.app.cli import main
from steepest.app.progress import shown
from steepest.engine import crew
from steepest.engine.crew import Outcome
from tests.small import SOURCE, small_catalogue

ALONE = ["--workers", "1"]  # other processes would not find the small claims
TOUR = ("powerless", "plain-decay")


@pytest.fixture
def small(tmp_path_factory, monkeypatch):
    monkeypatch.setattr(tour, "TOUR", TOUR)
    monkeypatch.setattr(crew, "recorded_costs", lambda: {"wide-decay": 30.0, "growing": 20.0})
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
    main(["run", *ALONE])
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


def test_the_tour_may_be_run_alone(small, capsys, tmp_path):
    main(["run", "--tour", "--results", "kept", *ALONE])
    said = capsys.readouterr()
    assert landed(said.err) == list(TOUR)
    assert "next: " not in said.err
    assert "plain-decay" in said.out
    assert {path.name for path in (tmp_path / "kept").iterdir()} == set(TOUR)
    assert (tmp_path / "atlas" / "index.html").is_file()


def test_json_of_everything_is_json_alone(small, capsys):
    main(["run", "--json", *ALONE])
    said = capsys.readouterr()
    assert len(json.loads(said.out)) == 6
    assert "atlas: " in said.err


def test_nothing_is_said_twice_where_all_is_stored(small, capsys):
    main(["run", *ALONE])
    capsys.readouterr()
    main(["run", *ALONE])
    said = capsys.readouterr()
    assert "the tour is complete" not in said.err
    assert "a figure to look at" not in said.err


def test_the_tour_goes_without_names(small, capsys):
    assert main(["run", "plain-decay", "--tour"]) == 2
    assert capsys.readouterr().err.startswith("steepest: --tour chooses its own claims")


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
        assert main(["run", *ALONE]) == code
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
        with shown(console, names, names[:10]) as show:
            for name in names:
                show(Outcome(name, None, "it broke"))
        screen.seek(0)
        frames = screen.read().split("\x1b[2K")
    assert max(frame.count("claim-") for frame in frames) <= 5
