"""Where the pieces of a sweep are computed: here, in processes, on a Dask cluster, at anything with ``submit``.

Whatever computes a piece gets it in plain words and returns plain records; only the process that started the sweep
writes to the store, so workers need no common disk.
"""

import logging
import multiprocessing
import os
import queue
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from steepest.errors import UserError
from steepest.sweeping._batch import Record, compute, failed

ATTEMPTS = 3
"""A piece whose worker dies this often is recorded as failed."""
PATIENCE = 10
"""Seconds that a cluster has to answer, and to have workers."""
KEPT = "finished points are kept, run the same command to go on"
Request = Mapping[str, Any]


@dataclass
class Workers:
    """Something that computes requests elsewhere.

    Attributes:
        submit: ``submit(function, argument)`` gives a future with ``result()`` and ``add_done_callback()``.
        count: how many pieces it computes at once, about.
        name: for messages.
        lost: errors of a piece whose worker died, which is tried again; others of the piece stand for themselves.
        gone: errors that say that all of it is gone.
        renew: makes a new ``submit`` after a death; None where the executor does that itself.
    """

    submit: Callable[..., Any]
    count: int
    name: str
    lost: tuple[type[BaseException], ...] = ()
    gone: tuple[type[BaseException], ...] = ()
    renew: Callable[[], Callable[..., Any]] | None = None


def drive(requests: Iterable[Request], workers: Workers | None, done: Callable[[Request, list[Record]], None]) -> None:
    """Compute requests and hand over the records of each as soon as they are there.

    Args:
        requests: pieces of work, read as there is room.
        workers: None for this process.
        done: told of each piece, in the order in which they end.

    Raises:
        UserError: if the workers are gone, or run another version.
    """
    if workers is None:
        for request in requests:
            done(request, compute(request))
        return
    waiting, ended = deque((request, 0) for request in requests), queue.SimpleQueue()
    flying: dict[int, tuple[Any, Request, int]] = {}
    count = 0
    try:
        while waiting or flying:
            while waiting and len(flying) < 2 * workers.count:
                request, deaths = waiting.popleft()
                future = _submit(workers, request)
                flying[count] = future, request, deaths
                future.add_done_callback(lambda _, number=count: ended.put(number))
                count += 1
            future, request, deaths = flying.pop(ended.get())
            records = _result(workers, future, request, deaths + 1)
            if records is None:
                waiting.append((request, deaths + 1))
            else:
                done(request, records)
    finally:
        for future, _, _ in flying.values():  # none are left unless something failed
            future.cancel()


def _submit(workers: Workers, request: Request) -> Any:
    try:
        return workers.submit(compute, request)
    except workers.lost:
        if workers.renew is None:
            raise UserError(f"the workers of {workers.name} died; {KEPT}") from None
        workers.submit = workers.renew()
        return workers.submit(compute, request)
    except workers.gone as trouble:
        raise UserError(f"{workers.name} is gone ({_short(trouble)}); {KEPT}") from None


def _result(workers: Workers, future: Any, request: Request, deaths: int) -> list[Record] | None:
    """The records of a piece that ended; None if it must be tried again."""
    try:
        return future.result()
    except UserError:
        raise
    except ModuleNotFoundError as trouble:
        raise UserError(f"a worker of {workers.name} has no {trouble.name}; install steepest where it runs") from None
    except workers.lost as trouble:
        if deaths < ATTEMPTS:
            return None
        why = f"its worker died {deaths} times, perhaps for want of memory ({_short(trouble)})"
        return [failed(fields, seed, why, 0.0) for fields, seed in request["points"]]
    except workers.gone as trouble:
        raise UserError(f"{workers.name} is gone ({_short(trouble)}); {KEPT}") from None
    except Exception as trouble:  # such as a scheduler that cannot read the piece: no point's own failure comes here
        raise UserError(
            f"a worker of {workers.name} could not start on a piece ({_short(trouble)}); see that steepest of this "
            "version is installed wherever the cluster runs, its scheduler too"
        ) from trouble


def _short(trouble: BaseException) -> str:
    return f"{type(trouble).__name__}: {trouble}".splitlines()[0][:200].rstrip(": ")


@contextmanager
def pool(count: int) -> Iterator[Workers]:
    """Processes of this machine, started by spawn (JAX and fork deadlock); one that is killed is replaced."""
    current: list[ProcessPoolExecutor] = []

    def start() -> Callable[..., Any]:
        if current:
            current.pop().shutdown(wait=False, cancel_futures=True)
        context = multiprocessing.get_context("spawn")
        current.append(ProcessPoolExecutor(count, mp_context=context, initializer=_attend))
        return current[0].submit

    try:
        yield Workers(start(), count, "the pool of processes", lost=(BrokenExecutor,), renew=start)
    except BaseException:  # nobody waits for what is in flight: it is computed again
        for process in list((current[0]._processes or {}).values()):
            process.kill()
        raise
    finally:
        current[0].shutdown(wait=True, cancel_futures=True)


def _attend() -> None:
    """How a process of the pool begins: Ctrl-C is its parent's to answer, and it does not outlive its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent: Any = multiprocessing.parent_process()

    def follow() -> None:
        parent.join()
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
        raise UserError("a Dask cluster needs the package distributed; pip install 'steepest[dask]'") from None
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)  # what becomes of the connection is said in one sentence, not in its tracebacks
    try:
        with _client(distributed, address) as client:
            submit = lambda function, request: client.submit(function, request, pure=False, retries=0)
            slots = sum(each["nthreads"] for each in client.scheduler_info(n_workers=-1)["workers"].values())
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
        raise UserError(f"a pool has at least one process, got {count} workers; leave it out for one a core")
    if on in (None, "here"):
        yield None
    elif on == "local":
        size = min(count or os.cpu_count() or 1, pieces)
        if size <= 1:
            yield None
            return
        with pool(size) as found:
            yield found
    elif isinstance(on, str) and on.startswith("dask:") and len(on) > len("dask:"):
        with cluster(on.removeprefix("dask:")) as found:
            yield found
    elif callable(submit := getattr(on, "submit", None)):
        yield Workers(submit, getattr(on, "_max_workers", count or 8), type(on).__name__, lost=(BrokenExecutor,))
    else:
        raise UserError(f"a sweep runs on local, here or dask:ADDRESS, got {on!r}; try --on dask:tcp://localhost:8786")
