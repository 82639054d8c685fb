"""What the figure of xor-sample-complexity shows."""

import numpy as np
import xarray

from steepest import kit


def panels_of_samples(
    law: xarray.Dataset, seen: xarray.Dataset, network_sizes: np.ndarray
) -> tuple[kit.Panel, ...]:
    """Draw samples that both need over d, and learning curves of both."""
    d = law.dimension.values.astype(float)
    network = seen.network_samples.mean("seed").values
    # the law has no factor of its own: it is drawn through the geometric mean
    factor = lambda shape: np.exp(np.mean(np.log(network / shape))) * shape
    shades = np.linspace(0, 0.8, len(d))
    errors = seen.errors.mean("seed").values
    curves = [
        kit.observed_curve(counts / one, row, f"d = {one:g}", shade=shade)
        for counts, one, row, shade in zip(network_sizes, d, errors, shades, strict=True)
    ]
    return (
        kit.panel(
            "Networks need about d log d samples, kernels almost d²",
            "dimension d",
            "samples for a quarter of errors",
            kit.observed_curve(d, network, "network", kind="points"),
            kit.predicted_curve(d, factor(law.network_samples.values), "∝ d log d"),
            kit.rival_curve(d, factor(d**1.5), "∝ d^1.5"),
            kit.observed_curve(
                d, seen.kernel_samples.mean("seed").values, "kernel", kind="points", shade=0.7
            ),
            kit.predicted_curve(
                d, law.kernel_samples.values, "from the kernel's spectrum", shade=0.7
            ),
            log="xy",
        ),
        kit.panel(
            "Networks: a few samples a dimension suffice, more in larger d",
            "samples over dimension, n / d",
            "test error",
            *curves,
            ylim=(0, 0.55),
        ),
        kit.curves(
            "Kernels: samples must grow almost like d²",
            law.kernel_errors,
            seen.kernel_errors,
            over="size",
            by="dimension",
            x="samples over dimension squared, n / d²",
            y="test error",
            name="d = {}",
            ylim=(0, 0.55),
        ),
    )
