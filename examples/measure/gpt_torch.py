"""A small GPT of torch that learns the Zen of Python by heart, character by character.

Measure it with ``steepest measure examples/measure/gpt_torch.py:build``. One example is a window of text: inputs and
targets are ``(batch, time)`` of whole numbers, outputs ``(batch, time, vocabulary)``.
"""

import codecs
import io
from contextlib import redirect_stdout

import torch
from torch import Tensor, nn
from torch.nn import functional

with redirect_stdout(io.StringIO()):  # the module prints itself
    import this

TEXT = codecs.decode(this.s, "rot13")
VOCABULARY = sorted(set(TEXT))
LENGTH = 32  # characters of a window


class Block(nn.Module):
    """Causal attention and a small network, each read through layer normalization and added to what was there."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attend = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)
        self.think = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Of ``(b, t, width)``, the same shape."""
        parts = self.attend(self.norms[0](x)).unflatten(-1, (3, self.heads, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4)  # each (b, heads, t, width/heads)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.merge(seen.transpose(1, 2).flatten(2))
        return x + self.think(self.norms[1](x))


class Gpt(nn.Module):
    """Blocks between an embedding of the characters and its transpose, which reads the next one."""

    def __init__(self, width: int = 48, heads: int = 4, depth: int = 2) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(VOCABULARY), width)
        self.place = nn.Embedding(LENGTH, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.read = nn.Linear(width, len(VOCABULARY), bias=False)
        nn.init.normal_(self.embed.weight, std=width**-0.5)
        self.read.weight = self.embed.weight  # tied

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores ``(b, t, vocabulary)`` of the next character after each of ``(b, t)``."""
        x = self.embed(tokens) + self.place.weight[: tokens.shape[1]]
        return self.read(self.norm(self.blocks(x)))


def next_character(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy in nats, mean over windows and places."""
    return functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())


def data(count: int = 100) -> tuple[Tensor, Tensor]:
    """Windows that start 8 characters apart, and the same one character later, both ``(count, LENGTH)``."""
    text = torch.tensor([VOCABULARY.index(each) for each in TEXT])
    windows = text.unfold(0, LENGTH + 1, 8)[:count]
    return windows[:, :-1], windows[:, 1:]


def build(epochs: int = 40):
    """The model, trained by Adam on shuffled batches of 16 windows, its loss, and the data as a pair of arrays."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Gpt()
    (x, y) = data()
    shuffle = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(x), generator=shuffle).split(16):
            optimizer.zero_grad()
            next_character(model(x[rows]), y[rows]).backward()
            optimizer.step()
    return model.eval(), next_character, (x, y)
