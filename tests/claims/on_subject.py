"""Small classifiers of torch as a reader has them, for the claims about classes."""

import numpy as np

from steepest.catalogue import entry
from steepest.engine.subjects import run_on


def clusters(n=60, classes=3, dimension=4, seed=0):
    """Inputs around one point a class, and class numbers in turn."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    centres = 3 * rng.standard_normal((classes, dimension))
    return (centres[y] + 0.3 * rng.standard_normal((n, dimension))).astype(np.float32), y


def classifier(hidden=(8, 8), steps=300, decay=0.01, squared=False, train=True, batch_norm=False):
    """Return a function that builds a ReLU network of torch with SGD, as ``--subject`` takes it."""
    import torch
    from torch import nn

    def build(seed=0):
        torch.manual_seed(seed)
        x, y = map(torch.as_tensor, clusters())
        layers = []
        for inp, out in zip((4, *hidden[:-1]), hidden, strict=True):
            layers += [
                nn.Linear(inp, out),
                *([nn.BatchNorm1d(out)] if batch_norm else []),
                nn.ReLU(),
            ]
        model = nn.Sequential(*layers, nn.Linear(hidden[-1], 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=decay)
        targets = torch.eye(3)[y] if squared else y
        loss = nn.MSELoss() if squared else nn.CrossEntropyLoss()

        def descend():
            model.train()
            for _ in range(steps):
                optimizer.zero_grad()
                loss(model(x), targets).backward()
                optimizer.step()
                yield

        parts = {"model": model, "loss": loss, "data": (x, targets), "optimizer": optimizer}
        return parts | ({"train": descend, "length": steps} if train else {})

    return build


def asked(claim, build, **changes):
    """Put a claim to what a function builds."""
    result = run_on(entry(claim), build, changes=changes)
    assert result is not None
    return result


def broken(result):
    """Return what was assumed and is not so."""
    return [str(hypothesis) for hypothesis in result.assumptions if not hypothesis.holds]


def rejections(wrong):
    """Return whether each rival or control was rejected, by id."""
    return {each.id: each.rejected for each in wrong}
