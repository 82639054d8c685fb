"""Fifteen trainings as practitioners write them, on data of scikit-learn, each with the step that its author took.

The list was written down before any of them was run. Steps that are too large or too small are so beside usual ones:
0.1 for plain descent, 0.05 with momentum 0.9, 0.001 for Adam.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from sklearn import datasets
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "measure"))
import gpt_torch
import resnet_torch

STEPS = 300  # of each training
ASKED = 30  # steps after which its author asks for advice
PARTS = (0.6, 0.8)  # where the examples trained on end, and the held-out ones that measure is given
PEAKS = ("lr", "initial_lr", "max_lr", "min_lr")
"""Where torch keeps the steps of a group of weights, schedules included."""
TEXTS = ("digits", "diabetes", "breast_cancer", "wine", "iris", "linnerud")
STRIDE = 8  # characters between windows of text


class Examples(NamedTuple):
    """Pairs ``(x, y)``: trained on, held out for measure, and held out from both."""

    given: tuple[Any, Any]
    held_out: tuple[Any, Any]
    unseen: tuple[Any, Any]


@dataclass(frozen=True)
class Setup:
    """One training of torch.

    Attributes:
        name: in words.
        data: its examples, the same at all seeds.
        network: untrained.
        loss: of outputs and targets.
        optimizer: from weights and the step.
        step: its author's; with a schedule its peak.
        batch: examples in each batch.
        schedule: from the optimizer, or None.
        in_evaluation: whether its author measures in evaluation mode, as with dropout.
    """

    name: str
    data: Callable[[], Examples]
    network: Callable[[], nn.Module]
    loss: Callable[[Tensor, Tensor], Tensor]
    optimizer: Callable[[Any, float], torch.optim.Optimizer]
    step: float
    batch: int
    schedule: Callable[[torch.optim.Optimizer, float], Any] | None = None
    in_evaluation: bool = False

    def training(self, seed: int) -> "TorchTraining":
        """Return the training before its first step."""
        return TorchTraining(self, seed)


class TorchTraining:
    """A training of torch that can be asked for advice, and can follow it."""

    def __init__(self, setup: Setup, seed: int) -> None:
        torch.manual_seed(seed)
        self.setup = setup
        self.examples = setup.data()
        self.model = setup.network().train()
        self.optimizer = setup.optimizer(self.model.parameters(), setup.step)
        schedule = setup.schedule
        self.schedule = None if schedule is None else schedule(self.optimizer, setup.step)
        self.batches = shuffled(len(self.examples.given[0]), setup.batch, seed)

    def descend(self, steps: int) -> None:
        """Take some steps."""
        x, y = self.examples.given
        for _ in range(steps):
            rows = torch.as_tensor(next(self.batches))
            self.optimizer.zero_grad()
            self.setup.loss(self.model(x[rows]), y[rows]).backward()
            self.optimizer.step()
            if self.schedule is not None:
                self.schedule.step()

    def scale_step(self, factor: float) -> None:
        """Multiply the steps of all groups, and of the schedule."""
        for group in self.optimizer.param_groups:
            for name in PEAKS:
                if name in group:
                    group[name] *= factor

    def asked(self) -> dict[str, Any]:
        """Return what measure is called with, as the network stands."""
        self.model.train(not self.setup.in_evaluation)
        return {"model": self.model, "loss": self.setup.loss, "optimizer": self.optimizer}

    def loss(self) -> float:
        """Return the loss on unseen examples, as the network is used."""
        x, y = self.examples.unseen
        self.model.eval()
        with torch.no_grad():
            return float(self.setup.loss(self.model(x), y))


@dataclass(frozen=True)
class JaxSetup:
    """The training of an MLP of JAX with a transformation of optax; attributes as of ``Setup``."""

    name: str
    data: Callable[[], Examples]
    optimizer: Callable[[float], optax.GradientTransformation]
    step: float
    batch: int
    sizes: tuple[int, ...]

    def training(self, seed: int) -> "JaxTraining":
        """Return the training before its first step."""
        return JaxTraining(self, seed)


class JaxTraining:
    """The same as ``TorchTraining`` with JAX."""

    def __init__(self, setup: JaxSetup, seed: int) -> None:
        self.setup = setup
        numbers = [tuple(jnp.asarray(np.asarray(a)) for a in pair) for pair in setup.data()]
        self.examples = Examples(*numbers)
        keys = jax.random.split(jax.random.key(seed), len(setup.sizes) - 1)
        self.params = [
            (jax.random.normal(key, (rows, columns)) * (2 / rows) ** 0.5, jnp.zeros(columns))
            for key, rows, columns in zip(keys, setup.sizes, setup.sizes[1:], strict=False)
        ]
        self.transformation = setup.optimizer(setup.step)
        self.state = self.transformation.init(self.params)
        self.batches = shuffled(len(self.examples.given[0]), setup.batch, seed)
        self.update = self._update()

    def _update(self) -> Callable:
        transformation = self.transformation

        @jax.jit
        def update(params, state, x, y):
            slope = jax.grad(lambda params: cross_entropy_of_jax(mlp_of_jax(params, x), y))(params)
            updates, state = transformation.update(slope, state, params)
            return optax.apply_updates(params, updates), state

        return update

    def descend(self, steps: int) -> None:
        """Take some steps."""
        x, y = self.examples.given
        for _ in range(steps):
            rows = next(self.batches)
            self.params, self.state = self.update(self.params, self.state, x[rows], y[rows])

    def scale_step(self, factor: float) -> None:
        """Take another transformation with the same state."""
        self.transformation = self.setup.optimizer(factor * self.setup.step)
        self.update = self._update()

    def asked(self) -> dict[str, Any]:
        """Return what measure is called with, as the network stands."""
        model = (mlp_of_jax, self.params)
        optimizer = (self.transformation, self.state)
        return {"model": model, "loss": cross_entropy_of_jax, "optimizer": optimizer}

    def loss(self) -> float:
        """Return the loss on unseen examples."""
        x, y = self.examples.unseen
        return float(cross_entropy_of_jax(mlp_of_jax(self.params, x), y))


def mlp_of_jax(params, x):
    """Return scores of a ReLU network."""
    for matrix, bias in params[:-1]:
        x = jax.nn.relu(x @ matrix + bias)
    return x @ params[-1][0] + params[-1][1]


def cross_entropy_of_jax(outputs, targets):
    """Return the mean over a batch."""
    return optax.softmax_cross_entropy_with_integer_labels(outputs, targets).mean()


def shuffled(examples: int, batch: int, seed: int) -> Iterator[np.ndarray]:
    """Yield rows of full batches, epoch by epoch."""
    rng = np.random.default_rng(seed)
    while True:
        order = rng.permutation(examples)
        for start in range(0, examples - batch + 1, batch):
            yield order[start : start + batch]


# ---------------------------------------------------------------------------------------------- examples


def parted(x: Tensor, y: Tensor, shuffle: bool = True) -> Examples:
    """Cut examples in three parts, the same at all seeds."""
    count = len(x)
    order = np.random.default_rng(0).permutation(count) if shuffle else np.arange(count)
    ends = [int(part * count) for part in PARTS]
    return Examples(*[(x[rows], y[rows]) for rows in map(torch.as_tensor, np.split(order, ends))])


def scaled(x: np.ndarray) -> Tensor:
    """Return columns of mean 0 and variance 1."""
    return torch.as_tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)


@cache
def digits() -> Examples:
    """Pixels ``(n, 64)`` between 0 and 1, and digits."""
    x, y = datasets.load_digits(return_X_y=True)
    return parted(torch.as_tensor(x / 16, dtype=torch.float32), torch.as_tensor(y))


@cache
def images() -> Examples:
    """The same as images ``(n, 1, 8, 8)``."""
    return Examples(*[(x.reshape(-1, 1, 8, 8), y) for x, y in digits()])


@cache
def copies() -> Examples:
    """Pixels as their own targets."""
    return Examples(*[(x, x) for x, _ in digits()])


@cache
def diabetes() -> Examples:
    """Ten numbers of a patient, and the course of the disease ``(n, 1)``, both scaled."""
    x, y = datasets.load_diabetes(return_X_y=True)
    return parted(scaled(x), scaled(y[:, None]))


@cache
def cancer() -> Examples:
    """Thirty numbers of a tumour, scaled, and its kind."""
    x, y = datasets.load_breast_cancer(return_X_y=True)
    return parted(scaled(x), torch.as_tensor(y))


@cache
def friedman() -> Examples:
    """Ten numbers, and Friedman's function of five of them with noise, scaled."""
    x, y = datasets.make_friedman1(1500, noise=1.0, random_state=0)
    return parted(scaled(x), scaled(y[:, None]))


@cache
def text() -> Examples:
    """Windows of what scikit-learn says of its data sets, in order, and the next characters."""
    known = {letter: place for place, letter in enumerate(gpt_torch.VOCABULARY)}
    said = "".join(getattr(datasets, f"load_{name}")().DESCR for name in TEXTS)
    numbers = torch.tensor([known.get(letter, known[" "]) for letter in said])
    windows = numbers.unfold(0, gpt_torch.LENGTH + 1, STRIDE)
    return parted(windows[:, :-1], windows[:, 1:], shuffle=False)


# ---------------------------------------------------------------------------------------------- networks


def chain(*sizes: int, activation: Callable[[], nn.Module] = nn.ReLU) -> Callable[[], nn.Module]:
    """Return dense layers with an activation between them."""

    def make() -> nn.Module:
        layers: list[nn.Module] = []
        for rows, columns in pairwise(sizes):
            layers += [nn.Linear(rows, columns), activation()]
        return nn.Sequential(*layers[:-1])

    return make


def convolutions(normalized: bool) -> Callable[[], nn.Module]:
    """Return two convolutions and a dense layer."""

    def make() -> nn.Module:
        norms = [nn.BatchNorm2d(width) if normalized else nn.Identity() for width in (8, 16)]
        return nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), norms[0], nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), norms[1], nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(64, 10),
        )  # fmt: skip

    return make


def with_dropout() -> nn.Module:
    """Return a classifier of thirty numbers."""
    return nn.Sequential(
        nn.Linear(30, 32), nn.ReLU(), nn.Dropout(0.25), nn.Linear(32, 16), nn.ReLU(),
        nn.Dropout(0.25), nn.Linear(16, 2),
    )  # fmt: skip


class Rows(nn.Module):
    """A GRU that reads an image row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.read = nn.GRU(8, 48, batch_first=True)
        self.say = nn.Linear(48, 10)

    def forward(self, x: Tensor) -> Tensor:
        """From ``(b, 1, 8, 8)`` to ``(b, 10)``."""
        return self.say(self.read(x.squeeze(1))[0][:, -1])


class Patches(nn.Module):
    """A transformer that reads an image in sixteen patches."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.cut = nn.Conv2d(1, width, 2, 2)
        self.place = nn.Parameter(0.02 * torch.randn(16, width))
        block = nn.TransformerEncoderLayer(
            width, 4, 2 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        self.say = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 10))

    def forward(self, x: Tensor) -> Tensor:
        """From ``(b, 1, 8, 8)`` to ``(b, 10)``."""
        tokens = self.cut(x).flatten(2).transpose(1, 2) + self.place
        return self.say(self.blocks(tokens).mean(1))


# ------------------------------------------------------------------------------------------------ set-ups


def descent(momentum: float = 0.9, decay: float = 0.0) -> Callable[[Any, float], Any]:
    """Return SGD."""
    return lambda weights, lr: torch.optim.SGD(weights, lr, momentum, weight_decay=decay)


def adam(weights: Any, lr: float) -> torch.optim.Optimizer:
    """Return Adam."""
    return torch.optim.Adam(weights, lr)


def adamw(decay: float) -> Callable[[Any, float], Any]:
    """Return AdamW."""
    return lambda weights, lr: torch.optim.AdamW(weights, lr, weight_decay=decay)


def one_cycle(optimizer: torch.optim.Optimizer, peak: float) -> Any:
    """Return a warm-up and a decay over the whole training."""
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, peak, total_steps=STEPS)


ENTROPY = functional.cross_entropy
SQUARED = functional.mse_loss
DIGITS = (64, 64, 64, 10)
SETUPS = (
    Setup("MLP, momentum", digits, chain(*DIGITS), ENTROPY, descent(), 0.05, 32),
    Setup(
        "convolutions with batch norm, momentum, decay",
        images, convolutions(True), ENTROPY, descent(decay=5e-4), 0.1, 64,
    ),
    Setup(
        "ResNet of the examples, momentum",
        images, lambda: resnet_torch.resnet(8), ENTROPY, descent(), 0.05, 64,
    ),
    Setup("GRU, Adam", images, Rows, ENTROPY, adam, 1e-3, 32),
    Setup(
        "GPT of the examples, Adam", text, gpt_torch.Gpt, gpt_torch.next_character, adam, 5e-3, 16
    ),
    Setup("diabetes, AdamW", diabetes, chain(10, 64, 64, 1), SQUARED, adamw(0.01), 1e-3, 32),
    Setup(
        "breast cancer, dropout, Adam",
        cancer, with_dropout, ENTROPY, adam, 1e-3, 32, in_evaluation=True,
    ),
    Setup("autoencoder, Adam", copies, chain(64, 32, 8, 32, 64), SQUARED, adam, 1e-3, 64),
    Setup("ViT, AdamW", images, Patches, ENTROPY, adamw(0.05), 1e-3, 64),
    Setup(
        "MLP, AdamW, OneCycle", digits, chain(*DIGITS), ENTROPY, adamw(0.01), 1e-2, 64, one_cycle
    ),
    Setup(
        "MLP, plain descent, ten times too small",
        digits, chain(*DIGITS), ENTROPY, descent(0.0), 0.01, 32,
    ),
    Setup(
        "convolutions, Adam, three times too small",
        images, convolutions(False), ENTROPY, adam, 3e-4, 32,
    ),
    Setup(
        "convolutions, momentum, three times too large",
        images, convolutions(False), ENTROPY, descent(), 0.15, 32,
    ),
    Setup(
        "regression by tanh units, Adam, ten times too large",
        friedman, chain(10, 64, 64, 1, activation=nn.Tanh), SQUARED, adam, 1e-2, 32,
    ),
    JaxSetup("MLP of JAX, AdamW of optax", digits, optax.adamw, 1e-3, 64, DIGITS),
)  # fmt: skip
FIXED_ON = (
    "MLP, momentum",
    "GRU, Adam",
    "diabetes, AdamW",
    "MLP, plain descent, ten times too small",
    "regression by tanh units, Adam, ten times too large",
)
"""Those at whose seeds 0 to 2 thresholds were fixed."""
