"""Networks of all parameterizations, scaled from weights of variance one, and their training to a fixed loss."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.kernels import empirical_ntk, ntk_top
from steepest.nn.data import Dataset
from steepest.nn.losses import mean_risk, squared
from steepest.nn.networks import ByLayer, Mlp, Parameterization, mlp, parameterization, step_scale
from steepest.nn.types import Params

# The remedy that the notes print: W ~ N(0, C_W/n), and N(0, 1/n²) in the last layer; with the largest stable step.
PRINTED = Parameterization("printed", ByLayer(0, 0, 0), ByLayer(0, 0.5, 1), 1)
FEW = 8  # examples on which tangent kernels are compared


class Ends(NamedTuple):
    """What became of networks of one parameterization and width, ``(networks, …)``.

    Attributes:
        change: root mean square changes of output and both hidden layers, and the kernel's relative one, (…, 4).
        steps: of training.
        loss: at the end.
        kernel: the tangent kernel at the start, on a few examples.
    """

    change: np.ndarray
    steps: np.ndarray
    loss: np.ndarray
    kernel: np.ndarray


def network(inputs: int, parameterized: str, width: int) -> Mlp:
    """Return the tanh network with two hidden layers, in a parameterization by name."""
    by_name = PRINTED if parameterized == "printed" else parameterization(parameterized)
    return _tanh((inputs, width, width, 1), by_name)


def draw(rng: np.random.Generator, net: Mlp, count: int) -> list[np.ndarray]:
    """Return weights of variance one for so many networks: NumPy compiles nothing."""
    shapes = zip(net.widths[1:], net.widths[:-1], strict=True)
    return [rng.standard_normal((count, *shape), np.float32) for shape in shapes]


def scaled(net: Mlp, drawn: list[np.ndarray]) -> list[dict[str, np.ndarray]]:
    """Return initial networks of a parameterization, from weights of variance one."""
    scale = parameterization(net.parameterization or "").scale
    # w = n^−b ξ, with b of each layer
    factors = [np.float32(float(net.widths[1]) ** -exponent) for exponent in scale]
    return [{"w": factor * layer} for factor, layer in zip(factors, drawn, strict=True)]


def mean_top(net: Mlp, drawn: list[np.ndarray], data: Dataset) -> float:
    """Return the mean over networks of the largest eigenvalue of the initial tangent kernel over n."""
    return float(_mean_top(net.widths, _multiplier(net), scaled(net, drawn), data.x))


def train(
    net: Mlp, drawn: list[np.ndarray], data: Dataset, rate: float, target: float, most: int
) -> Ends:
    """Train networks by full-batch descent until the loss is first below the target.

    Args:
        net: one of the networks.
        drawn: weights of variance one.
        data: the examples.
        rate: step size in units of ``step_scale``.
        target: the loss at which training stops.
        most: steps after which a network is given up.
    """
    lr = rate * step_scale(net)
    start = scaled(net, drawn)
    ends = _train(net.widths, _multiplier(net), start, data.x, data.y, lr, target, most)
    return Ends(*map(np.asarray, ends))


def _tanh(widths: tuple[int, ...], parameterized: Parameterization) -> Mlp:
    return mlp(widths, "tanh", parameterized=parameterized, bias=False)


def _multiplier(net: Mlp) -> np.ndarray:
    """Return the exponents a of a network's multipliers n^-a: as an array, so that one program serves them all."""
    return np.array(parameterization(net.parameterization or "").multiplier, np.float32)


def _multiplied(widths: tuple[int, ...], multiplier: jax.Array) -> Mlp:
    """Return the network with these multipliers; it is given its initial parameters."""
    return _tanh(widths, Parameterization("given", ByLayer(*multiplier), ByLayer(0, 0, 0), 0))


@partial(kit.compiled, static_argnums=0)
def _mean_top(widths, multiplier, starts, x):
    net = _multiplied(widths, multiplier)
    return jax.vmap(lambda p: ntk_top(net.apply, p, x))(starts).mean()


@partial(kit.compiled, static_argnums=0)
def _train(widths, multiplier, starts, x, y, lr, target, most):
    """Return changes, steps, loss and the first kernel, as in :class:`Ends`."""
    net = _multiplied(widths, multiplier)
    look = jax.value_and_grad(mean_risk(squared, net.apply, x, y))
    rms = lambda x: jnp.sqrt(jnp.mean(x**2))

    def descend(start: Params) -> tuple:
        # a loss that is not a number stops
        going = lambda state: (state[1] < most) & (state[2] > target)

        def step(state: tuple) -> tuple:
            moved = jax.tree.map(lambda p, g: p - lr * g, state[0], state[3])
            return moved, state[1] + 1, *look(moved)

        end, steps, loss, _ = jax.lax.while_loop(going, step, (start, 0, *look(start)))
        ends = jax.tree.map(lambda a, b: jnp.stack([a, b]), start, end)  # (2, …): start and end
        features = [rms(z[1] - z[0]) for z in jax.vmap(lambda p: net.preactivations(p, x))(ends)]
        kernels = jax.vmap(lambda p: empirical_ntk(net.apply, p, x[:FEW]))(ends)
        # Frobenius norms
        kernel = jnp.linalg.norm(kernels[1] - kernels[0]) / jnp.linalg.norm(kernels[0])
        return jnp.stack([features[2], *features[:2], kernel]), steps, loss, kernels[0]

    return jax.lax.map(descend, starts)
