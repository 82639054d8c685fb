"""The kernel of a convolutional network in tinygp, which maps a function of two inputs.

python examples/kernels/in_tinygp.py
"""

import jax
import jax.numpy as jnp
import numpy as np
import tinygp
from data import NOISE, compared, limit, threes_and_eights

from steepest.kernels import kernel_function

TRAIN = 16


def main() -> dict[str, float]:
    """Compare a posterior of tinygp with ours."""
    jax.config.update("jax_enable_x64", True)
    x, y = threes_and_eights(24)
    pair = kernel_function(limit(), like=x)
    kernel = tinygp.kernels.Custom(lambda one, other: pair(one, other).nngp)
    process = tinygp.GaussianProcess(kernel, jnp.asarray(x[:TRAIN]), diag=NOISE)
    mean = process.predict(jnp.asarray(y[:TRAIN]), jnp.asarray(x[TRAIN:]))
    return compared(np.asarray(mean), x, y, TRAIN)


if __name__ == "__main__":
    print(main())
