"""The kernel of a convolutional network in GPyTorch, computed and differentiated by JAX; coefficients are learned.

python examples/kernels/in_gpytorch.py
"""

import gpytorch
import jax
import jax.numpy as jnp
import numpy as np
import torch
from data import NOISE, START, compared, learned, limit, threes_and_eights

from steepest.kernels import kernel_function

TRAIN = 16


class InJax(torch.autograd.Function):
    """A function of JAX; gradients go back through ``jax.vjp``."""

    @staticmethod
    def forward(context, function, *tensors):
        arrays = [jnp.asarray(tensor.detach().numpy()) for tensor in tensors]
        values, context.back = jax.vjp(function, *arrays)
        return torch.from_numpy(np.array(values))

    @staticmethod
    def backward(context, gradient):
        gradients = context.back(jnp.asarray(gradient.numpy()))
        return None, *(torch.from_numpy(np.array(array)) for array in gradients)


class NetworkKernel(gpytorch.kernels.Kernel):
    """NNGP of a function of C_W and C_b that gives a limit; inputs come as rows."""

    def __init__(self, limit, shape):
        super().__init__()
        for name in ("c_w", "c_b"):
            self.register_parameter(f"raw_{name}", torch.nn.Parameter(torch.zeros(())))
            self.register_constraint(f"raw_{name}", gpytorch.constraints.Positive())

        def pair(c_w, c_b, x, y):  # of traced coefficients only the shape of ``like`` is read
            kernel = kernel_function(limit(c_w, c_b), like=np.ones((1, *shape)))
            return kernel(x.reshape(shape), y.reshape(shape)).nngp

        several = jax.vmap(jax.vmap(pair, (None, None, None, 0)), (None, None, 0, None))
        self.matrix = jax.jit(several)
        self.rows = jax.jit(jax.vmap(pair, (None, None, 0, 0)))

    @property
    def c_w(self):
        return self.raw_c_w_constraint.transform(self.raw_c_w)

    @c_w.setter
    def c_w(self, value):
        self.initialize(raw_c_w=self.raw_c_w_constraint.inverse_transform(torch.tensor(value)))

    @property
    def c_b(self):
        return self.raw_c_b_constraint.transform(self.raw_c_b)

    @c_b.setter
    def c_b(self, value):
        self.initialize(raw_c_b=self.raw_c_b_constraint.inverse_transform(torch.tensor(value)))

    def forward(self, x1, x2, diag=False, **options):
        return InJax.apply(self.rows if diag else self.matrix, self.c_w, self.c_b, x1, x2)


class Process(gpytorch.models.ExactGP):
    """A Gaussian process of mean zero."""

    def __init__(self, rows, targets, likelihood, kernel):
        super().__init__(rows, targets, likelihood)
        self.mean = gpytorch.means.ZeroMean()
        self.kernel = kernel

    def forward(self, rows):
        return gpytorch.distributions.MultivariateNormal(self.mean(rows), self.kernel(rows))

    def at(self, c_w, c_b, noise):
        """Set the coefficients and the noise."""
        self.kernel.c_w = c_w
        self.kernel.c_b = c_b
        self.likelihood.noise = noise
        return self


def main() -> dict[str, float]:
    """Compare a posterior of GPyTorch with ours, differentiate it, and learn C_W, C_b and the noise."""
    jax.config.update("jax_enable_x64", True)
    x, y = threes_and_eights(24)
    rows = torch.from_numpy(x.reshape(len(x), -1))
    targets = torch.from_numpy(y)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    kernel = NetworkKernel(limit, (4, 4, 1))
    process = Process(rows[:TRAIN], targets[:TRAIN], likelihood, kernel).double()
    process.at(2.0, 0.01, NOISE).eval()
    inputs = rows[TRAIN:].clone().requires_grad_()
    mean = process(inputs).mean
    mean.sum().backward()  # in which direction each image would look more like a three

    process.at(**START).train()
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, process)
    parameters = list(process.parameters())
    optimizer = torch.optim.LBFGS(parameters, max_iter=12, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        value = -evidence(process(rows[:TRAIN]), targets[:TRAIN])
        value.backward()
        return value

    def whole(numbers):
        torch.nn.utils.vector_to_parameters(torch.from_numpy(numbers), parameters)
        value = -TRAIN * loss().item()  # GPyTorch divides by the number of images
        return value, -TRAIN * np.array([parameter.grad.item() for parameter in parameters])

    flat = lambda: torch.nn.utils.parameters_to_vector(parameters).detach().numpy().copy()
    start = flat()
    optimizer.step(loss)
    learnt = {"c_w": kernel.c_w, "c_b": kernel.c_b, "noise": likelihood.noise}
    values = {name: value.item() for name, value in learnt.items()}
    numbers = compared(mean.detach().numpy(), x, y, TRAIN)
    numbers["size of the gradient"] = float(inputs.grad.abs().max())
    return numbers | learned(whole, start, flat(), values, x[:TRAIN], y[:TRAIN])


if __name__ == "__main__":
    print(main())
