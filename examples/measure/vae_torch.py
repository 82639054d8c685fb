"""A variational autoencoder of torch on the digits of scikit-learn: its loss draws random numbers.

Measure it with ``steepest measure examples/measure/vae_torch.py:build --noise fixed``: every pass has the same draw.
"""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

CODE = 4
HELD_OUT = 500


class Vae(nn.Module):
    """Pixels to a normal distribution over codes, and a code that is drawn from it back to pixels."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(64, width), nn.Tanh(), nn.Linear(width, 2 * CODE))
        self.decode = nn.Sequential(nn.Linear(CODE, width), nn.Tanh(), nn.Linear(width, 64))

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the pixels, means and log variances side by side, ``(b, 64 + 2 CODE)``."""
        code = self.encode(x)
        mean, log_variance = code.chunk(2, 1)
        drawn = mean + torch.exp(log_variance / 2) * torch.randn_like(mean)
        return torch.cat([self.decode(drawn), code], 1)


def bound(outputs: Tensor, x: Tensor) -> Tensor:
    """The negative lower bound of the log likelihood, in nats an image."""
    logits, mean, log_variance = outputs.split([64, CODE, CODE], 1)
    pixels = functional.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1)
    distance = (mean**2 + log_variance.exp() - 1 - log_variance).sum(1) / 2
    return (pixels + distance).mean()


def build(lr: float = 3e-3, epochs: int = 30):
    """The model trained by Adam, its loss, pairs of an image and itself, the optimizer, and held-out pairs."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Vae()
        pixels, _ = load_digits(return_X_y=True)
        x = torch.as_tensor(pixels / 16, dtype=torch.float32)
        x = x[torch.randperm(len(x))]
        optimizer = torch.optim.Adam(model.parameters(), lr)
        for _ in range(epochs):
            for batch in x[HELD_OUT:][torch.randperm(len(x) - HELD_OUT)].split(64):
                optimizer.zero_grad()
                bound(model(batch), batch).backward()
                optimizer.step()
    return (
        model.eval(),
        bound,
        (x[HELD_OUT:], x[HELD_OUT:]),
        optimizer,
        (x[:HELD_OUT], x[:HELD_OUT]),
    )
