"""How a command is stopped: by Ctrl-C or SIGTERM, in order where it can be, and in any case soon.

Python calls its handlers between two of its own instructions, so that a command whose main thread waits for compiled
code would never hear a signal, and a program that hangs there could not be stopped. A thread beside it listens too.
"""

import multiprocessing
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

STOPPED = 130
"""Exit code where Ctrl-C stopped a command; SIGTERM gives 143, as shells have it."""
TERMINATED = 143
KEPT = "stopped; what is finished is kept, run the same command to go on"
PATIENCE = 5.0
"""Seconds that a command has to begin to stop by itself after the first signal."""
AGAIN = 0.5
"""Seconds that it has after every further signal."""
CODES = {signal.SIGINT: STOPPED, signal.SIGTERM: TERMINATED}
ANSWERED = 0
"""Byte that says that the main thread has heard all signals before it; no signal has this number."""
ENDED = 255
"""Byte that says that there is nothing to stop any more."""


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived."""


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Let SIGTERM stop a command as Ctrl-C does: its workers end, and nothing is left half-written.

    A command that does not begin to stop, since its main thread hangs in compiled code, is ended where it is. What is
    stored is there whole or not at all, so that this loses nothing either.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ear, mouth = socket.socketpair()
    mouth.setblocking(False)  # as Python asks of what its signals are written to

    def terminate(number: int, frame: Any) -> None:
        mouth.send(bytes([ANSWERED]))
        raise Terminated

    def interrupt(number: int, frame: Any) -> None:
        mouth.send(bytes([ANSWERED]))
        raise KeyboardInterrupt

    handlers = {signal.SIGTERM: terminate}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is another's
        handlers[signal.SIGINT] = interrupt
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    earlier = signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)
    listener = threading.Thread(target=_listen, args=(ear, {*handlers}), daemon=True)
    listener.start()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(earlier)
        mouth.send(bytes([ENDED]))
        listener.join()
        ear.close()
        mouth.close()


def _listen(ear: socket.socket, ours: Collection[int]) -> None:
    """Read signals in the order in which they came, with the main thread's answers; end what does not answer.

    Args:
        ear: where they come from.
        ours: the signals that the main thread answers; nothing is known of others.
    """
    unanswered = 0
    deadline = 0.0
    patience = PATIENCE
    while True:
        left = max(deadline - time.monotonic(), 0.0) if unanswered else None
        if not select.select([ear], [], [], left)[0]:
            _end(CODES[signal.Signals(unanswered)])
        for byte in ear.recv(1024):
            if byte == ENDED:
                return
            if byte == ANSWERED:
                unanswered = 0
            elif byte in ours:
                unanswered = byte
                deadline = time.monotonic() + patience
                patience = AGAIN


def _end(code: int) -> None:
    """End this process and its workers where they are, with one sentence."""
    for worker in multiprocessing.active_children():
        worker.kill()
    with suppress(OSError):
        shown = os.isatty(2)  # a bar has hidden the cursor, and may stand in this line
        sentence = f"steepest: {KEPT} (compiled code did not answer, and was ended)\n"
        os.write(2, (("\r\x1b[2K\x1b[?25h" if shown else "") + sentence).encode())
    os._exit(code)
