"""The same numbers to the bit wherever they are computed, and every point once whatever is killed."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import steepest
from steepest.core.errors import UserError
from steepest.engine.sweeps import gather, plan, work
from steepest.engine.sweeps._sweep import COMPUTE, _crashed
from steepest.engine.workers import Workers, drive

OVER = {"multiple": "linear:0.5:5:12", "width": "8,16", "seed": "0:2"}
# steps enough that a signal after the first batch arrives before the last
SMALL = {"changes": {"steps": 100, "seeds": 3}, "batch": 4}


def planned():
    return plan("catapult", OVER, **SMALL)


def records(out):
    """Every number of a sweep, without how long it took."""
    return [
        point and {k: v for k, v in point.items() if k != "seconds"}
        for point in gather(planned(), out).points
    ]


def complete(out):
    """Whether every point is there, once and sound."""
    return work(planned(), out).points.there() == set(planned().keys) and None not in records(out)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The sweep in this process."""
    out = tmp_path_factory.mktemp("here")
    work(planned(), out).run()
    assert complete(out)
    return records(out)


def test_shards_merge_to_the_same_bits(expected, tmp_path):
    for i in range(1, 8):
        steepest.sweep(
            "catapult", OVER, **SMALL["changes"], batch=4, out=tmp_path / str(i), shard=(i, 7)
        )
    merged = tmp_path / "merged"
    found = sum(
        len(list((tmp_path / str(i) / "catapult" / "points").iterdir())) for i in range(1, 8)
    )
    assert found == len(expected)  # each point in one shard
    for i in range(1, 8):
        subprocess.run(["cp", "-r", f"{tmp_path / str(i)}/.", merged], check=True)
    assert complete(merged)
    assert records(merged) == expected


def test_a_pool_survives_the_death_of_a_worker(expected, tmp_path):
    killed = []

    def watch(done, total):
        if done and not killed:
            killed.append(multiprocessing.active_children()[0])
            os.kill(killed[0].pid, signal.SIGKILL)

    work(planned(), tmp_path).run("local", 2, watch)
    assert killed
    assert complete(tmp_path)
    assert records(tmp_path) == expected


def test_anything_with_submit_will_do(expected, tmp_path):
    with ThreadPoolExecutor(2) as threads:
        work(planned(), tmp_path).run(threads)
    assert records(tmp_path) == expected


# The command line, which hears SIGINT even where tests run in the background of a shell and ignore it.
INTERRUPTIBLE = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from steepest.app.cli import main; sys.exit(main())"
)


def command(out, *more):
    words = [
        sys.executable,
        "-c",
        INTERRUPTIBLE,
        "sweep",
        "catapult",
        "--out",
        str(out),
        "--batch",
        "4",
        *more,
    ]
    words += [f"--over={field}={values}" for field, values in OVER.items()]
    words += [
        word for field, value in SMALL["changes"].items() for word in (f"--{field}", str(value))
    ]
    environment = {**os.environ, "XDG_CACHE_HOME": str(out / "cache")}
    return subprocess.Popen(
        words,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["SIGKILL", "SIGINT"])
def test_a_sweep_that_is_stopped_goes_on(expected, tmp_path, how):
    process = command(tmp_path, "--workers", "2")
    points = tmp_path / "catapult" / "points"
    patience = time.monotonic() + 120
    while not (points.is_dir() and len(list(points.glob("[0-9a-f]*"))) >= 4):
        assert time.monotonic() < patience
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    process.send_signal(how)
    _, said = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "steepest: stopped; what is finished is kept, run the same command to go on" in said
        assert "Traceback" not in said
    before = {path.name: path.stat().st_mtime_ns for path in points.glob("[0-9a-f]*")}
    assert 4 <= len(before) < len(expected)
    again = command(tmp_path, "--on", "here")
    _, said = again.communicate(timeout=120)
    assert again.returncode == 0, said
    assert f"{len(before)} are in {tmp_path} already" in said
    assert complete(tmp_path)
    assert records(tmp_path) == expected
    assert all(
        (points / name).stat().st_mtime_ns == when for name, when in before.items()
    )  # nothing is done twice


def start(*words):
    return subprocess.Popen(
        [sys.executable, "-m", *words], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )


@contextmanager
def dask(folder):
    """A scheduler and two workers, as one would start them by hand."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    local = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    scheduler = start("distributed.cli.dask_scheduler", *local)
    workers = []
    try:
        patience = time.monotonic() + 60
        while not (file.exists() and file.read_text().endswith("}")):
            assert time.monotonic() < patience
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        alone = ["--no-dashboard", "--no-nanny", "--nthreads", "1", "--death-timeout", "20"]
        workers = [start("distributed.cli.dask_worker", address, *alone) for _ in range(2)]
        yield address, scheduler, workers
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


def test_a_cluster_may_lose_a_worker_and_its_scheduler(expected, tmp_path):
    counts = []
    with dask(tmp_path) as (address, scheduler, workers):

        def watch(done, total):
            counts.append(done)
            if len(counts) == 3:
                workers[0].kill()
            if len(counts) == 6:
                scheduler.kill()

        with pytest.raises(
            UserError, match=r"the Dask cluster at tcp://.* is gone .*run the same command to go on"
        ):
            work(planned(), tmp_path).run(f"dask:{address}", watch=watch)
    left = work(planned(), tmp_path)
    assert 0 < len(left.missing) < len(expected)
    with dask(tmp_path) as (address, _, _):
        left.run(f"dask:{address}")
    assert complete(tmp_path)
    assert records(tmp_path) == expected


def test_a_cluster_that_does_not_answer(monkeypatch, tmp_path):
    monkeypatch.setattr("steepest.engine.workers.PATIENCE", 1)
    with pytest.raises(
        UserError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 within 1 s"
    ):
        work(planned(), tmp_path).run("dask:tcp://127.0.0.1:9")


@pytest.mark.parametrize(
    "address", ["garbage", "nonsense://x", "tcp://", "tcp://host", "tcp://host:port", ":8786 x"]
)
def test_an_address_that_is_none_is_refused_at_once(address, tmp_path):
    start = time.monotonic()
    with pytest.raises(UserError, match=r"a scheduler's address is like tcp://HOST:PORT, got"):
        work(planned(), tmp_path).run(f"dask:{address}")
    assert time.monotonic() - start < 2


def test_a_cluster_without_workers(monkeypatch, tmp_path):
    from distributed import LocalCluster

    monkeypatch.setattr("steepest.engine.workers.PATIENCE", 1)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster,
        pytest.raises(UserError, match=r"has no workers after 1 s; start some with"),
    ):
        work(planned(), tmp_path).run(f"dask:{cluster.scheduler_address}")


def test_places_that_are_none(tmp_path):
    for on in ("dask:", "slurm", 3):
        with pytest.raises(UserError, match=r"a sweep runs on local, here or dask:ADDRESS"):
            work(planned(), tmp_path).run(on)


def test_a_pool_without_processes(tmp_path):
    with pytest.raises(UserError, match="a pool has at least one process, got 0 workers"):
        work(planned(), tmp_path).run("local", 0)


class Doomed:
    """A future whose worker died."""

    def __init__(self, error):
        self.error = error

    def add_done_callback(self, tell):
        tell(self)

    def result(self):
        raise self.error


def test_a_piece_that_kills_its_workers_is_recorded_as_crashed():
    request = {"points": [({"width": 8}, 0)], "numbers": [0]}
    deaths = []
    answers = []

    def submit(function, name, argument):
        deaths.append((name, argument))
        return Doomed(BrokenPipeError("gone"))

    drive(
        COMPUTE,
        [request],
        Workers(submit, 1, "a pool", lost=(BrokenPipeError,)),
        lambda _, records: answers.extend(records),
        _crashed,
    )
    assert deaths == [(COMPUTE, request)] * 3
    assert answers[0]["verdict"] == "crashed"
    assert "its worker died 3 times, perhaps for want of memory" in answers[0]["reason"]


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            ModuleNotFoundError("no steepest", name="steepest"),
            "has no steepest; install steepest where it runs",
        ),
        (UserError("a worker runs steepest 0"), "a worker runs steepest 0"),
        (
            RuntimeError("Error during deserialization\nof the graph"),
            r"\(RuntimeError: Error during deserialization\); see",
        ),
    ],
)
def test_what_workers_lack_is_said(error, sentence):
    request = {"points": [({"width": 8}, 0)], "numbers": [0]}
    with pytest.raises(UserError, match=sentence):
        crew = Workers(lambda *_: Doomed(error), 1, "a pool")
        drive(COMPUTE, [request], crew, lambda *_: None, _crashed)


def test_damaged_points_are_reported_and_computed_again(expected, tmp_path):
    work(planned(), tmp_path).run()
    for key in planned().keys[:10]:
        path = tmp_path / "catapult" / "points" / key / "point.json"
        path.write_bytes(path.read_bytes()[:-20])
    with pytest.warns(
        UserWarning, match="10 points .* cannot be trusted and will be computed again"
    ):
        left = work(planned(), tmp_path)
    assert len(left.missing) == 10
    left.run()
    assert records(tmp_path) == expected
