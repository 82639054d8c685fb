"""What kinds of training are: a network, what it learns, how, and what should become of it.

A kind is *stable*, or it is *lost* and should be announced, or its loss cannot be foreseen, as one bad batch: then the
monitor should say afterwards what happened. What is learned are examples (``Task``), or a game whose data change with
the network (``Game``).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor, nn

STEPS = 200
Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Task:
    """A network and what it learns.

    Attributes:
        network: untrained.
        data: all examples.
        examples: how many of them are trained on.
        loss: of outputs and targets.
        guess: the risk of the best constant guess for these targets.
    """

    network: Callable[[], nn.Module]
    data: Callable[[], Pair]
    examples: int
    loss: Callable[[Tensor, Tensor], Tensor]
    guess: Callable[[Tensor], float]


class Player(Protocol):
    """A training whose data change with the network.

    Attributes:
        model: what the monitor looks at.
        optimizer: of that model.
        guess: the risk of a player that has learned nothing.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    guess: float

    def step(self) -> Tensor:
        """Train for one step; return the loss of its batch."""
        ...

    def risk(self) -> float:
        """Return how far the player is from the best one."""
        ...


@dataclass(frozen=True)
class Game:
    """A training whose data change with the network.

    Attributes:
        begin: a player, from the optimizer of a kind and its batch.
        is_said: whether the monitor is told that the data change, by ``stationary=False``.
    """

    begin: Callable[[Callable, int], Player]
    is_said: bool


@dataclass(frozen=True)
class Kind:
    """One kind of training.

    Attributes:
        task: what is learned.
        optimizer: from weights.
        batch: examples in each batch.
        meant: what should become of it.
        schedule: factor of the step size at each step.
        scale: factor of the loss at each step, which nobody divides out again.
        spoilt: the step whose batch has inputs a thousand times too large.
    """

    task: Task | Game
    optimizer: Callable
    batch: int
    meant: Literal["stable", "lost", "unforeseeable"]
    schedule: Callable[[int], float] = lambda step: 1.0
    scale: Callable[[int], float] = lambda step: 1.0
    spoilt: int | None = None


def entropy(labels: Tensor) -> float:
    """Return the entropy of the frequencies of labels, in nats."""
    shares = torch.bincount(labels.flatten()) / labels.numel()
    shares = shares[shares > 0]
    return -float((shares * shares.log()).sum())


def variance(targets: Tensor) -> float:
    """Return the mean square of targets about their mean."""
    return float((targets - targets.mean(0)).square().mean())


def sgd(lr: float, momentum: float = 0.0) -> Callable:
    return lambda weights: torch.optim.SGD(weights, lr, momentum=momentum)


def adam(lr: float, second: float = 0.999) -> Callable:
    return lambda weights: torch.optim.Adam(weights, lr, betas=(0.9, second))


ramp = lambda step: (step + 1) / STEPS
warm_up = lambda step: min(1.0, (step + 1) / 40)
cosine = lambda step: 0.5 * (1 + math.cos(math.pi * step / STEPS))
range_test = lambda step: 1e-3 ** (1 - (step + 1) / STEPS)
restarts = lambda step: 0.5 * (1 + math.cos(math.pi * (step % 50) / 50))
doubling = lambda step: 2.0 ** (step // 10)


def shuffled(pair: Pair, batch: int) -> Iterator[Pair]:
    """Yield batches of shuffled examples, for ever; the last one of an epoch is left out if it is not full."""
    while True:
        for rows in torch.randperm(len(pair[0])).split(batch):
            if len(rows) == batch:
                yield pair[0][rows], pair[1][rows]
