"""The kernel of a convolutional network in tinygp, which maps a function of two inputs; its coefficients are learned.

python examples/kernels/in_tinygp.py
"""

import jax
import jax.numpy as jnp
import numpy as np
import tinygp
from data import NOISE, START, compared, learned, limit, threes_and_eights
from scipy.optimize import minimize

from steepest.kernels import kernel_function

TRAIN = 16


def process_of(limit, x, noise):
    """A Gaussian process with the NNGP of a limit."""
    pair = kernel_function(limit, like=x)
    kernel = tinygp.kernels.Custom(jax.jit(lambda x, y: pair(x, y).nngp))
    return tinygp.GaussianProcess(kernel, jnp.asarray(x), diag=noise)


def main() -> dict[str, float]:
    """Compare a posterior of tinygp with ours, and learn C_W, C_b and the noise."""
    jax.config.update("jax_enable_x64", True)
    x, y = threes_and_eights(24)
    process = process_of(limit(), x[:TRAIN], NOISE)
    mean = process.predict(jnp.asarray(y[:TRAIN]), jnp.asarray(x[TRAIN:]))

    @jax.jit
    @jax.value_and_grad
    def loss(logs):
        c_w, c_b, noise = jnp.exp(logs)
        return -process_of(limit(c_w, c_b), x[:TRAIN], noise).log_probability(y[:TRAIN])

    start = np.log(list(START.values()))
    search = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 12})
    values = dict(zip(START, np.exp(search.x).tolist(), strict=True))
    likelihood = lambda logs: tuple(-np.asarray(part) for part in loss(logs))
    return compared(np.asarray(mean), x, y, TRAIN) | learned(
        likelihood, start, search.x, values, x[:TRAIN], y[:TRAIN]
    )


if __name__ == "__main__":
    print(main())
