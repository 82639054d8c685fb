"""A stop ends a command in any case, also where its main thread hangs in compiled code and hears no signal."""

import io
import os
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from steepest.app import progress, stopping
from tests.small import SOURCE

HANGING = SOURCE.replace(
    "        n = np.array([10.0",
    "        import hashlib\n        import sys\n\n"
    '        print("hanging", file=sys.stderr, flush=True)\n'
    '        hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)  # no instruction of Python for long\n'
    "        n = np.array([10.0",
)
LISTENING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from steepest.app.cli import main
sys.exit(main())
"""
"""The command, which hears Ctrl-C wherever the tests run."""


@pytest.fixture
def hanging(tmp_path):
    """A run of one claim whose experiment hangs in C, once it does."""
    (tmp_path / "slow_decay.py").write_text(HANGING.format(says="It decays."), "utf-8")
    words = [sys.executable, "-c", LISTENING, "run", "slow_decay.py"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    process = subprocess.Popen(
        words, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "hanging\n"
    time.sleep(0.2)
    yield process
    process.kill()
    process.wait()


def ended(process, folder):
    """How long it took, what was said, and that nothing is left half-written."""
    start = time.monotonic()
    _, said = process.communicate(timeout=30)
    assert said.startswith("steepest: stopped; what is finished is kept")
    assert said.count("\n") == 1
    assert not [path for path in (folder / "results").rglob("*") if path.is_file()]
    return time.monotonic() - start


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_one_signal_ends_what_hangs_in_compiled_code(hanging, tmp_path, number, code):
    hanging.send_signal(number)
    seconds = ended(hanging, tmp_path)
    assert hanging.returncode == code
    assert stopping.PATIENCE - 1 < seconds < stopping.PATIENCE + 5


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_one_ends_it_at_once(hanging, tmp_path, number, code):
    hanging.send_signal(signal.SIGINT)
    time.sleep(0.2)
    hanging.send_signal(number)
    assert ended(hanging, tmp_path) < stopping.PATIENCE - 1
    assert hanging.returncode == code


def test_what_begins_to_stop_has_the_time_that_it_needs(monkeypatch):
    """The main thread heard the signal: its workers may take longer to end than a hanging one may hang."""
    monkeypatch.setattr(stopping, "PATIENCE", 0.05)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(stopping.Terminated), stopping.ended_in_order():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            time.sleep(0.3)
    assert signal.getsignal(signal.SIGTERM) is before
    assert signal.set_wakeup_fd(-1) == -1


def test_a_handler_of_the_readers_own_is_left_alone(monkeypatch):
    monkeypatch.setattr(stopping, "PATIENCE", 0.05)
    heard = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        with stopping.ended_in_order():
            signal.raise_signal(signal.SIGINT)
            time.sleep(0.3)  # this process would be ended by now
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]


def test_a_stage_that_takes_long_is_said_to_go_on(monkeypatch):
    monkeypatch.setattr(progress, "LONG", 0.05)
    screen = io.StringIO()
    with progress.waited_for(Console(file=screen, width=120), "slow-decay") as start:
        start("predicting")  # over at once
        start("observing")
        time.sleep(0.3)
    line = "still computing slow-decay (observing), 0 s; Ctrl-C stops without loss\n"
    assert screen.getvalue() == line
