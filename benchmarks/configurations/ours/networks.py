"""How kernels of our networks become arrays."""

from dataclasses import replace
from typing import Any

import numpy as np

from steepest.kernels import gram, gram_positions
from steepest.nn import layers
from steepest.nn.layers._nodes import Linear

nn: Any = layers


def as_theirs(limit):
    """Return a limit whose biases are trained as in ``stax``, where they enter as ``b_std * b``: t_b is C_b."""
    nodes = [replace(n, t_b=n.c_b) if isinstance(n, Linear) else n for n in limit.nodes]
    return replace(limit, nodes=tuple(nodes))


def limit_of(*layers, x, parameterized="ntk", bias=True):
    """Return the limit of a network of these layers."""
    shape = np.shape(x)[1:]
    limit = nn.network(*layers, shape=shape, parameterized=parameterized, bias=bias).limit()
    return as_theirs(limit) if parameterized == "ntk" else limit


def kernels(*layers, x, other=None, mask=None, **options):
    """Return both kernels of layers."""
    k = gram(limit_of(*layers, x=x, **options), x, other, mask=mask)
    return {"nngp": k.nngp, "ntk": k.ntk}


def positions(*layers, x, other=None):
    """Return both kernels of outputs with positions."""
    k = gram_positions(limit_of(*layers, x=x), x, other)
    return {"nngp": k.nngp, "ntk": k.ntk}


def pooled(*layers, x, **options):
    """Return both kernels behind the mean over positions."""
    return kernels(*layers, nn.global_pool(), nn.dense(1), x=x, **options)


def flattened(*layers, x, **options):
    """Return both kernels behind ``flatten``."""
    return kernels(*layers, nn.flatten(), nn.dense(1), x=x, **options)
