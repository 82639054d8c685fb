"""Pipes in the place of files: nothing waits for what nobody writes."""

import gzip
import os
import signal

import pytest

from steepest import Monitor, catalogue, files
from steepest.core.errors import UserError
from steepest.measurement._loading import load_checkpoint
from steepest.measurement._report import read_report
from steepest.nn.data import cifar10, mnist


@pytest.fixture(autouse=True)
def _patience():
    """Break off what waits."""

    def waits(number, frame):
        raise AssertionError("it waits for a pipe")

    before = signal.signal(signal.SIGALRM, waits)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


READERS = {
    "claim.py": lambda path: files.import_file(path),
    "first.py": lambda path: catalogue.first_sentence(path),
    "report.json": read_report,
    "weights.npz": load_checkpoint,
    "data_batch_1.bin": lambda path: cifar10(path.parent),
    "train-images-idx3-ubyte": lambda path: mnist(path.parent),
}


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_is_refused_by_whoever_reads_a_file_of_that_name(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises((UserError, OSError)):
        READERS[name](tmp_path / name)


def test_a_monitor_refuses_a_pipe_for_its_log_before_the_training(tmp_path):
    os.mkfifo(tmp_path / "run.jsonl")
    monitor = Monitor(tmp_path / "run.jsonl", None)
    assert "no regular file" in str(monitor.log.unwritable())


def test_a_monitor_may_write_where_everything_is_lost():
    assert Monitor("/dev/null", None).log.unwritable() is None


def test_files_of_data_that_may_not_be_read_are_one_sentence(tmp_path, monkeypatch):
    """As where another user owns them."""

    def forbidden(path, largest=None):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("steepest.nn.data._real.read_bytes", forbidden)
    (tmp_path / "data_batch_1.bin").write_bytes(b"")
    with gzip.open(tmp_path / "train-images-idx3-ubyte.gz", "wb") as file:
        file.write(b"")
    for load in (cifar10, mnist):
        with pytest.raises(UserError, match=r"cannot be read .*Permission denied"):
            load(tmp_path)
