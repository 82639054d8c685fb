"""The kernel of a convolutional network in GPyTorch: computed by JAX, its derivatives too.

python examples/kernels/in_gpytorch.py
"""

import gpytorch
import jax
import jax.numpy as jnp
import numpy as np
import torch
from data import NOISE, compared, limit, threes_and_eights

from steepest.kernels import kernel_function

TRAIN = 16


class Pairs(torch.autograd.Function):
    """A function of JAX between two sets of images; gradients go back through ``jax.vjp``."""

    @staticmethod
    def forward(context, one, other, function):
        arrays = jnp.asarray(one.detach().numpy()), jnp.asarray(other.detach().numpy())
        values, context.back = jax.vjp(function, *arrays)
        return torch.from_numpy(np.array(values))

    @staticmethod
    def backward(context, gradient):
        one, other = context.back(jnp.asarray(gradient.numpy()))
        return torch.from_numpy(np.array(one)), torch.from_numpy(np.array(other)), None


class NetworkKernel(gpytorch.kernels.Kernel):
    """NNGP of a limit; inputs come as rows."""

    def __init__(self, limit, like):
        super().__init__()
        pair = kernel_function(limit, like=like)
        shaped = lambda x, y: pair(x.reshape(limit.shape), y.reshape(limit.shape)).nngp
        self.matrix = jax.jit(jax.vmap(jax.vmap(shaped, (None, 0)), (0, None)))
        self.rows = jax.jit(jax.vmap(shaped))

    def forward(self, x1, x2, diag=False, **options):
        return Pairs.apply(x1, x2, self.rows if diag else self.matrix)


class Process(gpytorch.models.ExactGP):
    """A Gaussian process of mean zero."""

    def __init__(self, rows, targets, likelihood, kernel):
        super().__init__(rows, targets, likelihood)
        self.mean = gpytorch.means.ZeroMean()
        self.kernel = kernel

    def forward(self, rows):
        return gpytorch.distributions.MultivariateNormal(self.mean(rows), self.kernel(rows))


def main() -> dict[str, float]:
    """Compare a posterior of GPyTorch with ours, and differentiate it."""
    jax.config.update("jax_enable_x64", True)
    x, y = threes_and_eights(24)
    rows = torch.from_numpy(x.reshape(len(x), -1))
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = NOISE
    kernel = NetworkKernel(limit(), x)
    process = Process(rows[:TRAIN], torch.from_numpy(y[:TRAIN]), likelihood, kernel).eval()
    inputs = rows[TRAIN:].clone().requires_grad_()
    mean = process(inputs).mean
    mean.sum().backward()  # in which direction each image would look more like a three
    numbers = compared(mean.detach().numpy(), x, y, TRAIN)
    return numbers | {"size of the gradient": float(inputs.grad.abs().max())}


if __name__ == "__main__":
    print(main())
