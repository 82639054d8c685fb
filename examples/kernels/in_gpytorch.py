"""The kernel of a convolutional network in GPyTorch: computed by JAX, its derivatives too.

python examples/kernels/in_gpytorch.py
"""

import gpytorch
import jax
import jax.numpy as jnp
import numpy as np
import torch
from data import limit, threes_and_eights

from steepest.kernels import gaussian_process, gram, kernel_function


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
    train, test = slice(0, 16), slice(16, 24)
    rows = torch.from_numpy(x.reshape(len(x), -1))
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = 1e-3
    kernel = NetworkKernel(limit(), x)
    process = Process(rows[train], torch.from_numpy(y[train]), likelihood, kernel).eval()
    inputs = rows[test].clone().requires_grad_()
    mean = process(inputs).mean
    mean.sum().backward()  # in which direction each image would look more like a three
    matrix = gram(limit(), x).nngp
    ours = gaussian_process(matrix[train, train], y[train], 1e-3)
    far = np.abs(mean.detach().numpy() - ours.mean(matrix[test, train]))
    return {
        "difference of the means": float(far.max()),
        "right": float((np.sign(mean.detach().numpy()) == y[test]).mean()),
        "size of the gradient": float(inputs.grad.abs().max()),
    }


if __name__ == "__main__":
    print(main())
