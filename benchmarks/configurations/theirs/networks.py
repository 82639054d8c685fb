"""How kernels of the peer's networks become arrays."""

import numpy as np
from neural_tangents import stax

BOTH = ("nngp", "ntk")


def kernels(*layers, x, other=None, **options):
    """Return both kernels of layers."""
    *_, kernel_fn = stax.serial(*layers)
    return dict(kernel_fn(x, other, BOTH, **options)._asdict())


def positions(*layers, x, other=None, **options):
    """Return both kernels of outputs with positions, of the first inputs before the second."""
    pairs = kernels(*layers, x=x, other=other, **options)
    rank = x.ndim - 2
    order = (0, 1, *range(2, 2 + 2 * rank, 2), *range(3, 3 + 2 * rank, 2))
    return {name: np.transpose(kernel, order) for name, kernel in pairs.items()}


def dense():
    """Return the last layer of most configurations."""
    return stax.Dense(1)


def pooled(*layers, x, **options):
    """Return both kernels behind the mean over positions."""
    return kernels(*layers, stax.GlobalAvgPool(), dense(), x=x, **options)


def flattened(*layers, x, **options):
    """Return both kernels behind ``Flatten``."""
    return kernels(*layers, stax.Flatten(), dense(), x=x, **options)


def filled(x, mask, constant=100.0):
    """Return inputs with the constant where no position exists."""
    return {"x": np.where(mask[..., None], x, constant), "mask_constant": constant}
