"""The kernel of a convolutional network in tinygp, which maps a function of two inputs.

python examples/kernels/in_tinygp.py
"""

import jax
import jax.numpy as jnp
import numpy as np
import tinygp
from data import limit, threes_and_eights

from steepest.kernels import gaussian_process, gram, kernel_function


def main() -> dict[str, float]:
    """Compare a posterior of tinygp with ours."""
    jax.config.update("jax_enable_x64", True)
    x, y = threes_and_eights(24)
    train, test = slice(0, 16), slice(16, 24)
    pair = kernel_function(limit(), like=x)
    # the second inputs of all pairs at a time are what jit and vmap of tinygp make of it
    kernel = tinygp.kernels.Custom(lambda one, other: pair(one, other).nngp)
    process = tinygp.GaussianProcess(kernel, jnp.asarray(x[train]), diag=1e-3)
    mean = process.predict(jnp.asarray(y[train]), jnp.asarray(x[test]))
    matrix = gram(limit(), x).nngp
    ours = gaussian_process(matrix[train, train], y[train], 1e-3)
    return {
        "difference of the means": float(np.abs(mean - ours.mean(matrix[test, train])).max()),
        "right": float((np.sign(mean) == y[test]).mean()),
    }


if __name__ == "__main__":
    print(main())
