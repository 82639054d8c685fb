"""A training of two processes ends with the same bits with a monitor and without, whatever wraps the network."""

import json
import socket
import subprocess
import sys

from tests.extras import need

torch = need("torch")

MEASURED = ("ddp", "ddp-bn", "nested", "synced")
REFUSED = ("gathering", "fsdp2", "fsdp2-all", "tensor-parallel")


def told(folder, kinds):
    """Train these kinds, and return what both processes tell of each."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "tests.measurement.training.processes", folder, port, *kinds]
    subprocess.run([str(part) for part in command], check=True, timeout=300)
    read = lambda kind, rank: json.loads((folder / f"{kind}-{rank}.json").read_text())
    return {kind: [read(kind, rank) for rank in (0, 1)] for kind in kinds}


def check(kinds):
    for kind, (first, second) in kinds.items():
        assert first["same"] and second["same"], kind
        records = first["records"]
        assert [record["step"] for record in records] == [0, 2, 4, 6], kind
        assert "loss of the batch" in records[-1]["quantities"], kind
        assert "update over weight" in records[-1]["quantities"], kind
        assert ("risk" in records[-1]["quantities"]) == (kind in MEASURED), kind
        assert ("trouble" in records[0]) == (kind in REFUSED), kind
        if kind.startswith(("fsdp", "tensor")):
            assert "gradient norm of the batch" not in records[-1]["quantities"]


def test_two_processes(tmp_path):
    check(told(tmp_path, ("ddp-bn", "fsdp2")))


def test_two_processes_of_every_kind(tmp_path):
    check(told(tmp_path, (*MEASURED, *REFUSED)))
