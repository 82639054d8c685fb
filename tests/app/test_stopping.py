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


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
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


SWALLOWED = """
import gc, os, pathlib, signal, sys, threading, time, weakref
signal.signal(signal.SIGINT, signal.default_int_handler)
from steepest.app.stopping import ended_in_order
from steepest.core.writing import temporary

def hear(*_):
    os.kill(os.getpid(), int(sys.argv[1]))
    for _ in range(1000):  # Python answers between two instructions
        pass

class Dying:
    def __del__(self):
        hear()

def collected():
    gc.callbacks.append(lambda phase, info: hear() if phase == "start" else None)
    gc.collect()

def deleted():
    Dying()

def weakly():
    gone = type("Plain", (), {})()
    reference = weakref.ref(gone, hear)
    del gone

def caught():
    try:
        hear()
    except BaseException:
        pass

def turned():
    try:
        try:
            hear()
        except BaseException as error:
            raise ValueError("turned into another") from error
    except ValueError:
        pass

def imported():
    sys.path.insert(0, os.getcwd())
    with open("signalled.py", "w") as file:
        file.write("from __main__ import hear\\nhear()\\n")
    try:
        import signalled
    except ImportError:
        pass

def replaced():
    try:
        hear()
    finally:
        raise IndexError("what was to be cleaned up was not begun yet")

def sorted_away():
    try:
        sorted([1, 2], key=hear)
    finally:
        return

def in_a_destructor_of_a_generator():
    def endless():
        try:
            yield
        finally:
            hear()
    next(endless())

with ended_in_order():
    with temporary(pathlib.Path("half-written").absolute()) as fresh:
        globals()[sys.argv[2]]()
        print("went on", flush=True)
        time.sleep(20)
"""
"""A command in which something swallows what a handler raises, while it is writing."""
WAYS = ("collected", "deleted", "weakly", "caught", "turned", "imported", "sorted_away", "replaced")
WAYS += ("in_a_destructor_of_a_generator",)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("way", WAYS)
def test_a_signal_is_not_lost_where_what_it_raises_is_swallowed(tmp_path, way, number, code):
    words = [sys.executable, "-c", SWALLOWED, str(int(number)), way]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=15)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert ended.stderr == f"steepest: {stopping.KEPT}\n"
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_while_a_command_begins_to_listen_is_said_once(tmp_path, number, code):
    """What it raised went past the block that says that it has arrived, and was taken for lost behind the sentence."""
    script = f"""
import os, sys, threading
start = threading.Thread.start

def after_a_signal(thread):
    threading.Thread.start = start
    os.kill(os.getpid(), {int(number)})
    start(thread)

threading.Thread.start = after_a_signal
from steepest.app.cli import main
sys.exit(main())
"""
    words = [sys.executable, "-c", script, "run", "representer", "--preset", "tiny"]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr.count("stopped")) == (code, 1)
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_is_forked_off_is_stopped_by_itself(tmp_path):
    """A loader's worker that is terminated, as torch does at the end of an epoch, stops nobody else."""
    script = """
import os, signal, time
from steepest.app.stopping import ended_in_order
with ended_in_order():
    child = os.fork()
    if not child:
        time.sleep(20)
    time.sleep(0.1)
    os.kill(child, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    time.sleep(0.3)
"""
    words = [sys.executable, "-c", script]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=15)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "-15\n", "")


def test_a_command_that_has_sent_its_errors_elsewhere_says_that_it_stops():
    """As the book does while notebooks run."""
    script = """
import os, signal
from steepest.app import stopping
with stopping.ended_in_order():
    own = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):
            pass
    except BaseException:
        pass
    for _ in range(10**9):
        pass
"""
    words = [sys.executable, "-c", script]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=15)
    assert (ended.returncode, ended.stderr) == (143, f"steepest: {stopping.KEPT}\n")


def test_what_hears_a_signal_while_it_ends_needs_no_more_than_its_grace(monkeypatch, tmp_path):
    script = """
import os, signal, time
from steepest.app import stopping
stopping.GRACE = 0.3
with stopping.ended_in_order():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)
    finally:
        time.sleep(20)
"""
    words = [sys.executable, "-c", script]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=15)
    assert (ended.returncode, ended.stderr) == (143, f"steepest: {stopping.KEPT}\n")


def test_a_signal_that_is_ignored_stays_ignored():
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping.ended_in_order():
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


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
