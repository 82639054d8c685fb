"""Trainings whose data change with the network: a policy that learns from its own walks, and two networks at play."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, one_hot, softplus

SIDE = 5  # places of the world are SIDE × SIDE, the goal is the last one
MOVES = torch.tensor([[0, 1], [1, 0], [0, -1], [-1, 0]])
LENGTH = 12  # moves of a walk
CORNERS = torch.tensor([[3.0, 1.0], [3.0, -1.0], [1.0, 1.0], [1.0, -1.0]])


class Walker:
    """A policy gradient with a running baseline: walks through a square earn one for each move spent at the goal.

    The loss is minus the mean of log-probability times advantage, whose sign means nothing.
    """

    def __init__(self, optimizer: Callable, batch: int) -> None:
        self.model = nn.Sequential(nn.Linear(SIDE * SIDE, 32), nn.Tanh(), nn.Linear(32, len(MOVES)))
        self.optimizer = optimizer(self.model.parameters())
        self.batch = batch
        self.baseline = 0.0
        self.best = float(LENGTH - 2 * (SIDE - 1) + 1)
        self.guess = self.best  # what a walker that never arrives is short of

    def walk(self, count: int) -> tuple[Tensor, Tensor]:
        """Return log-probabilities ``(count,)`` of walks, and what they earned."""
        at = torch.zeros(count, 2, dtype=torch.long)
        logs = torch.zeros(count)
        earned = torch.zeros(count)
        for _ in range(LENGTH):
            places = one_hot(at[:, 0] * SIDE + at[:, 1], SIDE * SIDE).float()
            chances = log_softmax(self.model(places), -1)
            moves = torch.multinomial(chances.detach().exp(), 1)
            logs = logs + chances.gather(1, moves)[:, 0]
            at = (at + MOVES[moves[:, 0]]).clamp(0, SIDE - 1)
            earned += (at == SIDE - 1).all(1)
        return logs, earned

    def step(self) -> Tensor:
        """Walk and learn; return the loss."""
        logs, earned = self.walk(self.batch)
        loss = -(logs * (earned - self.baseline)).mean()
        self.baseline += 0.1 * (float(earned.mean()) - self.baseline)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def risk(self) -> float:
        """Return what walks earn less than the best."""
        with torch.no_grad():
            return self.best - float(self.walk(64)[1].mean())


class Adversaries:
    """A GAN that draws from four Gaussians; the monitor looks at its discriminator, and is given that one's loss."""

    def __init__(self, optimizer: Callable, batch: int) -> None:
        self.draws = nn.Sequential(
            nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2)
        )
        self.model = nn.Sequential(
            nn.Linear(2, 32),
            nn.LeakyReLU(0.2),
            nn.Linear(32, 32),
            nn.LeakyReLU(0.2),
            nn.Linear(32, 1),
        )
        self.optimizer = optimizer(self.model.parameters())
        self.other = optimizer(self.draws.parameters())
        self.batch = batch
        self.guess = self.distance(torch.zeros(256, 2))

    def real(self, count: int) -> Tensor:
        """Return examples ``(count, 2)``."""
        return CORNERS[torch.randint(len(CORNERS), (count,))] + 0.15 * torch.randn(count, 2)

    def step(self) -> Tensor:
        """Train the discriminator and then the generator; return the former's loss."""
        drawn = self.draws(torch.randn(self.batch, 4))
        loss = (
            softplus(-self.model(self.real(self.batch))) + softplus(self.model(drawn.detach()))
        ).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.other.zero_grad()
        softplus(-self.model(drawn)).mean().backward()
        self.other.step()
        return loss.detach()

    def distance(self, drawn: Tensor) -> float:
        """Return the energy distance of what is drawn from the examples."""
        real = self.real(len(drawn))
        between = torch.cdist(drawn, real).mean()
        return float(
            2 * between - torch.cdist(drawn, drawn).mean() - torch.cdist(real, real).mean()
        )

    def risk(self) -> float:
        """Return how far what is drawn is from the examples."""
        with torch.no_grad():
            return self.distance(self.draws(torch.randn(256, 4)))
