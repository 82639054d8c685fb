"""The third list of trainings on which warnings are judged; the rule was fixed on the first two and on ``divergence``.

This list is older than any run of a monitor on it, and so is its rule's last change than the runs that are recorded.
Networks, data and step sizes are others than there. Among the kinds that end well are those whose losses have no scale
or long tails: games, in which the data change with the network, single examples, and targets with outliers. Step sizes
were chosen by trainings without a monitor at seeds 900 and 901, which showed whether a training is lost.
"""

import math
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_sample_image,
    load_wine,
)
from torch import Tensor, nn
from torch.nn.functional import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    mse_loss,
    normalize,
)

sys.path.insert(0, str(Path(__file__).parent))
from games import Adversaries, Walker
from kinds import (
    Game,
    Kind,
    Pair,
    Task,
    adam,
    cosine,
    doubling,
    entropy,
    ramp,
    range_test,
    restarts,
    sgd,
    variance,
    warm_up,
)

TEXT = "".join(load().DESCR for load in (load_iris, load_wine, load_diabetes))[:6000]
VOCABULARY = sorted(set(TEXT))
LENGTH = 16  # characters of a window
TEMPERATURE = 0.2  # of the contrastive loss
WRONG = 0.2  # of the labels, where labels are noisy


class Writer(nn.Module):
    """A causal transformer of two Pre-LN layers that writes text character by character."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(VOCABULARY), width)
        self.place = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, batch_first=True, dropout=0.0, norm_first=True, activation="gelu"
        )
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.read = nn.Linear(width, len(VOCABULARY))
        ahead = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
        self.register_buffer("ahead", ahead)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores ``(b, t, vocabulary)`` of the next character after each of ``(b, t)``."""
        return self.read(self.blocks(self.embed(tokens) + self.place, mask=self.ahead))


class Patches(nn.Module):
    """A transformer of two Pre-LN layers over four patches of an image and a token that is read, ``(b, 64)``."""

    def __init__(self, width: int = 36) -> None:
        super().__init__()
        self.embed = nn.Conv2d(1, width, 4, stride=4)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.place = nn.Parameter(0.02 * torch.randn(5, width))
        layer = nn.TransformerEncoderLayer(
            width, 6, 2 * width, batch_first=True, dropout=0.0, norm_first=True, activation="gelu"
        )
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.read = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 10))

    def forward(self, x: Tensor) -> Tensor:
        """Scores ``(b, 10)``."""
        patches = self.embed(x.view(-1, 1, 8, 8)).flatten(2).transpose(1, 2)
        token = self.token.expand(len(x), -1, -1)
        return self.read(self.blocks(torch.cat([token, patches], 1) + self.place)[:, 0])


class Waves(nn.Module):
    """A network of SiLU that paints a picture from sines of places, ``(b, 2)``."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("waves", 4.0 * torch.randn(2, 32))
        self.paint = plain([64, 64, 64, 3], nn.SiLU)

    def forward(self, x: Tensor) -> Tensor:
        """Colours ``(b, 3)``."""
        phases = x @ self.waves
        return self.paint(torch.cat([phases.sin(), phases.cos()], -1))


def plain(sizes: list[int], activation: Callable[[], nn.Module]) -> nn.Sequential:
    """A network of these sizes, with an activation between its layers."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers[:-1])


def next_character(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy in nats, mean over windows and places."""
    return cross_entropy(outputs.flatten(0, 1), targets.flatten())


def contrast(outputs: Tensor, targets: Tensor) -> Tensor:
    """InfoNCE of two views of each image, ``(b, 2, d)``: which of the second views is of the same image."""
    first, second = normalize(outputs, dim=-1).unbind(1)
    scores = first @ second.T / TEMPERATURE
    return cross_entropy(scores, torch.arange(len(outputs)))


def choices(targets: Tensor) -> float:
    """Return InfoNCE of views that say nothing: the logarithm of the number of images."""
    return math.log(len(targets))


def standard(columns: Tensor) -> Tensor:
    """Return columns of mean 0 and variance 1."""
    return (columns - columns.mean(0)) / columns.std(0)


def windows() -> Pair:
    """Windows of text, and the same one character later, both ``(n, LENGTH)``."""
    text = torch.tensor([VOCABULARY.index(letter) for letter in TEXT])
    cut = text.unfold(0, LENGTH + 1, 20)
    return cut[:, :-1], cut[:, 1:]


def digits() -> Pair:
    """Return images ``(n, 64)`` with pixels between 0 and 1, and the digits that they show."""
    x, y = load_digits(return_X_y=True)
    return torch.as_tensor(x / 16, dtype=torch.float32), torch.as_tensor(y)


def noisy() -> Pair:
    """Return images ``(n, 64)`` and digits, of which a fifth is drawn anew."""
    x, y = digits()
    is_wrong = torch.rand(len(y)) < WRONG
    return x, torch.where(is_wrong, torch.randint(10, y.shape), y)


def views() -> Pair:
    """Return each image twice, shifted by up to a pixel and noisy, ``(n, 2, 64)``."""
    images = digits()[0].view(-1, 8, 8)
    shifted = [
        torch.stack(
            [image.roll(tuple(torch.randint(-1, 2, (2,)).tolist()), (0, 1)) for image in images]
        )
        for _ in range(2)
    ]
    both = torch.stack(shifted, 1).flatten(2)
    return both + 0.1 * torch.randn(both.shape), torch.zeros(len(images))


def progression() -> Pair:
    """Return the diabetes data, each column with mean 0 and variance 1."""
    x, y = load_diabetes(return_X_y=True)
    inputs = torch.as_tensor(x, dtype=torch.float32)
    return standard(inputs), standard(torch.as_tensor(y, dtype=torch.float32)[:, None])


def outliers() -> Pair:
    """Return ten inputs and a linear target whose noise has Student's distribution with three degrees of freedom."""
    x = torch.randn(1000, 10)
    noise = torch.distributions.StudentT(3.0).sample((1000, 1))
    return x, x @ torch.randn(10, 1) + noise


def tumours() -> Pair:
    """Return thirty measurements of 569 tumours, and whether they are benign."""
    x, y = load_breast_cancer(return_X_y=True)
    labels = torch.as_tensor(y, dtype=torch.float32)[:, None]
    return standard(torch.as_tensor(x, dtype=torch.float32)), labels


def picture() -> Pair:
    """Return places in the unit square ``(n, 2)``, and the colours of a photograph there ``(n, 3)``."""
    image = torch.as_tensor(load_sample_image("flower.jpg")[::9, ::9].copy()) / 255
    rows, columns = torch.meshgrid(
        *(torch.linspace(0, 1, n) for n in image.shape[:2]), indexing="ij"
    )
    return torch.stack([rows, columns], -1).flatten(0, 1), image.flatten(0, 1).float()


def binary_entropy(labels: Tensor) -> float:
    """Return the entropy of the share of ones, in nats."""
    return entropy(labels.long())


WRITER = Task(Writer, windows, 128, next_character, entropy)
PATCHES = Task(Patches, digits, 256, cross_entropy, entropy)
VIEWS = Task(lambda: plain([64, 96, 96, 24], nn.ReLU), views, 256, contrast, choices)
GELU = Task(lambda: plain([10, 48, 48, 48, 1], nn.GELU), progression, 300, mse_loss, variance)
OUTLIERS = Task(lambda: plain([10, 32, 1], nn.Tanh), outliers, 800, mse_loss, variance)
TUMOURS = Task(
    lambda: plain([30, 24, 24, 1], nn.Tanh),
    tumours,
    400,
    binary_cross_entropy_with_logits,
    binary_entropy,
)
NOISY = Task(lambda: plain([64, 128, 128, 10], nn.ReLU), noisy, 512, cross_entropy, entropy)
DIGITS = Task(lambda: plain([64, 64, 10], nn.LeakyReLU), digits, 512, cross_entropy, entropy)
WAVES = Task(Waves, picture, 1000, mse_loss, variance)
WALK = Game(Walker, True)
WALK_UNSAID = Game(Walker, False)
GAN = Game(Adversaries, True)
GAN_UNSAID = Game(Adversaries, False)

KINDS = {
    # meant to be stable
    "writer, Adam that warms up": Kind(WRITER, adam(3e-3), 16, "stable", warm_up),
    "writer, Adam, batches of 1": Kind(WRITER, adam(1e-3), 1, "stable"),
    "patches, Adam": Kind(PATCHES, adam(1e-3), 32, "stable"),
    "patches, Adam that restarts": Kind(PATCHES, adam(3e-3), 32, "stable", restarts),
    "views, momentum": Kind(VIEWS, sgd(0.05, 0.9), 64, "stable"),
    "views, Adam that decays": Kind(VIEWS, adam(3e-3), 64, "stable", cosine),
    "GELU, SGD, batches of 1": Kind(GELU, sgd(0.02), 1, "stable"),
    "GELU, Adam, batches of 1": Kind(GELU, adam(1e-3), 1, "stable"),
    "outliers, SGD, batches of 8": Kind(OUTLIERS, sgd(0.02), 8, "stable"),
    "outliers, Adam, batches of 1": Kind(OUTLIERS, adam(3e-3), 1, "stable"),
    "tumours, SGD, batches of 1": Kind(TUMOURS, sgd(0.05), 1, "stable"),
    "tumours, Adam, batches of 1": Kind(TUMOURS, adam(3e-3), 1, "stable"),
    "wrong labels, momentum": Kind(NOISY, sgd(0.1, 0.9), 16, "stable"),
    "digits, SGD, batches of 1": Kind(DIGITS, sgd(0.05), 1, "stable"),
    "waves, Adam that restarts": Kind(WAVES, adam(3e-3), 64, "stable", restarts),
    "waves, momentum that warms up": Kind(WAVES, sgd(0.3, 0.9), 64, "stable", warm_up),
    "policy gradient": Kind(WALK, adam(1e-2), 16, "stable"),
    "policy gradient that is not said": Kind(WALK_UNSAID, adam(1e-2), 16, "stable"),
    "GAN": Kind(GAN, adam(1e-3), 64, "stable"),
    "GAN that is not said": Kind(GAN_UNSAID, adam(1e-3), 64, "stable"),
    # meant to be lost
    "writer, Adam, too large at once": Kind(WRITER, adam(0.1), 16, "lost"),
    "writer, Adam, a range test": Kind(WRITER, adam(3.0), 16, "lost", range_test),
    "writer, momentum, a ramp": Kind(WRITER, sgd(20.0, 0.9), 16, "lost", ramp),
    "patches, Adam, a ramp": Kind(PATCHES, adam(0.5), 32, "lost", ramp),
    "patches, SGD, too large at once": Kind(PATCHES, sgd(3.0), 32, "lost"),
    "views, momentum, a range test": Kind(VIEWS, sgd(300.0, 0.9), 64, "lost", range_test),
    "GELU, SGD, a range test": Kind(GELU, sgd(10.0), 32, "lost", range_test),
    "GELU, momentum, batches of 1, a ramp": Kind(GELU, sgd(1.0, 0.9), 1, "lost", ramp),
    "tumours, Adam, a ramp": Kind(TUMOURS, adam(5.0), 32, "lost", ramp),
    "tumours, momentum, batches of 1, too large at once": Kind(TUMOURS, sgd(3.0, 0.9), 1, "lost"),
    "wrong labels, momentum, a range test": Kind(NOISY, sgd(10.0, 0.9), 16, "lost", range_test),
    "wrong labels, Adam with β₂ = 0.5": Kind(NOISY, adam(0.1, 0.5), 16, "lost"),
    "digits, SGD, loss scale": Kind(DIGITS, sgd(0.05), 32, "lost", scale=doubling),
    "waves, SGD, a ramp": Kind(WAVES, sgd(100.0), 64, "lost", ramp),
    "waves, Adam, a ramp": Kind(WAVES, adam(1.0), 64, "lost", ramp),
    # lost by one step
    "wrong labels, one bad batch": Kind(NOISY, sgd(0.1, 0.9), 16, "unforeseeable", spoilt=100),
    "GELU, one bad batch": Kind(GELU, sgd(0.02), 32, "unforeseeable", spoilt=100),
}
"""By name."""
