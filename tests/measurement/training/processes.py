"""Trainings in two processes with and without a monitor, by kind of wrapper: ``python -m …processes FOLDER KIND …``.

Each kind is trained twice from one start; every process writes whether its weights, buffers and random state are the
same bits, and what the monitor has recorded, to ``FOLDER/KIND-RANK.json``.
"""

import json
import sys
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from steepest import Monitor
from steepest.measurement import read_log

STEPS = 6


class Nested(nn.Module):
    """A module of which a part is wrapped by itself."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = DistributedDataParallel(part)
        self.head = nn.Linear(10, 10)

    def forward(self, x):
        return self.head(self.part(x))


class Gathering(nn.Module):
    """A module whose forward pass waits for the other process."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x):
        out = self.part(x)
        total = out.detach().mean(0)
        dist.all_reduce(total)
        return out - total / dist.get_world_size()


def network(kind: str) -> nn.Module:
    normalized = kind in ("ddp-bn", "nested", "synced")
    norm = [nn.BatchNorm1d(16)] if normalized else []
    return nn.Sequential(nn.Linear(8, 16), *norm, nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 10))


def wrapped(kind: str) -> nn.Module:
    """Return a network as a training of this kind has it."""
    torch.manual_seed(0)
    model = network(kind)
    if kind.startswith("fsdp2"):
        from torch.distributed.fsdp import fully_shard

        for layer in (model[0], model[3]):
            fully_shard(layer)
        return fully_shard(model)
    if kind == "tensor-parallel":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import (
            ColwiseParallel,
            RowwiseParallel,
            parallelize_module,
        )

        plan = {"0": ColwiseParallel(), "3": RowwiseParallel()}
        return parallelize_module(model, init_device_mesh("cpu", (2,)), plan)
    if kind == "nested":
        model = Nested(model)
        for weight in model.head.parameters():  # outside of the wrapper: the same on both
            weight.requires_grad_(False)
        return model
    if kind == "gathering":
        return DistributedDataParallel(Gathering(model))
    if kind == "synced":
        # training it needs an accelerator; what is tried is the monitor's pass, by the statistics of the batch
        return nn.SyncBatchNorm.convert_sync_batchnorm(model).eval()
    return DistributedDataParallel(model)


def trained(kind: str, rank: int, log: Path | None) -> list[torch.Tensor]:
    """Train, and return all that the training has changed on this process."""
    model = wrapped(kind)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    x = torch.randn(64, 8, generator=torch.Generator().manual_seed(1))
    y = torch.arange(64) % 10
    # on one process alone, unless the weights are shards
    monitor = None
    if log is not None and (rank == 0 or kind == "fsdp2-all"):
        monitor = Monitor(
            log, nn.functional.cross_entropy, (x, y), every=2, budget=None, optimizer=optimizer
        )
        monitor(0, model)
    drawn = torch.Generator().manual_seed(rank)
    torch.manual_seed(rank)
    for step in range(1, STEPS + 1):
        rows = torch.randint(64, (16,), generator=drawn)
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if monitor is not None:
            monitor(step, model, loss=loss)
    local = lambda tensor: tensor.to_local() if hasattr(tensor, "to_local") else tensor
    state = [local(tensor.detach()).clone() for tensor in model.state_dict().values()]
    return [*state, torch.get_rng_state()]


def work(rank: int, folder: str, kinds: list[str], port: int) -> None:
    """Train each kind with and without a monitor."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    for kind in kinds:
        log = Path(folder) / f"{kind}-{rank}.jsonl"
        pairs = zip(trained(kind, rank, log), trained(kind, rank, None), strict=True)
        is_same = all(torch.equal(one, other) for one, other in pairs)
        records = read_log(log) if log.exists() else []
        told = {"same": is_same, "records": records}
        (Path(folder) / f"{kind}-{rank}.json").write_text(json.dumps(told))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, (sys.argv[1], sys.argv[3:], int(sys.argv[2])), nprocs=2)
