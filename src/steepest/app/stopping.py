"""How a command is stopped: by Ctrl-C, SIGTERM or SIGHUP, in order where it can be, and in any case soon.

Python calls its handlers between two of its own instructions, and what a handler raises need not arrive: a callback of
the garbage collector, a destructor or a library that catches everything may swallow it, and compiled code that called
Python may abort over it. So nothing is raised where such a library is at work, and a thread beside the main one sees
that what was raised is still on its way. Where it is not, and where compiled code hears no signal at all, that thread
ends the command where it stands, without what it had begun to write.
"""

import multiprocessing
import os
import select
import signal
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import util
from types import FrameType
from typing import Any

from steepest.core.writing import abandon

STOPPED = 130
"""Exit code where Ctrl-C stopped a command; SIGTERM gives 143 and SIGHUP 129, as shells have it."""
TERMINATED = 143
KEPT = "stopped; what is finished is kept, run the same command to go on"
PATIENCE = 5.0
"""Seconds that a command has to begin to stop by itself after the first signal."""
GRACE = 10.0
"""Seconds that it has to end in order once it has begun to."""
AGAIN = 0.5
"""Seconds that it has after every further signal."""
COMPILED = (
    "importlib",
    "_frozen_importlib",
    "_frozen_importlib_external",
    "jax",
    "jaxlib",
    "torch",
)
"""Packages whose compiled code calls Python in places where an exception aborts the process or is swallowed."""
RAISED = 0
"""Byte that says that the main thread has heard a signal and begins to stop; no signal has this number."""
ENDED = 255
"""Byte that says that there is nothing to stop any more."""


class Stopped(KeyboardInterrupt):
    """A signal arrived.

    Attributes:
        code: the exit code, as shells have it.
    """

    code = STOPPED


class Terminated(Stopped):
    """SIGTERM arrived."""

    code = TERMINATED


class HungUp(Stopped):
    """SIGHUP arrived: the terminal is gone."""

    code = 129


KINDS: dict[int, type[Stopped]] = {signal.SIGINT: Stopped, signal.SIGTERM: Terminated}
if hasattr(signal, "SIGHUP"):  # not on Windows
    KINDS[signal.SIGHUP] = HungUp


@contextmanager
def ended_in_order(to_the_end: bool = False) -> Iterator[None]:
    """Let signals stop a command in order: its workers end, and nothing is left half-written.

    A command that does not stop by itself is ended where it is. What is stored is there whole or not at all, so that
    this loses nothing either. Signals that are ignored, or that somebody else answers, are left alone.

    Args:
        to_the_end: whether the process ends behind this, so that signals are heard until then.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = (signal.SIG_DFL, signal.default_int_handler)
    ours = [number for number in KINDS if signal.getsignal(number) in usual]
    watch = _Watch()
    before = {number: signal.signal(number, watch.hear) for number in ours}
    earlier = signal.set_wakeup_fd(watch.mouth.fileno(), warn_on_full_buffer=False)
    hook = sys.unraisablehook
    sys.unraisablehook = _without(Stopped, hook)
    _watches.add(watch)
    listener = threading.Thread(target=watch.listen, args=(frozenset(ours),), daemon=True)
    listener.start()
    try:
        watch.begun = True
        yield
        if watch.raised is not None:  # it went on to its end although a signal had arrived
            _end(watch.code, watch.voice)
        watch.finished = to_the_end
    except Stopped:
        raise
    except BaseException:  # what was raised broke something on its way, and became another error
        if watch.raised is not None:
            _end(watch.code, watch.voice)
        raise
    finally:
        if not watch.finished:
            watch.over = True
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(earlier)
            sys.unraisablehook = hook
            watch.mouth.send(bytes([ENDED]))
            listener.join()
            watch.ear.close()
            watch.mouth.close()
            if watch.voice != 2:
                os.close(watch.voice)


class _Watch:
    """What the main thread and the one beside it know of a stop.

    Attributes:
        ear: where the listener reads signals and bytes of the main thread, in the order in which they came.
        mouth: where they are written.
        voice: standard error as it was at the start: a command may send its own elsewhere, and end there.
        raised: what was raised, for as long as it exists; None where nothing was.
        code: the exit code of the last signal.
        begun: whether what is raised passes through the block that says that it has arrived.
        finished: whether the command has done its work, and only the process ends.
        over: whether no signal is ours any more.
    """

    def __init__(self) -> None:
        self.ear, self.mouth = socket.socketpair()
        self.mouth.setblocking(False)  # as Python asks of what its signals are written to
        self.voice = _standard_error()
        self.raised: weakref.ref[Stopped] | None = None
        self.code = STOPPED
        self.begun = False
        self.finished = False
        self.over = False

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Stop the main thread in order where that can arrive; else end the process."""
        if self.raised is not None:  # it is stopping already
            return
        self.code = KINDS[number].code
        if not self.begun or self.finished or _may_swallow(frame):
            _end(self.code, self.voice)
        raise self._stop(number)  # a variable for it would keep it alive

    def _stop(self, number: int) -> Stopped:
        stop = KINDS[number]()
        self.raised = weakref.ref(stop, self._lost)
        self.mouth.send(bytes([RAISED]))
        return stop

    def _lost(self, stop: Any) -> None:
        """End the process where what was raised is gone before it arrived: it was swallowed."""
        if not self.over:
            _end(self.code, self.voice)

    def listen(self, ours: frozenset[int]) -> None:
        """Read signals and what the main thread says of them; end a command that does not stop."""
        code = 0
        deadline = 0.0
        patience = PATIENCE
        while True:
            left = max(deadline - time.monotonic(), 0.0) if code else None
            if not select.select([self.ear], [], [], left)[0]:
                _end(code, self.voice)
            for byte in self.ear.recv(1024):
                if byte == ENDED:
                    return
                if byte == RAISED:
                    deadline = time.monotonic() + GRACE
                elif byte in ours:
                    code = KINDS[byte].code
                    deadline = time.monotonic() + patience
                    patience = AGAIN


_ENDING = threading.Lock()
_watches: "weakref.WeakSet[_Watch]" = weakref.WeakSet()


def _forget() -> None:
    """Let a process that was forked off, such as a loader of data, be stopped by itself: no signal of its is ours."""
    if _watches:
        signal.set_wakeup_fd(-1)
        for number in KINDS:
            if isinstance(getattr(signal.getsignal(number), "__self__", None), _Watch):
                signal.signal(number, signal.SIG_DFL)
        for watch in _watches:
            watch.over = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _may_swallow(frame: FrameType | None) -> bool:
    """Tell whether compiled code of a library, or an import, is among the callers."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in COMPILED:
            return True
        frame = frame.f_back
    return False


def _without(kind: type[BaseException], hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return a hook for what could not be raised that says nothing of one kind."""

    def show(unraisable: Any) -> None:
        if not isinstance(unraisable.exc_value, kind):
            hook(unraisable)

    return show


def _standard_error() -> int:
    """Return a number of its own for standard error; 2 where that is closed."""
    try:
        return os.dup(2)
    except OSError:
        return 2


def _end(code: int, voice: int) -> None:
    """End this process and its workers where they are, with one sentence."""
    if not _ENDING.acquire(blocking=False):  # the other thread does
        time.sleep(GRACE)
    try:
        for worker in multiprocessing.active_children():
            worker.kill()
            worker.join(1.0)
        abandon()
        _give_back()
        shown = os.isatty(voice)  # a bar has hidden the cursor, and may stand in this line
        if select.select([], [voice], [], 1.0)[1]:  # nobody may read what is written there
            os.write(
                voice, (("\r\x1b[2K\x1b[?25h" if shown else "") + f"steepest: {KEPT}\n").encode()
            )
    finally:
        os._exit(code)


def _give_back() -> None:
    """Give the system back the semaphores of a pool, over which Python's own tracker would complain."""
    finalizers: Any = util
    giver = threading.Thread(target=finalizers._run_finalizers, args=(0,), daemon=True)
    giver.start()
    giver.join(1.0)
