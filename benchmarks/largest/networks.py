"""Ten kinds of small networks, at most 500 weights, with their dense Hessians in double precision."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

EXAMPLES = 60
ACTIVATIONS = (nn.Tanh, nn.ReLU, nn.GELU)
squared = nn.functional.mse_loss
softmax = nn.functional.cross_entropy


class Drawn(NamedTuple):
    """A network with its loss and examples."""

    module: nn.Module
    loss: Callable
    inputs: torch.Tensor
    targets: torch.Tensor


class Last(nn.Module):
    """A recurrent network that is read at its last step."""

    def __init__(self, width: int, outputs: int):
        super().__init__()
        self.input = nn.Linear(3, width)
        self.state = nn.Linear(width, width)
        self.output = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.tanh(self.input(x[:, 0]))
        for step in range(1, x.shape[1]):
            state = torch.tanh(self.input(x[:, step]) + self.state(state))
        return self.output(state)


class Attention(nn.Module):
    """One head of attention, and a mean over positions."""

    def __init__(self, width: int, outputs: int):
        super().__init__()
        self.input = nn.Linear(3, width)
        self.mix = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.input(x)
        queries, keys, values = self.mix(x).chunk(3, -1)
        weights = (queries @ keys.mT / x.shape[-1] ** 0.5).softmax(-1)
        return self.output((x + weights @ values).mean(1))


class Beside(nn.Module):
    """Networks that share no weights; their outputs stand side by side."""

    def __init__(self, parts: list[nn.Module]):
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([part(x) for part in self.parts], 1)


def _mlp(rng: np.random.Generator, inputs: int, outputs: int) -> nn.Sequential:
    width = int(rng.integers(4, 12))
    activation = ACTIVATIONS[rng.integers(3)]
    deeper = [nn.Linear(width, width), activation()] if rng.integers(2) else []
    return nn.Sequential(nn.Linear(inputs, width), activation(), *deeper, nn.Linear(width, outputs))


def _numbers(module: nn.Module, shape: tuple[int, ...], outputs: int) -> Drawn:
    return Drawn(module, squared, torch.randn(EXAMPLES, *shape), torch.randn(EXAMPLES, outputs))


def _classes(module: nn.Module, shape: tuple[int, ...], outputs: int) -> Drawn:
    x = torch.randn(EXAMPLES, *shape)
    y = torch.randint(0, outputs, (EXAMPLES,))
    means = torch.randn(outputs, *shape)
    return Drawn(module, softmax, x + means[y], y)


def _one_output(rng: np.random.Generator) -> Drawn:
    return _numbers(_mlp(rng, 6, 1), (6,), 1)


def _two_outputs(rng: np.random.Generator) -> Drawn:
    return _numbers(_mlp(rng, 6, 2), (6,), 2)


def _many_outputs(rng: np.random.Generator) -> Drawn:
    outputs = int(rng.integers(3, 11))
    return _numbers(_mlp(rng, 6, outputs), (6,), outputs)


def _classifier(rng: np.random.Generator) -> Drawn:
    outputs = int(rng.integers(2, 11))
    return _classes(_mlp(rng, 6, outputs), (6,), outputs)


def _convolutional(rng: np.random.Generator) -> Drawn:
    channels = int(rng.integers(3, 7))
    outputs = int(rng.integers(2, 6))
    layers = [nn.Conv2d(1, channels, 3), nn.ReLU(), nn.Conv2d(channels, 4, 3), nn.Tanh()]
    module = nn.Sequential(*layers, nn.Flatten(), nn.Linear(16, outputs))
    return (_classes if rng.integers(2) else _numbers)(module, (1, 6, 6), outputs)


def _recurrent(rng: np.random.Generator) -> Drawn:
    outputs = int(rng.integers(1, 5))
    module = Last(int(rng.integers(4, 12)), outputs)
    return _numbers(module, (5, 3), outputs)


def _attention(rng: np.random.Generator) -> Drawn:
    outputs = int(rng.integers(2, 6))
    module = Attention(int(rng.integers(4, 9)), outputs)
    return (_classes if rng.integers(2) else _numbers)(module, (4, 3), outputs)


def _normalized(rng: np.random.Generator) -> Drawn:
    outputs = int(rng.integers(1, 6))
    width = int(rng.integers(4, 12))
    layers = [nn.Linear(6, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width)]
    module = nn.Sequential(*layers, nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, outputs))
    return (_classes if outputs > 1 else _numbers)(module, (6,), outputs)


def _twins(rng: np.random.Generator) -> Drawn:
    """Two heads that are nearly alike, with nearly the same targets."""
    width = int(rng.integers(4, 12))
    head = nn.Linear(width, 2)
    apart = 10.0 ** -rng.integers(1, 7)
    with torch.no_grad():
        head.weight[1] = head.weight[0] + apart * torch.randn(width)
        head.bias[1] = head.bias[0]
    module = nn.Sequential(nn.Linear(6, width), nn.Tanh(), head)
    drawn = _numbers(module, (6,), 2)
    drawn.targets[:, 1] = drawn.targets[:, 0] + apart * torch.randn(EXAMPLES)
    return drawn


def _side_by_side(rng: np.random.Generator) -> Drawn:
    """Networks without common weights: the Hessian has a block for each."""
    parts = [_mlp(rng, 6, 1) for _ in range(int(rng.integers(2, 4)))]
    return _numbers(Beside(list(parts)), (6,), len(parts))


KINDS: dict[str, Callable[[np.random.Generator], Drawn]] = {
    "one output": _one_output,
    "two outputs": _two_outputs,
    "three to ten outputs": _many_outputs,
    "classifiers": _classifier,
    "convolutional": _convolutional,
    "recurrent": _recurrent,
    "attention": _attention,
    "batch-normalized": _normalized,
    "twin heads": _twins,
    "side by side": _side_by_side,
}


def network(kind: str, seed: int) -> Drawn:
    """Draw a network with at most 500 weights; every other one is trained for up to a hundred steps of Adam."""
    rng = np.random.default_rng([list(KINDS).index(kind), seed])
    torch.manual_seed(int(rng.integers(2**31)))
    while True:
        drawn = KINDS[kind](rng)
        if sum(weight.numel() for weight in drawn.module.parameters()) <= 500:
            break
    adam = torch.optim.Adam(drawn.module.parameters(), 1e-2)
    for _ in range(int(rng.integers(10, 100)) if seed % 2 else 0):
        adam.zero_grad()
        drawn.loss(drawn.module(drawn.inputs), drawn.targets).backward()
        adam.step()
    adam.zero_grad()
    drawn.module.eval()
    return drawn


def dense_hessian(drawn: Drawn) -> np.ndarray[Any, Any]:
    """Return the Hessian of the mean loss, by differentiating twice in double precision, ``(p, p)``."""
    module = drawn.module.double()
    weights = list(module.parameters())
    targets = drawn.targets.double() if drawn.targets.is_floating_point() else drawn.targets
    loss = drawn.loss(module(drawn.inputs.double()), targets)
    slopes = torch.autograd.grad(loss, weights, create_graph=True)
    flat = torch.cat([slope.reshape(-1) for slope in slopes])
    rows = torch.autograd.grad(
        flat, weights, torch.eye(len(flat), dtype=flat.dtype), is_grads_batched=True
    )
    module.float()
    return torch.cat([row.reshape(len(flat), -1) for row in rows], 1).detach().numpy()
