"""Where work is done: here, in processes, on a Dask cluster, at anything with ``submit``.

A piece of work is a request in plain words and numbers, and a function that is named and not sent; its answer is plain
too. Nothing here imports JAX: the process that hands out work needs none.
"""

import importlib
import logging
import multiprocessing
import os
import queue
import re
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from steepest.core.errors import UserError
from steepest.core.writing import abandon

ATTEMPTS = 3
"""A piece whose worker dies this often is recorded as crashed."""
ADDRESS = r"((tcp|tls|ws|wss|ucx)://)?[A-Za-z0-9_.\-\[\]:]+:[0-9]{1,5}|inproc://\S+"
PATIENCE = 10
"""Seconds that a cluster has to answer, and to have workers."""
KEPT = "finished points are kept, run the same command to go on"
Request = Mapping[str, Any]


@dataclass
class Workers:
    """Something that computes requests elsewhere.

    Attributes:
        submit: ``submit(function, *arguments)`` gives a future with ``result()`` and ``add_done_callback()``.
        count: how many pieces it computes at once, about.
        name: for messages.
        lost: errors of a piece whose worker died, which is tried again; others of the piece stand for themselves.
        gone: errors that say that all of it is gone.
        renew: makes a new ``submit`` after a death; None where the executor does that itself.
        ahead: how many requests each worker is handed at once.
    """

    submit: Callable[..., Any]
    count: int
    name: str
    lost: tuple[type[BaseException], ...] = ()
    gone: tuple[type[BaseException], ...] = ()
    renew: Callable[[], Callable[..., Any]] | None = None
    ahead: int = 2


def call(function: str, request: Request) -> Any:
    """Call a function by its name, ``"module:function"``, with a request: what a worker is sent."""
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)(request)


def drive(
    function: str,
    requests: Iterable[Request],
    workers: Workers | None,
    done: Callable[[Request, Any], None],
    died: Callable[[Request, str], Any],
    begun: Callable[[Request], None] = lambda request: None,
) -> None:
    """Do all requests, and hand over the answer of each as soon as it is there.

    Args:
        function: what answers a request, as ``"module:function"``.
        requests: pieces of work, read as there is room.
        workers: None for this process.
        done: called with each request and its answer, in the order in which they end.
        died: makes the answer of a request whose worker died again and again, from the reason.
        begun: called with each request as it is handed out.

    Raises:
        UserError: if the workers are gone, or run another version.
    """
    if workers is None:
        for request in requests:
            begun(request)
            done(request, call(function, request))
        return
    waiting = deque((request, 0) for request in requests)
    ended: queue.SimpleQueue[int] = queue.SimpleQueue()
    flying: dict[int, tuple[Any, Request, int]] = {}
    count = 0
    try:
        while waiting or flying:
            while waiting and len(flying) < workers.ahead * workers.count:
                request, deaths = waiting.popleft()
                begun(request)
                future = _submit(workers, function, request)
                flying[count] = (future, request, deaths)
                future.add_done_callback(lambda _, number=count: ended.put(number))
                count += 1
            future, request, deaths = flying.pop(ended.get())
            try:
                answer = _result(workers, future)
            except _DeathError as death:
                if deaths + 1 < ATTEMPTS:
                    waiting.append((request, deaths + 1))
                    continue
                answer = died(request, f"its worker died {deaths + 1} times, {death}")
            done(request, answer)
    finally:
        for future, _, _ in flying.values():  # none are left unless something broke off
            future.cancel()


class _DeathError(Exception):
    """A worker died over a request."""


def _submit(workers: Workers, function: str, request: Request) -> Any:
    try:
        return workers.submit(call, function, request)
    except workers.lost:
        if workers.renew is None:
            raise UserError(f"the workers of {workers.name} died; {KEPT}") from None
        workers.submit = workers.renew()
        return workers.submit(call, function, request)
    except workers.gone as trouble:
        raise UserError(f"{workers.name} is gone ({_short(trouble)}); {KEPT}") from None


def _result(workers: Workers, future: Any) -> Any:
    """The answer of a request that ended."""
    try:
        return future.result()
    except UserError:
        raise
    except ModuleNotFoundError as trouble:
        raise UserError(
            f"a worker of {workers.name} has no {trouble.name}; install steepest where it runs"
        ) from None
    except workers.lost as trouble:
        raise _DeathError(f"perhaps for want of memory ({_short(trouble)})") from None
    except workers.gone as trouble:
        raise UserError(f"{workers.name} is gone ({_short(trouble)}); {KEPT}") from None
    except Exception as trouble:  # such as a scheduler that cannot read a piece
        raise UserError(
            f"a worker of {workers.name} could not start on a piece ({_short(trouble)}); see that steepest of this "
            "version is installed wherever the cluster runs, its scheduler too"
        ) from trouble


def _short(trouble: BaseException) -> str:
    return f"{type(trouble).__name__}: {trouble}".splitlines()[0][:200].rstrip(": ")


@contextmanager
def pool(count: int, ahead: int = 2) -> Iterator[Workers]:
    """Processes of this machine, started by spawn (JAX and fork deadlock); one that is killed is replaced."""
    current: list[ProcessPoolExecutor] = []

    def start() -> Callable[..., Any]:
        if current:
            current.pop().shutdown(wait=False, cancel_futures=True)
        context = multiprocessing.get_context("spawn")
        current.append(ProcessPoolExecutor(count, mp_context=context, initializer=_attend))
        return current[0].submit

    try:
        yield Workers(
            start(),
            count,
            "the pool of processes",
            lost=(BrokenExecutor,),
            renew=start,
            ahead=ahead,
        )
    except BaseException:  # nobody waits for what is in flight: it is computed again
        for executor in current:  # none where it broke off at the start
            for process in list((executor._processes or {}).values()):
                process.kill()
        raise
    finally:
        for executor in current:
            executor.shutdown(wait=True, cancel_futures=True)


def _attend() -> None:
    """How a process of the pool begins: Ctrl-C is its parent's to answer, and it does not outlive its parent.

    JAX on a GPU would take most of its memory at once, and nothing would be left for the next process.
    """
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent: Any = multiprocessing.parent_process()

    def follow() -> None:
        parent.join()
        abandon()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


@contextmanager
def cluster(address: str) -> Iterator[Workers]:
    """The workers of a running Dask cluster.

    Raises:
        UserError: without the extra, if nothing answers, or if there are no workers.
    """
    try:
        import distributed
        from distributed.scheduler import KilledWorker
    except ModuleNotFoundError:
        raise UserError(
            "a Dask cluster needs the package distributed; pip install 'steepest[dask]'"
        ) from None
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(
        logging.CRITICAL
    )  # what becomes of the connection is said in one sentence, not in its tracebacks
    try:
        with _client(distributed, address) as client:
            submit = lambda *work: client.submit(*work, pure=False, retries=0)
            slots = sum(
                worker["nthreads"]
                for worker in client.scheduler_info(n_workers=-1)["workers"].values()
            )
            gone = (distributed.CancelledError, OSError)
            yield Workers(submit, slots, f"the Dask cluster at {address}", (KilledWorker,), gone)
    finally:
        log.setLevel(level)


@contextmanager
def _client(distributed: Any, address: str) -> Iterator[Any]:
    """A connection to a scheduler that has workers."""
    try:
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as trouble:  # a time-out is an OSError
        raise UserError(
            f"no Dask scheduler answers at {address} within {PATIENCE} s ({_short(trouble)}); start one with "
            "`dask scheduler` and workers with `dask worker ADDRESS`"
        ) from None
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except OSError:
        client.close(timeout=2)
        raise UserError(
            f"the Dask cluster at {address} has no workers after {PATIENCE} s; start some with `dask worker {address}`"
        ) from None
    try:
        yield client
    finally:
        client.close(timeout=2)


def check_place(on: Any) -> None:
    """Refuse what names no place for work, as :func:`workers` takes it; nothing is started or asked.

    Raises:
        UserError: an unknown word, or an address that cannot be one.
    """
    scheme, _, address = on.partition(":") if isinstance(on, str) else ("", "", "")
    if scheme == "dask" and address:
        if not re.fullmatch(ADDRESS, address):
            raise UserError(
                f"a scheduler's address is like tcp://HOST:PORT, got {address!r}; try --on dask:tcp://localhost:8786"
            )
    elif on not in (None, "here", "local") and not callable(getattr(on, "submit", None)):
        raise UserError(
            f"a sweep runs on local, here or dask:ADDRESS, got {on!r}; try --on dask:tcp://localhost:8786"
        )


@contextmanager
def workers(on: Any, count: int | None, pieces: int) -> Iterator[Workers | None]:
    """What ``on`` names: None or ``"here"``, ``"local"``, ``"dask:ADDRESS"``, or anything with ``submit``.

    Args:
        on: where.
        count: processes of a local pool; None for one a core.
        pieces: how many pieces of work there are; one is computed here.

    Raises:
        UserError: for anything else.
    """
    if count is not None and count < 1:
        raise UserError(
            f"a pool has at least one process, got {count} workers; leave it out for one a core"
        )
    check_place(on)
    if on in (None, "here"):
        yield None
    elif on == "local":
        size = min(count or os.cpu_count() or 1, pieces)
        if size <= 1:
            yield None
            return
        with pool(size) as crew:
            yield crew
    elif isinstance(on, str):
        with cluster(on.removeprefix("dask:")) as crew:
            yield crew
    else:
        yield Workers(
            on.submit,
            getattr(on, "_max_workers", count or 8),
            type(on).__name__,
            lost=(BrokenExecutor,),
        )
