"""What the tangent kernel needs on 2-XOR, by the eigenvalues of the kernel on the cube."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import root_scalar

from steepest.kernels import arc_cosine, hypercube_spectrum, learning_curve

LEVEL = 0.25  # the test error at which samples are counted
RIDGE = 1e-8  # keeps the Gram matrix definite where an input is drawn twice
Kernel = Callable[[np.ndarray], np.ndarray]


def both_layers(t: np.ndarray) -> np.ndarray:
    """Return the kernel of both layers in the NTK parameterization, κ(⟨x, x'⟩) of unit inputs, scaled to κ(1) = 2."""
    kernels = arc_cosine(t)
    # both parts are ½ at t = 1
    return 2 * (kernels.inner + kernels.outer)


def output_kernel(t: np.ndarray) -> np.ndarray:
    """Return the part of the output weights alone."""
    return 2 * arc_cosine(t).outer


def inner_kernel(t: np.ndarray) -> np.ndarray:
    """Return the part of the inner weights alone."""
    return 2 * arc_cosine(t).inner


def samples_needed(kernel: Kernel, dimension: int, level: float = LEVEL) -> float:
    """Return the samples at which regression with a kernel has this error on 2-XOR, by its learning curve."""
    spectrum = hypercube_spectrum(kernel, dimension)
    excess = lambda samples: learning_curve(spectrum, 2, samples, RIDGE).sign_error - level
    return root_scalar(excess, bracket=(2.0, 4.0 * dimension**2), xtol=1e-6).root


def errors_of(
    kernel: Kernel, dimensions: np.ndarray, sizes: np.ndarray, bits: int = 2
) -> np.ndarray:
    """Return the errors of regression with a kernel on a parity, shape of the sizes ``(dimensions, sizes)``."""
    spectra = [hypercube_spectrum(kernel, int(d)) for d in dimensions]
    return np.array(
        [
            [learning_curve(spectrum, bits, n, RIDGE).sign_error for n in row]
            for spectrum, row in zip(spectra, sizes, strict=True)
        ]
    )
